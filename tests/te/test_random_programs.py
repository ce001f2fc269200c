"""Property: any legal schedule computes what NumPy computes.

In the interpreter the numbers are compared, and the loops verified, after every pass; compiled
code is compared at the end.  Inputs are small whole numbers, so equality is exact.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from slipway import te
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import stage_after, verify
from slipway.transform.loop.pipeline import PIPELINE

sys.path.insert(0, str(Path(__file__).parent))
from program_strategy import programs

SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
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
    passed = set()
    for step in (None, *PIPELINE):
        if step is not None:
            func = step(func)
            passed.add(step.name)
        verify(func, stage_after(passed))
        got = np.full(want.shape, -77, "float32")
        run(func, *arrays, got)
        np.testing.assert_array_equal(got, want, err_msg=getattr(step, "name", "lower"))


def check_compiled(program, target):
    driver = pytest.importorskip("slipway.compiler.driver")
    arrays, want = data_of(program)
    module = driver.build(program.schedule, program.args, target)
    from slipway import nd

    buffers = [nd.array(x) for x in arrays]
    got = nd.array(np.full(want.shape, -77, "float32"))
    module(*buffers, got)
    np.testing.assert_array_equal(got.numpy(), want)


def check_compiled_together(batch, target):
    """Many programs as functions of one module: a C compiler starts slowly."""
    driver = pytest.importorskip("slipway.compiler.driver")
    from slipway import nd
    from slipway.ir.function import IRModule

    functions = {
        f"f{n}": te.lower(program.schedule, program.args, f"f{n}")
        for n, program in enumerate(batch)
    }
    module = driver.build(IRModule.from_functions(functions), target=target)
    for n, program in enumerate(batch):
        arrays, want = data_of(program)
        got = nd.array(np.full(want.shape, -77, "float32"))
        module[f"f{n}"](*(nd.array(x) for x in arrays), got)
        np.testing.assert_array_equal(got.numpy(), want, err_msg=str(program.log))


@FEW
@given(programs())
def test_random_programs_in_the_interpreter(program):
    check_in_interpreter(program)


@FEW
@given(programs())
def test_random_programs_compiled_by_llvm(program):
    check_compiled(program, "llvm")


# A batch is not shrunk: the message names the program, which the interpreter test can shrink.
NO_SHRINKING = (Phase.explicit, Phase.generate)


@settings(max_examples=10, derandomize=True, phases=NO_SHRINKING, **SETTINGS)
@given(st.lists(programs(), min_size=20, max_size=20))
def test_random_programs_compiled_as_c(batch):
    check_compiled_together(batch, "c -opt-level=0")


@pytest.mark.long
@pytest.mark.timeout(3600)
@MANY
@given(programs())
def test_many_random_programs_in_the_interpreter(program):
    check_in_interpreter(program)


@pytest.mark.long
@pytest.mark.timeout(3600)
@MANY
@given(programs())
def test_many_random_programs_compiled_by_llvm(program):
    check_compiled(program, "llvm")


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(max_examples=100, phases=NO_SHRINKING, **SETTINGS)
@given(st.lists(programs(), min_size=20, max_size=20))
def test_many_random_programs_compiled_as_c(batch):
    check_compiled_together(batch, "c -opt-level=0")
