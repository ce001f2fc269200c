"""Property: any legal schedule computes what NumPy computes.

In the interpreter the numbers are compared, and the loops verified, after every pass; compiled
code is compared at the end.  Inputs are small whole numbers, so equality is exact.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from slipway import te
from slipway.ir.interpret import run
from slipway.ir.verify import STAGE_AFTER, verify
from slipway.passes.pipeline import PIPELINE

sys.path.insert(0, str(Path(__file__).parent))
from program_strategy import programs

SETTINGS = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
FEW = settings(max_examples=200, derandomize=True, **SETTINGS)
MANY = settings(max_examples=2000, **SETTINGS)


def data_of(program):
    """Input arrays and the expected output."""
    rng = np.random.default_rng(0)
    *inputs, _ = program.args
    arrays = [rng.integers(-3, 4, [int(x) for x in t.shape]).astype("float32") for t in inputs]
    return arrays, program.reference(*arrays)


def check_in_interpreter(program):
    arrays, want = data_of(program)
    func = te.lower(program.schedule, program.args)
    stage = "loops"
    for step in (None, *PIPELINE):
        if step is not None:
            func = step(func)
            stage = STAGE_AFTER.get(step.__name__, stage)
        verify(func, stage)
        got = np.full(want.shape, -77, "float32")
        run(func, *arrays, got)
        np.testing.assert_array_equal(got, want, err_msg=getattr(step, "__name__", "lower"))


def check_compiled(program, target):
    driver = pytest.importorskip("slipway.driver")
    arrays, want = data_of(program)
    module = driver.build(program.schedule, program.args, target)
    from slipway import nd

    buffers = [nd.array(x) for x in arrays]
    got = nd.array(np.full(want.shape, -77, "float32"))
    module(*buffers, got)
    np.testing.assert_array_equal(got.numpy(), want)


@FEW
@given(programs())
def test_random_programs_in_the_interpreter(program):
    check_in_interpreter(program)


@FEW
@given(programs())
def test_random_programs_compiled_by_llvm(program):
    check_compiled(program, "llvm")


@pytest.mark.long
@MANY
@given(programs())
def test_many_random_programs_in_the_interpreter(program):
    check_in_interpreter(program)


@pytest.mark.long
@MANY
@given(programs())
def test_many_random_programs_compiled_by_llvm(program):
    check_compiled(program, "llvm")
