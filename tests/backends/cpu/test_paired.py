"""Products of bfloat16 pairs on the processor's instruction, bit for bit as it computes them."""

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.lowering.dot_pairs import vector_pairs
from slipway.relay import op_registry
from slipway.relay.ops.packed.blocked_conv import BlockedConvAttrs
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor
from slipway.target import Target

RNG = np.random.default_rng(0)
HOST = Target("llvm")
BFLOAT16 = ml_dtypes.bfloat16
needs_pairs = pytest.mark.skipif(
    not vector_pairs(HOST), reason="this processor has no products of bfloat16 pairs"
)


def numbers(*shape):
    """bfloat16 of very different size, so that every rounding shows."""
    values = RNG.standard_normal(shape) * 2.0 ** RNG.integers(-5, 6, shape)
    return values.astype(BFLOAT16)


def flushed(x):
    return np.where(np.abs(x) < 2.0**-126, 0.0, x).astype("float64")


def add_pairs(sums, left, right):
    """vdpbf16ps: the odd product, then the even one, each added in one rounding; no denormals."""
    for odd in (1, 0):
        product = flushed(left[..., odd]) * flushed(right[..., odd])
        sums = flushed((flushed(sums) + product).astype("float32"))
    return sums


def run(body, variables, feeds):
    mod = tvm.IRModule.from_expr(relay.Function(variables, body))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target=HOST)
    model = graph_executor.GraphModule(library["default"](cpu(0)))
    model.run(**feeds)
    return model.get_output(0).numpy(), library.get_source("asm")


def variable(shape, dtype="bfloat16"):
    return relay.var("x", shape=shape, dtype=dtype)


@needs_pairs
@pytest.mark.parametrize(("rows", "depth", "units"), [(1, 64, 48), (19, 70, 32), (5, 4, 21)])
def test_dense_adds_pairs_in_order(rows, depth, units):
    data, weight = numbers(rows, depth), numbers(units, depth)
    x = variable(data.shape)
    body = relay.nn.dense(x, relay.const(weight), out_dtype="float32")
    got, assembly = run(body, [x], {"x": data})
    assert "vdpbf16ps" in assembly
    sums = np.zeros((rows, units))
    for k in range(0, depth, 2):
        pair = slice(k, k + 2)
        sums = add_pairs(sums, data[:, None, pair], weight[None, :, pair])
    np.testing.assert_array_equal(got, sums.astype("float32"))


@needs_pairs
def test_denormal_numbers_count_as_zero():
    data = np.full((2, 2), 1e-39).astype(BFLOAT16)
    weight = np.full((16, 2), 1e30).astype(BFLOAT16)
    x = variable(data.shape)
    got, _ = run(relay.nn.dense(x, relay.const(weight), out_dtype="float32"), [x], {"x": data})
    assert not got.any()


CONVS = {
    "1x1": dict(data=(1, 32, 9, 7), kernel=(48, 32, 1, 1)),
    "3x3 with border": dict(data=(2, 16, 8, 8), kernel=(16, 16, 3, 3), padding=(1, 1)),
    "stride and dilation": dict(
        data=(1, 24, 13, 12), kernel=(20, 24, 3, 2), strides=(2, 1), dilation=(1, 2)
    ),
    "odd channels": dict(data=(1, 5, 6, 6), kernel=(16, 5, 3, 3)),
    "an image": dict(data=(1, 3, 15, 15), kernel=(64, 3, 7, 7), strides=(2, 2), padding=(3, 3)),
}  # fmt: skip


@needs_pairs
@pytest.mark.parametrize("case", CONVS)
def test_convolutions_sum_in_float32(case):
    how = dict(CONVS[case])
    data, kernel = numbers(*how.pop("data")), numbers(*how.pop("kernel"))
    x = variable(data.shape)
    body = relay.nn.conv2d(x, relay.const(kernel), out_dtype="float32", **how)
    got, assembly = run(body, [x], {"x": data})
    assert "vdpbf16ps" in assembly
    attrs = body.attrs.replace(out_dtype="float64")
    exact = op_registry.get("nn.conv2d").evaluate(attrs, data, kernel)
    scale = np.abs(exact).max()
    np.testing.assert_allclose(got / scale, exact / scale, atol=2e-6)


@needs_pairs
def test_blocked_convolution_adds_pairs_in_order():
    """Channels by blocks, then the window, then the pairs of a block."""
    data, kernel = numbers(1, 2, 6, 7, 16), numbers(2, 2, 3, 3, 8, 16, 2)
    attrs = BlockedConvAttrs(
        padding=(1, 1, 1, 1), data_layout="NCHW16c", kernel_layout="OIHW8i16o2i",
        out_layout="NCHW16c",
    )  # fmt: skip
    x = variable(data.shape)
    conv = op_registry.get("nn.contrib_conv2d_pairs")
    got, _ = run(conv(x, relay.const(kernel), attrs=attrs), [x], {"x": data})
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
    sums = np.zeros((2, 6, 7, 16))
    for chunk, ky, kx, pair in np.ndindex(2, 3, 3, 8):
        left = padded[0, chunk, ky : ky + 6, kx : kx + 7, 2 * pair : 2 * pair + 2]
        right = kernel[:, chunk, ky, kx, pair]
        sums = add_pairs(sums, left[None, :, :, None], right[:, None, None])
    np.testing.assert_array_equal(got[0], sums.astype("float32"))


