"""Reductions and what is built of them, against their references; which of them run in vectors."""

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

import slipway as tvm
from slipway import relay, te
from slipway.backends.cpu.schedules.matmul.partial_sums import part_of
from slipway.backends.cpu.schedules.reduction import row_axes
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.relay import op_registry
from slipway.relay.dims import Dim
from slipway.target import Target


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 500), [1]), ((5, 7, 56), [1, 2]), ((6, 17), [1]), ((64, 64, 40), None),
        ((300, 1000), [0, 1]), ((9, 100), [0]), ((4, 6, 64), [0, 2]), ((2, 3, 7, 7), [2, 3]),
    ],
)  # fmt: skip
def test_reductions_over_any_axes(target, shape, axes):
    x = var("x", *shape)
    run(relay.sum(relay.abs(x), axis=axes), target)
    run(relay.max(relay.exp(x), axis=axes, keepdims=True), target)


def test_a_row_is_reduced_in_vectors_of_independent_sums():
    function = relay.sum(var("x", 8, 1000), axis=[1]).as_function().with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target("llvm -mcpu=x86-64-v4"))
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert "vectorized for k1.inner in range(64)" in text
    assert "in range(1000)" not in text


@pytest.mark.parametrize(("inside", "kept"), [((19,), True), ((2, 14), True), ((33, 17), False)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_few_vectors_are_not_loaded_again(inside, kept, reverse):
    """The last vector goes over a part of the one before: what two stores wrote is waited for."""
    scan = op_registry.get("cumsum")
    body = scan(var("x", 3, 20, *inside), attrs=scan.attrs_type(1, False, reverse))
    run(body, "llvm")
    function = body.as_function().with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target("llvm -mcpu=znver4"))
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert ("sums" in text) == kept


@pytest.mark.parametrize("shape", [(70, 6, 96, 1), (70, 96, 1, 1), (1, 70, 33, 1)])
def test_what_lies_along_memory_may_be_before_axes_of_one(shape):
    """The last axis has one element: columns are vectors all the same."""
    function = relay.mean(var("x", *shape), axis=[0, 1]) if shape[1] != 96 else relay.sum(
        var("x", *shape), axis=[0]
    )  # fmt: skip
    run(relay.nn.relu(function), "llvm")
    kernel = schedule_primitive(
        function.as_function().with_attr("Primitive", 1), Target("llvm -mcpu=znver4")
    )
    assert "vectorized for" in str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))


@pytest.mark.parametrize(("shape", "axis"), [((3, 20, 100), 1), ((40, 333), 0), ((2, 9, 37), 1)])
def test_positions_across_memory_are_found_in_several_vectors(shape, axis):
    """One vector of columns at a time would wait for each comparison; the last begins earlier."""
    body = relay.argmax(var("x", *shape), axis=[axis])
    for target in (*TARGETS, "c"):
        run(body, target)
    kernel = schedule_primitive(
        body.as_function().with_attr("Primitive", 1), Target("llvm -mcpu=znver4")
    )
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    together = min(4, shape[-1] // 16) * 16
    assert f"range({together})" in text
    assert "likely" not in text


@pytest.mark.parametrize("shape", [(50, 9, 12, 6), (30, 5, 7, 3), (20, 64, 5)])
def test_short_columns_behind_one_another_are_one_row_of_columns(shape):
    for body in (
        relay.sum(var("x", *shape), axis=[0]),
        relay.mean(var("x", 2, *shape), axis=[0, 1]),
        relay.argmin(var("x", *shape), axis=[0]),
        relay.nn.relu(relay.max(var("x", 3, *shape), axis=[1])),
    ):
        for target in TARGETS:
            run(body, target)
    function = relay.sum(var("x", *shape), axis=[0]).as_function().with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target("llvm -mcpu=znver4"))
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert "vectorized for" in text
    assert f"in range({shape[-1]})" not in text


