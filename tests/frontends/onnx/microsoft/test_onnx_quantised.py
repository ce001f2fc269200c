"""Operators of com.microsoft against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from graphs import helper, model
from microsoft import check_both, contrib, run_both

import slipway as tvm
from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.contrib.graph_executor import GraphModule
from slipway.errors import OpNotImplemented
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 6)).astype(np.float32)


def check(nodes, weights, tolerance=0.0):
    proto = model(nodes, {"x": ("float32", (4, 6))}, ["y"], weights)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    mod, _ = relay.frontend.from_onnx(proto)
    want = session.run(None, {"x": X})[0]
    np.testing.assert_allclose(interpret(mod, x=X), want, rtol=tolerance, atol=tolerance)


QUANTISE = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])
BACK = helper.make_node("DequantizeLinear", ["q1", "t", "u"], ["y"])
SCALES = {
    "s": np.float32(0.03), "z": np.uint8(120), "t": np.float32(0.05), "u": np.uint8(99),
    "b": RNG.integers(0, 255, (3, 6)).astype(np.uint8), "bs": np.float32(0.02),
    "bz": np.uint8(110), "bias": RNG.integers(-500, 500, 3).astype(np.int32),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
def test_binary(kind):
    check([QUANTISE, contrib(kind, ["q", "s", "z"] * 2 + ["t", "u"]), BACK], SCALES)


@pytest.mark.parametrize("kind", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_unary(kind):
    check([QUANTISE, contrib(kind, ["q", "s", "z", "t", "u"]), BACK], SCALES)


def test_gemm():
    inputs = ["q", "s", "z", "b", "bs", "bz", "bias", "t", "u"]
    check([QUANTISE, contrib("QGemm", inputs, transB=1), BACK], SCALES)


def test_concat():
    inputs = ["t", "u", "q", "s", "z", "q", "s", "z"]
    check([QUANTISE, contrib("QLinearConcat", inputs, axis=1), BACK], SCALES)


POOLS = [
    {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "count_include_pad": 1},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": 1},
    {"kernel_shape": [3], "pads": [1, 1], "strides": [2]},
]


def check_quantised(node, shape, dtype="uint8", off=0, **more):
    """Run a node of quantised values, whose result may be off by so many steps."""
    scales = {"s": np.float32(0.03), "t": np.float32(0.0217)}
    scales |= {"z": np.array(17, dtype), "u": np.array(9, dtype)}
    x = RNG.standard_normal(shape).astype(np.float32)
    (got,), (want,) = run_both([QUANTISE, node, BACK], {"x": x}, ["y"], {**scales, **more})
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= off * 0.02171


@pytest.mark.parametrize("attributes", POOLS, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_average_pools_of_quantised_values(attributes, dtype):
    node = contrib("QLinearAveragePool", ["q", "s", "z", "t", "u"], **attributes)
    check_quantised(node, (2, 4, 8, 6)[: 2 + len(attributes["kernel_shape"])], dtype)


@pytest.mark.parametrize("last", [0, 1])
def test_global_pools_of_quantised_values(last):
    node = contrib("QLinearGlobalAveragePool", ["q", "s", "z", "t", "u"], channels_last=last)
    check_quantised(node, (2, 4, 8, 6), off=1)  # summed in integers there: ties fall otherwise


def test_a_choice_of_quantised_values():
    chosen = RNG.integers(0, 2, (4, 6)).astype(bool)
    node = contrib("QLinearWhere", ["chosen", "q", "s", "z", "b", "t", "z", "t", "u"])
    other = RNG.integers(0, 256, 6).astype(np.uint8)
    check_quantised(node, (4, 6), chosen=chosen, b=other)


@pytest.mark.parametrize("kind", ["Gelu", "FastGelu"])
def test_gelu(kind):
    check([contrib(kind, ["x"], "y")], {}, 1e-5)


def test_skip_layer_normalization():
    weights = {n: RNG.standard_normal(6).astype(np.float32) for n in ("gamma", "beta", "bias")}
    inputs = ["x", "x", "gamma", "beta", "bias"]
    check([contrib("SkipLayerNormalization", inputs, "y")], weights, 1e-5)


def test_matmul_integer_of_16_bits_wraps():
    values = RNG.integers(-32768, 32768, (6, 3)).astype(np.int16)
    cast = helper.make_node("Cast", ["x8"], ["x16"], to=5)
    scaled = helper.make_node("Mul", ["x", "factor"], ["x8"])
    back = helper.make_node("Cast", ["product"], ["y"], to=1)
    product = contrib("MatMulInteger16", ["x16", "b"], "product")
    check([scaled, cast, product, back], {"b": values, "factor": np.float32(9000)})


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_embedding(segments, masked):
    tables = {
        name: RNG.standard_normal(shape).astype(np.float32)
        for name, shape in (("word", (9, 8)), ("position", (7, 8)), ("segment", (2, 8)),
                            ("gamma", 8), ("beta", 8))
    }  # fmt: skip
    inputs = {"ids": RNG.integers(0, 9, (2, 5)).astype(np.int32)}
    names = ["ids", "", "word", "position", "", "gamma", "beta", ""]
    if segments:
        inputs["sides"] = RNG.integers(0, 2, (2, 5)).astype(np.int32)
        names[1], names[4] = "sides", "segment"
    if masked:
        inputs["mask"] = np.array([[1] * 5, [1, 1, 1, 0, 0]], np.int32)
        names[7] = "mask"
    node = helper.make_node(
        "EmbedLayerNormalization", names, ["y", "words"], domain="com.microsoft", epsilon=1e-4
    )
    cast = helper.make_node("Cast", ["words"], ["count"], to=1)
    check_both([node, cast], inputs, ["y", "count"], tables)


ATTENTION = {
    "plain": {},
    "lengths": {"mask": np.array([2, 3], np.int32)},
    "keys": {"mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32)},
    "rows": {"mask": RNG.integers(0, 2, (2, 3, 3)).astype(np.int32) | np.eye(3, dtype=np.int32)},
    "causal": {"unidirectional": 1},
    "scaled": {"scale": 0.25},
    "past": {"past": RNG.standard_normal((2, 2, 2, 2, 4)).astype(np.float32)},
    "past_causal": {
        "past": RNG.standard_normal((2, 2, 2, 2, 4)).astype(np.float32), "unidirectional": 1,
    },
    "bias": {"extra": RNG.standard_normal((2, 2, 3, 3)).astype(np.float32)},
}  # fmt: skip


@pytest.mark.parametrize("case", ATTENTION)
def test_attention(case):
    given = dict(ATTENTION[case])
    inputs = {"x": RNG.standard_normal((2, 3, 6)).astype(np.float32)}
    names = ["x", "weight", "offset", "", "", ""]
    for name, at in (("mask", 3), ("past", 4), ("extra", 5)):
        if name in given:
            inputs[name], names[at] = given.pop(name), name
    weights = {
        "weight": RNG.standard_normal((6, 24)).astype(np.float32),
        "offset": RNG.standard_normal(24).astype(np.float32),
    }
    outputs = ["y", "present"] if "past" in inputs else ["y"]
    node = helper.make_node(
        "Attention", names, outputs, domain="com.microsoft", num_heads=2, **given
    )
    check_both([node], inputs, outputs, weights)


def test_attention_that_is_not_served():
    weights = {"w": np.zeros((6, 24), np.float32), "b": np.zeros(24, np.float32)}
    x = np.zeros((2, 3, 6), np.float32)
    for attributes, mask, said in (
        ({"num_heads": 5}, None, "5 heads do not divide"),
        ({"num_heads": 2, "do_rotary": 1}, None, "rotary"),
        ({"num_heads": 2}, np.zeros(4, np.int32), r"its mask has the shape \(4,\)"),
    ):
        inputs = {"x": x} if mask is None else {"x": x, "m": mask}
        names = ["x", "w", "b"] + ["m"] * (mask is not None)
        node = helper.make_node("Attention", names, ["y"], domain="com.microsoft", **attributes)
        listed = {n: (a.dtype.name, a.shape) for n, a in inputs.items()}
        proto = model([node], listed, ["y"], weights)
        proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        with pytest.raises(OpNotImplemented, match=said):
            relay.frontend.from_onnx(proto)


@pytest.mark.parametrize("per_gate", [False, True])
def test_lstm_with_integer_weights(per_gate):
    """Data and states are rounded to 8 bits at every step, from states of zero and others."""
    hidden, rng = 5, np.random.default_rng(4)
    inputs = {
        "x": rng.standard_normal((6, 2, 4)).astype(np.float32),
        "h": rng.uniform(-1, 1, (2, 2, hidden)).astype(np.float32),
        "c": rng.standard_normal((2, 2, hidden)).astype(np.float32),
    }
    zeros = np.zeros((2, 4 * hidden) if per_gate else (2,), np.int8)
    weights = {
        "w": rng.integers(-127, 128, (2, 4, 4 * hidden)).astype(np.int8),
        "r": rng.integers(-127, 128, (2, hidden, 4 * hidden)).astype(np.int8),
        "b": rng.standard_normal((2, 8 * hidden)).astype(np.float32),
        "ws": rng.uniform(0.005, 0.01, zeros.shape).astype(np.float32), "wz": zeros,
        "rs": rng.uniform(0.005, 0.01, zeros.shape).astype(np.float32), "rz": zeros,
    }  # fmt: skip
    for states in (["h", "c"], ["", ""]):
        names = ["x", "w", "r", "b", "", *states, "", "ws", "wz", "rs", "rz"]
        node = helper.make_node(
            "DynamicQuantizeLSTM", names, ["y", "yh", "yc"], domain="com.microsoft",
            hidden_size=hidden, direction="bidirectional",
        )  # fmt: skip
        given = {n: v for n, v in inputs.items() if n == "x" or n in states}
        check_both([node], given, ["y", "yh", "yc"], weights)


def test_lstm_of_integers_of_any_batch_and_length():
    """The products are of integers: a step agrees, from onnxruntime's own states."""
    hidden, rng = 32, np.random.default_rng(5)
    weights = {
        "w": rng.integers(-127, 128, (1, 16, 4 * hidden)).astype(np.int8),
        "r": rng.integers(-127, 128, (1, hidden, 4 * hidden)).astype(np.int8),
        "b": rng.standard_normal((1, 8 * hidden)).astype(np.float32),
        "ws": np.float32([0.01]), "wz": np.int8([3]), "rs": np.float32([0.006]), "rz": np.int8([0]),
    }  # fmt: skip
    names = ["x", "w", "r", "b", "", "h", "c", "", "ws", "wz", "rs", "rz"]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y", "yh", "yc"], domain="com.microsoft", hidden_size=hidden
    )
    listed = {n: ("float32", (s, "n", w)) for n, s, w in (("x", "t", 16), ("h", 1, hidden))}
    proto = model([node], {**listed, "c": listed["h"]}, ["y", "yh", "yc"], weights)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    mod, params = relay.frontend.from_onnx(proto, dims={"n": (1, 4), "t": (1, 9)})
    packed = optimize(mod, params, tvm.target.Target("llvm -mcpu=cascadelake"), 3, layout_lanes=16)
    assert "nn.dense(" not in str(packed)
    library = relay.build(mod, "llvm", params=params)
    module = GraphModule(library["default"](tvm.cpu(0)))
    for batch in (1, 4, 3):
        h, c = np.zeros((2, 1, batch, hidden), np.float32)
        for steps in (1, 1, 9, 1):
            x = rng.standard_normal((steps, batch, 16)).astype(np.float32)
            module.run(x=x, h=h, c=c)
            y, h, c = session.run(None, {"x": x, "h": h, "c": c})
            # A step of rounding is 1/127 of a state, times a weight of 0.8 at most.
            level = 1e-5 if steps == 1 else 0.02
            np.testing.assert_allclose(module.get_output(0).numpy(), y, atol=level)


def test_linear_regressor():
    x = RNG.standard_normal((2, 4)).astype(np.float32)
    for targets, offset in ((1, [0.5]), (3, None)):
        factors = RNG.standard_normal(4 * targets).astype(np.float32)
        given = {"intercepts": offset} if offset else {}
        node = helper.make_node(
            "LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", coefficients=factors,
            targets=targets, **given,
        )  # fmt: skip
        check_both([node], {"x": x}, ["y"])


def test_lengths_and_regions_that_are_inputs():
    x = RNG.standard_normal((4, 3, 2)).astype(np.float32)
    node = helper.make_node("ReverseSequence", ["x", "n"], ["y"], time_axis=0, batch_axis=1)
    check_both([node], {"x": x, "n": np.array([4, 1, 3], np.int64)}, ["y"])
    image = RNG.standard_normal((2, 3, 9, 8)).astype(np.float32)
    regions = np.array([[0, 1, 1, 6, 7], [1, 0, 0, 7, 8], [0, 3, 2, 3, 2]], np.float32)
    node = helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[2, 3])
    check_both([node], {"x": image, "r": regions}, ["y"])
