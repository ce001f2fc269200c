"""Formulas that are nested too deeply are refused with the stage at fault and what to do."""

import numpy as np
import pytest

from slipway import te
from slipway.errors import LoweringError, ScheduleError
from slipway.ir import builder
from slipway.ir.function import PrimFunc
from slipway.ir.interpret import run
from slipway.transform.loop.pipeline import run_pipeline


def terms(count):
    a = te.placeholder((4,), name="A")

    def formula(i):
        value = a[i]
        for _ in range(count):
            value = value * a[i] + a[i]
        return value

    return a, te.compute((4,), formula, name="B")


def test_a_deep_formula_is_printed_and_refused_by_name():
    a, b = terms(5000)
    assert str(b.op.body[0]).count("*") == 5000
    with pytest.raises(ScheduleError, match=r"'B' is 10\d\d\d operations deep.*stages"):
        te.lower(te.create_schedule(b.op), [a, b])


def test_a_deep_formula_that_is_inlined_is_refused_by_name():
    a, b = terms(5000)
    c = te.compute((4,), lambda i: b[i] + 1, name="C")
    schedule = te.create_schedule(c.op)
    schedule[b].compute_inline()
    with pytest.raises(ScheduleError, match=r"'[BC]' is 10\d\d\d operations deep.*stages"):
        te.lower(schedule, [a, c])


def test_a_formula_of_some_depth_runs():
    a, b = terms(30)
    x, got = np.float32([0.5, 0.25, -1, 0]), np.zeros(4, "float32")
    run(te.lower(te.create_schedule(b.op), [a, b]), x, got)
    want = x
    for _ in range(30):
        want = want * x + x
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_statements_nested_too_deeply_are_refused():
    ib = builder.create()
    out = ib.allocate("int32", (1,), "out")
    scopes = [ib.for_range(0, 2, f"i{n}") for n in range(1200)]
    for scope in scopes:
        scope.__enter__()
    out[0] = 1
    for scope in reversed(scopes):
        scope.__exit__(None, None, None)
    with pytest.raises(LoweringError, match="inside each other"):
        run_pipeline(PrimFunc((), ib.get(), (), (("global_symbol", "f"),)))
