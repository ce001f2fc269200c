"""Operators of com.microsoft against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from graphs import helper, model

from slipway import relay
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


def contrib(kind, inputs, output="q1", **attributes):
    return helper.make_node(kind, inputs, [output], domain="com.microsoft", **attributes)


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


@pytest.mark.parametrize("kind", ["Gelu", "FastGelu"])
def test_gelu(kind):
    check([contrib(kind, ["x"], "y")], {}, 1e-5)


def test_skip_layer_normalization():
    weights = {n: RNG.standard_normal(6).astype(np.float32) for n in ("gamma", "beta", "bias")}
    inputs = ["x", "x", "gamma", "beta", "bias"]
    check([contrib("SkipLayerNormalization", inputs, "y")], weights, 1e-5)