GROUPED = {
    "a group is whole vectors": dict(data=(1, 64, 9, 8), kernel=(64, 32, 3, 3), groups=2),
    "zeros between the groups": dict(data=(1, 96, 7, 6), kernel=(69, 32, 3, 3), groups=3),
    "joined groups": dict(data=(2, 24, 8, 8), kernel=(32, 6, 3, 3), groups=4, padding=(1, 1)),
    "odd channels are joined": dict(data=(1, 30, 8, 9), kernel=(40, 3, 3, 2), groups=10),
    "one joined group": dict(data=(1, 14, 9, 9), kernel=(10, 7, 5, 5), groups=2, strides=(2, 2)),
    "a block between groups": dict(data=(1, 48, 7, 9), kernel=(32, 24, 1, 1), groups=2),
}  # fmt: skip


@needs_pairs
@pytest.mark.parametrize("case", GROUPED)
def test_convolutions_in_groups_sum_in_float32(case):
    how = dict(GROUPED[case])
    data, kernel = numbers(*how.pop("data")), numbers(*how.pop("kernel"))
    x = variable(data.shape)
    body = relay.nn.conv2d(x, relay.const(kernel), out_dtype="float32", **how)
    got, assembly = run(relay.nn.relu(body), [x], {"x": data})
    assert "vdpbf16ps" in assembly
    attrs = body.attrs.replace(out_dtype="float64")
    exact = np.maximum(op_registry.get("nn.conv2d").evaluate(attrs, data, kernel), 0)
    scale = np.abs(exact).max()
    np.testing.assert_allclose(got / scale, exact / scale, atol=2e-6)


@needs_pairs
@pytest.mark.parametrize("channels", [1, 3])
def test_groups_that_gain_nothing_stay_apart(channels):
    """One filter for each channel, and groups of odd channels that no two join."""
    data, kernel = numbers(1, 5 * channels, 6, 6), numbers(5 * channels, channels, 3, 3)
    x = variable(data.shape)
    body = relay.nn.conv2d(x, relay.const(kernel), groups=5, out_dtype="float32")
    got, _ = run(body, [x], {"x": data})
    exact = op_registry.get("nn.conv2d").evaluate(
        body.attrs.replace(out_dtype="float64"), data, kernel
    )
    np.testing.assert_allclose(got, exact, atol=2e-6 * np.abs(exact).max())


@needs_pairs
def test_what_follows_is_fused_and_rounded_once():
    data, weight, bias = numbers(8, 32), numbers(16, 32), numbers(16)
    x = variable(data.shape)
    product = relay.nn.dense(x, relay.const(weight))
    got, _ = run(relay.nn.relu(relay.nn.bias_add(product, relay.const(bias))), [x], {"x": data})
    sums = np.zeros((8, 16))
    for k in range(0, 32, 2):
        pair = slice(k, k + 2)
        sums = add_pairs(sums, data[:, None, pair], weight[None, :, pair])
    wanted = np.maximum(sums.astype("float32") + bias.astype("float32"), 0).astype(BFLOAT16)
    np.testing.assert_array_equal(got, wanted)


@needs_pairs
@pytest.mark.parametrize(
    ("left", "right", "transposed"),
    [
        ((2, 9, 24), (2, 24, 40), False),
        ((3, 8, 10), (1, 21, 10), True),
        ((1, 8, 24), (1, 1030, 24), True),  # too few rows for all cores: columns are shared
    ],
)
def test_products_of_variables_add_pairs_in_order(left, right, transposed):
    data, other = numbers(*left), numbers(*right)
    x, y = variable(left), relay.var("y", shape=right, dtype="bfloat16")
    body = relay.nn.batch_matmul(x, y, out_dtype="float32", transpose_b=transposed)
    got, assembly = run(body, [x, y], {"x": data, "y": other})
    assert "vdpbf16ps" in assembly
    columns = other if transposed else other.swapaxes(1, 2)
    sums = np.zeros((left[0], left[1], columns.shape[1]))
    for k in range(0, left[2], 2):
        pair = slice(k, k + 2)
        sums = add_pairs(sums, data[:, :, None, pair], columns[:, None, :, pair])
    np.testing.assert_array_equal(got, sums.astype("float32"))


@needs_pairs
def test_onnx_models_in_bfloat16_multiply_pairs():
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.BFLOAT16
    kernel = numbers(16, 8, 3, 3)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
        "model",
        [helper.make_tensor_value_info("x", kind, [1, 8, 5, 5])],
        [helper.make_tensor_value_info("y", kind, [1, 16, 3, 3])],
        [helper.make_tensor("w", kind, kernel.shape, kernel.tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    mod, params = relay.frontend.from_onnx(model)
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target=HOST, params=params)
    assert "vdpbf16ps" in library.get_source("asm")


@pytest.mark.parametrize("target", ["llvm -mcpu=skylake-avx512", "llvm -strict=1 -mcpu=znver5"])
def test_other_targets_sum_in_float32(target):
    x = variable((4, 32))
    body = relay.nn.dense(x, relay.const(numbers(16, 32)))
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target=target)
    assert "vdpbf16ps" not in library.get_source("asm")
