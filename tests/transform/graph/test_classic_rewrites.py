"""Passes of classic TVM that scripts call: what they make computes the same."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import LoweringError
from slipway.ir.function import IRModule
from slipway.relay import transform
from slipway.relay.interpret import interpret
from slipway.transform import PassContext

RNG = np.random.default_rng(4)


def array(*shape):
    return RNG.normal(size=shape).astype("float32")


X, D = relay.var("x", shape=(1, 3, 8, 8)), relay.var("d", shape=(2, 8))
X_NP, D_NP = array(1, 3, 8, 8), array(2, 8)
BRANCHES = [relay.nn.relu(relay.nn.conv2d(X, relay.const(array(4 + n, 3, 3, 3)), padding=(1, 1)))
            for n in range(3)]  # fmt: skip


def count(mod, name):
    return mod["main"].astext().count(f"{name}(")


def same(mod, made, value):
    one, two = interpret(mod, value), interpret(made, value)
    pairs = zip(one, two, strict=True) if isinstance(one, tuple) else [(one, two)]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_parallel_convolutions(layout):
    given = relay.Tuple(BRANCHES)
    mod = IRModule.from_expr(relay.Function([X], given))
    if layout == "NHWC":
        mod = transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod)
    made = transform.CombineParallelConv2D(3)(mod)
    assert (count(mod, "nn.conv2d"), count(made, "nn.conv2d")) == (3, 1)
    same(mod, made, X_NP)
    assert count(transform.CombineParallelConv2D(4)(mod), "nn.conv2d") == 3


def test_parallel_products():
    parts = [relay.nn.dense(D, relay.const(array(5, 8))) for _ in range(3)]
    mod = IRModule.from_expr(relay.Function([D], parts[0] + parts[1] * parts[2]))
    made = transform.CombineParallelDense()(mod)
    assert count(made, "nn.dense") == 1
    same(mod, made, D_NP)
    batch = relay.reshape(D, (1, 2, 8))
    parts = [relay.nn.batch_matmul(batch, relay.const(array(1, 4, 8))) for _ in range(2)]
    mod = IRModule.from_expr(relay.Function([D], relay.Tuple(parts)))
    made = transform.CombineParallelBatchMatmul(2)(mod)
    assert count(made, "nn.batch_matmul") == 1
    same(mod, made, D_NP)


def test_a_padding_that_the_convolution_takes_over():
    padded = relay.nn.pad(X, [(0, 0), (0, 0), (1, 2), (0, 1)])
    mod = IRModule.from_expr(relay.Function([X], relay.nn.conv2d(
        padded, relay.const(array(4, 3, 3, 3)), padding=(1, 0))))  # fmt: skip
    made = transform.FoldExplicitPadding()(mod)
    assert (count(mod, "nn.pad"), count(made, "nn.pad")) == (1, 0)
    same(mod, made, X_NP)
    ones = relay.nn.pad(X, [(0, 0), (0, 0), (1, 1), (1, 1)], pad_value=1.0)
    mod = IRModule.from_expr(
        relay.Function([X], relay.nn.conv2d(ones, relay.const(array(4, 3, 3, 3))))
    )
    assert count(transform.FoldExplicitPadding()(mod), "nn.pad") == 1


def test_names_for_values_and_back():
    mod = IRModule.from_expr(relay.Function([X], relay.Tuple(BRANCHES)))
    named = transform.ToANormalForm()(mod)
    assert named["main"].astext().count("let ") == 7
    same(mod, named, X_NP)
    assert "let " not in transform.ToGraphNormalForm()(named)["main"].astext()
    fused = transform.FuseOps()(transform.InferType()(mod))
    back = transform.DefuseOps()(fused)
    assert count(back, "nn.relu") == 3
    same(mod, back, X_NP)
    assert str(transform.InferTypeLocal(BRANCHES[0])) == "Tensor[(1, 4, 8, 8), float32]"


def test_quantised_parts_in_integers():
    zero = relay.const(0)
    x = relay.var("x", shape=(1, 3, 8, 8), dtype="int8")
    weights = relay.const(RNG.integers(-90, 90, (4, 3, 3, 3)).astype("int8"))
    product = relay.nn.conv2d(relay.qnn.op.dequantize(x, relay.const(2.0), zero),
                              relay.qnn.op.dequantize(weights, relay.const(0.5), zero))  # fmt: skip
    out = relay.qnn.op.quantize(product, relay.const(64.0), zero, out_dtype="int8")
    mod = IRModule.from_expr(relay.Function([x], out))
    made = transform.FakeQuantizationToInteger()(mod)
    assert (count(mod, "qnn.dequantize"), count(made, "qnn.dequantize")) == (2, 0)
    value = RNG.integers(-90, 90, (1, 3, 8, 8)).astype("int8")
    assert np.abs(interpret(mod, value).astype(int) - interpret(made, value)).max() <= 1
    left = IRModule.from_expr(
        relay.Function([x], relay.exp(relay.qnn.op.dequantize(x, relay.const(2.0), zero)))
    )
    with pytest.raises(LoweringError, match="still dequantised"):
        transform.FakeQuantizationToInteger(hard_fail=True)(left)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_factors_of_inputs_move_into_the_weights_behind_them(groups, layout):
    """Of each convolution's own input, one after the other, also where two read one value."""
    kernel = "OIHW" if layout == "NCHW" else "HWIO"
    scale = (6, 1, 1) if layout == "NCHW" else (6,)
    shape = (1, 6, 5, 5) if layout == "NCHW" else (1, 5, 5, 6)
    weights = [array(6, 6 // groups, 3, 3) / 8 for _ in range(3)]
    if layout == "NHWC":
        weights = [weight.transpose(2, 3, 1, 0) for weight in weights]

    def conv(value, weight):
        return relay.nn.conv2d(value, relay.const(weight), padding=(1, 1), groups=groups,
                               data_layout=layout, kernel_layout=kernel, kernel_size=(3, 3),
                               channels=6)  # fmt: skip

    x = relay.var("x", shape=shape)
    y = conv(x * relay.const(array(*scale)), weights[0])
    y = conv(relay.const(array(*scale)) * y, weights[1]) * relay.const(array(*scale))
    mod = IRModule.from_expr(relay.Function([x], conv(y, weights[2]) + y))
    made = transform.ForwardFoldScaleAxis()(mod)
    assert (count(mod, "multiply"), count(made, "multiply")) == (3, 1)
    same(mod, made, array(*shape))


def test_factors_of_inputs_that_differ_along_an_image_stay():
    d = relay.var("d", shape=(2, 8))
    dense = relay.nn.dense(d * relay.const(array(8)), relay.const(array(4, 8)))
    kept = relay.nn.dense(d * relay.const(array(2, 1)), relay.const(array(4, 8)))
    mod = IRModule.from_expr(relay.Function([d], dense + kept))
    made = transform.ForwardFoldScaleAxis()(mod)
    assert count(made, "multiply") == 1
    same(mod, made, D_NP)


def test_change_batch():
    x, w = relay.var("x", shape=(1, 3)), relay.const(array(5, 3))
    mod = IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, w))))
    made = transform.ChangeBatch({x: 0}, batch_size=4)(mod)
    assert str(made["main"].params[0].type) == "Tensor[(4, 3), float32]"
    assert str(made["main"].ret_type) == "Tensor[(4, 5), float32]"
    with pytest.raises(LoweringError, match="it has no axis 2"):
        transform.ChangeBatch({x: 2})(mod)


