"""Formulas and loops thousands of levels deep work; deeper ones are refused in words."""

import sys

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import LoweringError, ModelError, ScheduleError
from slipway.ir import builder, stmt_functor, structural_equal
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
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


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("as_blocks", [False, True])
def test_a_formula_beyond_the_usual_limit_of_python_runs(target, as_blocks):
    count, limit = 500, sys.getrecursionlimit()
    a, b = terms(count)
    made = te.create_prim_func([a, b]) if as_blocks else te.lower(te.create_schedule(b.op), [a, b])
    module = tvm.build(made, target=target)
    x, got = np.float32([0.5, 0.25, -1, 0]), tvm.nd.array(np.zeros(4, "float32"))
    module(tvm.nd.array(x), got)
    want = x
    for _ in range(count):
        want = want * x + x
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
    assert sys.getrecursionlimit() == limit


def test_walks_that_users_start_bear_depth_or_say_so():
    a, b = terms(6000)
    deep = te.create_prim_func([a, b])
    assert structural_equal(deep, te.create_prim_func(list(terms(6000))), True)
    x = np.zeros(4, "float32")
    for walk in (
        lambda: stmt_functor.ir_transform(deep.body, None, lambda node: None),
        lambda: tvm.tir.transform.Simplify()(deep),
        lambda: verify(deep),
        lambda: run(deep, x, x),
        lambda: tvm.build(deep, target="c"),
    ):
        with pytest.raises(
            LoweringError, match=r"12\d* expressions or statements inside each other"
        ):
            walk()
    a, b = terms(500)
    deep = te.create_prim_func([a, b])
    assert stmt_functor.ir_transform(deep.body, None, lambda node: None) is deep.body
    run(deep, x, x)


def test_c_deeper_than_its_compilers_take_is_in_parts():
    a, b = terms(1100)
    module = tvm.build(te.create_schedule(b.op), [a, b], "c")
    x, got = np.float32([0.5, 0.25, -1, 0]), tvm.nd.array(np.zeros(4, "float32"))
    module(tvm.nd.array(x), got)
    np.testing.assert_allclose(got.numpy(), [1, 1 / 3, -1, 0], rtol=1e-5)
    assert "part" in module.get_source()


def test_a_choice_too_deep_for_compilers_of_c_is_refused_before_they_see_it():
    """Neither side may be computed outside of it: it could read beyond a tensor."""
    a, _ = terms(1)

    def guarded(i):
        value = a[i]
        for _ in range(1100):
            value = te.if_then_else(value > 0.0, value * a[i], a[i])
        return value

    b = te.compute((4,), guarded, name="B")
    with pytest.raises(LoweringError, match=r"'main.* in C has \d* expressions"):
        tvm.build(te.create_schedule(b.op), [a, b], "c")


@pytest.mark.parametrize("text", ["-" * 100_000 + "x", " + ".join(["x"] * 50_000), "(" * 999])
def test_a_script_too_deep_for_python_is_refused(text):
    lines = "@T.prim_func\ndef f(p: T.handle):\n    A = T.match_buffer(p, (1,))\n    x = A[0]\n"
    with pytest.raises(ModelError, match=r"inside each other|nested"):
        tvm.script.from_source(f"{lines}    A[0] = {text}\n")


def test_statements_nested_too_deeply_are_refused():
    ib = builder.create()
    out = ib.allocate("int32", (1,), "out")
    scopes = [ib.for_range(0, 2, f"i{n}") for n in range(11_000)]
    for scope in scopes:
        scope.__enter__()
    out[0] = 1
    for scope in reversed(scopes):
        scope.__exit__(None, None, None)
    with pytest.raises(LoweringError, match="inside each other"):
        run_pipeline(PrimFunc((), ib.get(), (), (("global_symbol", "f"),)))
