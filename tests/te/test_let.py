"""Copies of an expression share its let: the variable names another value in each of them."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.codegen.bounds import ValueBounds
from slipway.ir import expr as E
from slipway.ir import ops

N = 16


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "c"])
@pytest.mark.parametrize("vectors", [False, True])
def test_two_copies_in_one_expression(target, vectors):
    x = te.placeholder((N,), "float32", "x")
    var = E.Var("v", "float32")
    inner = te.compute((N,), lambda i: E.Let(var, x[i] * 2.0, var + var * var), "inner")
    out = te.compute((N,), lambda i: inner[i] - 3.0 * inner[N - 1 - i], "out")
    schedule = te.create_schedule(out.op)
    schedule[inner].compute_inline()
    if vectors:
        schedule[out].vectorize(schedule[out].op.axis[0])
    data = np.random.default_rng(0).random(N, dtype=np.float32)
    given, got = tvm.nd.array(data), tvm.nd.array(np.zeros(N, "float32"))
    tvm.build(schedule, [x, out], target)(given, got)
    want = 2.0 * data + np.square(2.0 * data, dtype=np.float64)
    np.testing.assert_allclose(got.numpy(), want - 3.0 * want[::-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_copies_that_read_memory_where_the_variable_says(target):
    table = te.placeholder((N,), "float32", "table")
    at = te.placeholder((N,), "int32", "at")
    var = E.Var("v", "int32")
    inner = te.compute((N,), lambda i: E.Let(var, at[i], table[var] + table[N - 1 - var]), "inner")
    out = te.compute((N,), lambda i: inner[i] - 3.0 * inner[N - 1 - i], "out")
    schedule = te.create_schedule(out.op)
    schedule[inner].compute_inline()
    rng = np.random.default_rng(1)
    values, where = rng.random(N, dtype=np.float32), rng.integers(0, N, N).astype("int32")
    got = tvm.nd.array(np.zeros(N, "float32"))
    tvm.build(schedule, [table, at, out], target)(tvm.nd.array(values), tvm.nd.array(where), got)
    want = values[where] + values[N - 1 - where]
    np.testing.assert_allclose(got.numpy(), want - 3.0 * want[::-1], rtol=1e-5, atol=1e-5)


def test_a_choice_between_copies_in_vectors():
    """Both sides of a concatenation hold the let of an integer power."""
    from slipway import relay

    a, b = (relay.var(name, shape=(1, N), dtype="int32") for name in "ab")
    function = relay.Function(
        [a, b], relay.power(relay.concatenate([a, b], axis=-1), relay.const(1, "int32"))
    )
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(function), target="llvm")
    module = tvm.runtime.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    rng = np.random.default_rng(2)
    first, second = (rng.integers(-9, 9, (1, N)).astype("int32") for _ in "ab")
    module.run(a=first, b=second)
    np.testing.assert_array_equal(
        module.get_output(0).numpy(), np.concatenate([first, second], axis=-1)
    )


def test_bounds_of_a_variable_that_is_bound_again():
    bounds, var = ValueBounds(), E.Var("i", "int32")
    shared = var - 4
    bounds.bind(var, ops.const(4, "int32"), ops.const(8, "int32"))
    assert bounds.is_nonnegative(shared)
    bounds.bind(var, ops.const(0, "int32"), ops.const(8, "int32"))
    assert not bounds.is_nonnegative(shared)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("kind", ["integer", "real", "both", "affine", "element", "clamped"])
def test_a_computed_tensor_is_read_where_a_let_or_an_element_says(kind, inside):
    a, i, x = (te.placeholder((n,), dtype, name) for n, dtype, name in (
        (7, "float32", "a"), (5, "int32", "i"), (5, "float32", "x")))  # fmt: skip
    doubled = te.compute((7,), lambda k: a[k] * 2.0, "doubled")
    later = te.compute((5,), lambda k: i[k] + 1, "later")
    whole, real = te.var("whole", "int32"), te.var("real", "float32")
    formulas = {
        "integer": lambda k: tvm.tir.Let(whole, later[k], doubled[whole] + doubled[whole - 1]),
        "real": lambda k: tvm.tir.Let(real, x[k] * 1.5, doubled[real.astype("int32")]),
        "both": lambda k: tvm.tir.Let(
            real, x[k] * 1.5, tvm.tir.Let(whole, real.astype("int32"), doubled[whole])
        ),
        "affine": lambda k: tvm.tir.Let(whole, k + 1, doubled[whole]),
        "element": lambda k: doubled[later[0]] + x[k],
        "clamped": lambda k: doubled[te.min(te.max(later[1], 0), 3)] + x[k],
    }
    made = te.compute((5,), formulas[kind], "made")
    plan = te.create_schedule(made.op)
    if inside:
        plan[doubled].compute_at(plan[made], made.op.axis[0])
    numbers = np.arange(7, dtype="float32"), np.array([0, 3, 5, 2, 1], "int32")
    reals = np.array([0, 1, 2, 3, 4], "float32")
    twice, cut = numbers[0] * 2, (reals * 1.5).astype(int)
    want = {
        "integer": twice[numbers[1] + 1] + twice[numbers[1]], "real": twice[cut],
        "both": twice[cut], "affine": twice[1:6], "element": twice[1] + reals,
        "clamped": twice[3] + reals,
    }[kind]  # fmt: skip
    got = tvm.nd.array(np.zeros(5, "float32"))
    tvm.build(plan, [a, i, x, made], "llvm")(*map(tvm.nd.array, (*numbers, reals)), got)
    np.testing.assert_array_equal(got.numpy(), want)
    stored = {"affine": 1 if inside else 5, "clamped": 4}.get(kind, 7)
    assert f"allocate doubled: float32[{stored}]" in str(te.lower(plan, [a, i, x, made]))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("kind", ["element", "let", "clamped"])
def test_a_computed_tensor_of_open_size_is_whole_where_its_index_is_not_known(kind, inside):
    n = te.var("n")
    a, i = te.placeholder((n,), "float32", "a"), te.placeholder((5,), "int32", "i")
    doubled = te.compute((n,), lambda k: a[k] * 2.0, "doubled")
    later = te.compute((5,), lambda k: i[k] + 1, "later")
    whole = te.var("whole", "int32")
    formula = {
        "element": lambda k: doubled[(later[k] + k) % n],
        "let": lambda k: tvm.tir.Let(whole, later[k] + k, doubled[whole % n]),
        "clamped": lambda k: doubled[te.max(te.min(later[0] + k, n - 1), 0)],
    }[kind]
    made = te.compute((5,), formula, "made")
    plan = te.create_schedule(made.op)
    if inside:
        plan[doubled].compute_at(plan[made], made.op.axis[0])
    for size in (1, 4, 50):
        x, by = np.arange(size, dtype="float32"), np.array([0, 7, 49, 3, 2], "int32")
        index = (by + 1 + np.arange(5)) % size
        if kind == "clamped":
            index = np.clip(1 + np.arange(5), 0, size - 1)
        got = tvm.nd.array(np.zeros(5, "float32"))
        tvm.build(plan, [a, i, made], "llvm")(*map(tvm.nd.array, (x, by)), got)
        np.testing.assert_array_equal(got.numpy(), 2 * x[index])