@pytest.mark.parametrize("axis", [0, 1])
def test_split_args(axis):
    inputs = [relay.var(f"x{i}", shape=(2, 3)) for i in range(20)]
    mod = IRModule.from_expr(relay.Function(inputs, relay.concatenate(inputs, axis)))
    made = transform.SplitArgs(6)(mod)
    assert count(made, "concatenate") > 4
    values = [array(2, 3) for _ in inputs]
    np.testing.assert_array_equal(interpret(made, *values), np.concatenate(values, axis))
    assert count(transform.SplitArgs(-1)(mod), "concatenate") == 1
    with pytest.raises(ValueError, match="write a whole number from 3"):
        transform.SplitArgs(2)


def test_passes_that_keep_the_graph():
    mod = transform.InferType()(IRModule.from_expr(relay.Function([X], BRANCHES[0])))
    for each in (transform.AnnotateSpans, transform.CanonicalizeCast):
        assert str(each()(mod)) == str(mod)


def test_batching_ops():
    mod = IRModule.from_expr(relay.Function([X], relay.Tuple(BRANCHES)))
    assert count(transform.BatchingOps()(mod), "nn.conv2d") == 3  # they are of level 4
    with PassContext(opt_level=4):
        made = transform.BatchingOps()(mod)
    assert count(made, "nn.conv2d") == 1
    same(mod, made, X_NP)