@pytest.mark.parametrize(
    ("shape", "positions"),
    [((16, 1000, 3), 16), ((7, 197, 12), 4), ((40, 33, 7), 0), ((3, 500, 2), 16), ((9, 20, 5), 0)],
)
def test_columns_of_several_positions_are_vectors(shape, positions):
    """Fewer columns than a vector's lanes: those of the next positions fill it."""
    x = var("x", *shape)
    for body in (
        relay.sum(x, axis=[1]),
        relay.nn.relu(relay.mean(x, axis=[1], keepdims=True)),
        relay.max(relay.exp(x), axis=[1]),
        relay.argmax(x, axis=[1]),
        relay.argmin(x, axis=[1], keepdims=True),
        relay.sum(relay.reshape(x, (shape[0], shape[1] // 2, 2, shape[2])), axis=[1, 2])
        if shape[1] % 2 == 0
        else relay.prod(x, axis=[0]),
    ):
        for target in (*TARGETS, "c"):
            run(body, target)
    function = relay.sum(x, axis=[1]).as_function().with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target("llvm -mcpu=znver4"))
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert (f"range({positions * shape[2]})" in text) == bool(positions)


@pytest.mark.parametrize(("length", "lanes"), [(28, 8), (17, 8), (31, 8), (9, 4), (32, 16)])
def test_a_short_row_gets_short_vectors(length, lanes):
    function = relay.sum(var("x", 64, length), axis=[1]).as_function().with_attr("Primitive", 1)
    kernel = schedule_primitive(function, Target("llvm -mcpu=x86-64-v4"))
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert f"vectorized for k1.inner in range({lanes})" in text
    run(relay.max(var("x", 6, length), axis=[1]), "llvm")


def test_what_runs_along_memory():
    x = te.placeholder((4, 5, 6), name="x")
    y = te.placeholder((4,), name="y")
    a, b = te.reduce_axis((0, 5), name="a"), te.reduce_axis((0, 6), name="b")
    whole = te.compute((4,), lambda i: te.sum((x[i, a, b] - y[i]) * y[i], axis=[a, b]), name="w")
    assert row_axes(whole.op) == [a, b]
    half = te.compute((4, 6), lambda i, j: te.sum(x[i, a, j], axis=[a]), name="h")
    assert row_axes(half.op) == []
    part = te.reduce_axis((0, 3), name="part")
    some = te.compute((4,), lambda i: te.sum(x[i, a, part], axis=[a, part]), name="s")
    assert row_axes(some.op) == [part]


@pytest.mark.parametrize("target", [*TARGETS, "c"])
def test_normalisations(target):
    run(relay.nn.layer_norm(var("x", 7, 75), var("g", 75), var("b", 75)), target)
    run(relay.nn.instance_norm(var("x", 2, 3, 9, 21), var("g", 3), var("b", 3)), target)


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("shape", [(5, 1000), (3, 37), (2, 4, 70)])
@pytest.mark.parametrize("last", [False, True])
def test_the_first_or_last_of_equal_elements(target, shape, last):
    x = relay.var("x", shape=shape)
    data = np.random.default_rng(0).integers(-4, 4, shape).astype("float32")
    for name, axis in (("argmax", -1), ("argmin", -1), ("argmax", 0), ("argmin", None)):
        body = getattr(relay, name)(x, axis=axis, select_last_index=last)
        lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target)
        model = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
        model.run(x=data)
        find = getattr(np, name)
        if last and axis is None:
            wanted = data.size - 1 - find(data.ravel()[::-1])
        elif last:
            wanted = data.shape[axis] - 1 - find(np.flip(data, axis), axis=axis)
        else:
            wanted = find(data, axis=axis)
        assert (model.get_output(0).numpy() == wanted).all()


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("shape", [(3, 512), (2, 2, 677), (1, 1201)])
def test_long_softmax(target, shape):
    assert run(relay.nn.softmax(var("x", *shape)), target) == "softmax.long"
    body = relay.nn.log_softmax(var("x", *shape)) * relay.const(2.0)
    assert run(body, target) == "softmax.long"


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("shape", [(3, 48), (5, 31), (2, 9, 17), (3, 15), (40, 5), (9, 100)])
def test_softmax_of_rows_with_every_tail(target, shape):
    """The last vector reaches back, and what it has of the one before is added once."""
    assert run(relay.nn.softmax(var("x", *shape)), target) in ("softmax.rows", "softmax.long")
    body = relay.nn.log_softmax(var("x", *shape)) * relay.const(2.0)
    assert run(body, target) in ("softmax.rows", "softmax.long")


def test_softmax_waits_for_no_chain_of_elements():
    """Partial results of lanes are joined half with half, in kernels of open rows and of known."""
    for length in (100, Dim("t", 16, 128)):
        x = var("x", 8, length)
        function = relay.nn.softmax(x).as_function().with_attr("Primitive", 1)
        body = str(lower_kernel("kernel", function, Target("llvm -mcpu=x86-64-v4")))
        assert "max_half" in body
        assert "sum_half" in body
        assert "likely" not in body


@pytest.mark.parametrize(("low", "lanes"), [(8, 8), (16, 16), (5, 4)])
def test_short_columns_of_open_length_are_summed_in_vectors(low, lanes):
    """Where a vector of 16 does not fit, a column took all of its additions one by one."""
    x = var("x", Dim("n", 1, 4), 129, Dim("t", low, 24))
    function = relay.sum(x, 1).as_function().with_attr("Primitive", 1)
    body = str(lower_kernel("kernel", function, Target("llvm -mcpu=x86-64-v4")))
    assert f"1, {lanes})" in body
    assert "likely" not in body


@pytest.mark.parametrize("high", [24, 40])
@pytest.mark.parametrize("low", [5, 16])
@pytest.mark.parametrize("made", [relay.sum, relay.max, relay.mean, relay.argmax])
def test_columns_of_open_length(made, low, high):
    x = relay.var("x", shape=(Dim("n", 1, 4), 19, Dim("t", low, high)))
    model = tvm.compile(tvm.IRModule.from_expr(made(x, 1)), "llvm", quiet=True)
    rng = np.random.default_rng(0)
    for n, t in [(1, low), (4, high), (2, low + 2), (3, 16), (1, high - 7)]:
        data = rng.standard_normal((n, 19, t)).astype("float32")
        wanted = getattr(np, made.__name__)(data, axis=1)
        np.testing.assert_allclose(model(data), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 2, 100_000), (0, 2)), ((3, 4, 5, 2, 4100), (0, 2, 4))]
)
def test_rows_of_several_axes_are_not_unrolled_as_a_whole(shape, axis):
    """LLVM was handed 1,500 copies of the additions of a row, and more for longer rows."""
    x = relay.var("x", shape=shape)
    source = relay.build(
        relay.Function([x], relay.sum(x, axis)), "llvm -mcpu=x86-64-v4"
    ).get_source("raw")
    assert source.count("fadd") < 200


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("depth", [2048, 1000, 1280])
@pytest.mark.parametrize(("units", "kept"), [(128, 128), (128, 100)])
def test_long_sums_of_one_row_are_exact(target, depth, units, kept):
    """Of 2,048 steps one after the other the root of the mean square was 8e-7 off, now 2.2e-7."""
    rng = np.random.default_rng(0)
    data = np.abs(rng.standard_normal((1, depth))).astype("float32")
    weight = rng.standard_normal((units // 64, depth, 64)).astype("float32")
    product = relay.nn.contrib_dense_pack(
        var("x", *data.shape), var("w", *weight.shape), units=kept
    )
    function = relay.nn.relu(product).as_function().with_attr("Primitive", 1)
    chosen = Target(target)
    lowered = lower_kernel("kernel", function, chosen)
    module = OperatorModule(build_module({"kernel": lowered}, chosen))
    out = tvm.nd.empty((1, kept), "float32")
    module(tvm.nd.array(data), tvm.nd.array(weight), out)
    plain = weight.transpose(0, 2, 1).reshape(units, depth)[:kept].astype("float64")
    want = np.maximum(data.astype("float64") @ plain.T, 0)
    error = np.sqrt(np.mean((out.numpy() - want) ** 2) / np.mean(want**2))
    assert error <= 3e-7


@pytest.mark.parametrize(
    ("depth", "part"), [(256, 256), (2048, 128), (1000, 125), (257, 257), (262, 262), (300, 100)]
)
def test_parts_of_a_sum(depth, part):
    assert part_of(depth) == part


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 1, 7), 2), ((1, 7, 1), 1), ((7, 1, 1), 0), ((1, 1, 1), 1), ((1, 4, 1, 3, 1), (1, 3))],
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_results_of_one_element_are_scheduled(shape, axis, keepdims):
    x = relay.var("x", shape=shape)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.sum(x, axis, keepdims)))
    given = np.random.default_rng(0).standard_normal(shape).astype("float32")
    found = relay.create_executor("graph", mod, tvm.cpu(), "llvm").evaluate()(given).numpy()
    np.testing.assert_allclose(found, given.sum(axis, keepdims=keepdims), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rows", "depth"), [(50, 3072), (9, 2048), (7, 1000)])
@pytest.mark.parametrize("units", [48, 70])
def test_deep_products_of_several_rows_are_as_exact_as_those_of_one(rows, depth, units):
    """Thousands of steps one after the other would be off by three times as much."""
    rng = np.random.default_rng(depth)
    data = rng.standard_normal((rows, depth)).astype("float32")
    weight = (rng.standard_normal((units, depth)) * depth**-0.5).astype("float32")
    x = relay.var("x", shape=(rows, depth))
    body = relay.nn.dense(x, relay.const(weight))
    for target in TARGETS:
        library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target=target)
        model = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
        model.run(x=data)
        exact = data.astype("float64") @ weight.T.astype("float64")
        off = np.sqrt(np.mean((model.get_output(0).numpy() - exact) ** 2)) / np.abs(exact).max()
        assert off < 1e-7
