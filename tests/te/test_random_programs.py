"""Property: any legal schedule computes what NumPy computes, before and after every pass."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from slipway import te
from slipway.errors import ScheduleError
from slipway.ir.interpret import run
from slipway.ir.verify import STAGE_AFTER, verify
from slipway.passes.pipeline import PIPELINE

sys.path.insert(0, str(Path(__file__).parent))
from program_strategy import programs

SETTINGS = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


def check_in_interpreter(program):
    rng = np.random.default_rng(0)
    *inputs, output = program.args
    arrays = [rng.integers(-3, 4, [int(x) for x in t.shape]).astype("float32") for t in inputs]
    want = program.reference(*arrays)
    func = te.lower(program.schedule, program.args)
    stage = "loops"
    for step in (None, *PIPELINE):
        if step is not None:
            func = step(func)
            stage = STAGE_AFTER.get(step.__name__, stage)
        verify(func, stage)
        got = np.full([int(x) for x in output.shape], -77, "float32")
        run(func, *arrays, got)
        np.testing.assert_array_equal(got, want, err_msg=getattr(step, "__name__", "lower"))


@settings(max_examples=200, **SETTINGS)
@given(programs())
def test_random_programs_in_the_interpreter(program):
    check_in_interpreter(program)


@pytest.mark.long
@settings(max_examples=2000, **{**SETTINGS, "derandomize": False})
@given(programs())
def test_many_random_programs_in_the_interpreter(program):
    check_in_interpreter(program)


__all__ = ["ScheduleError"]
