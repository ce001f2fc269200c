"""Relay graphs as ONNX models, run by onnxruntime and read back."""

import numpy as np
import onnxruntime
import pytest

from slipway import relay
from slipway.contrib.target.onnx import to_onnx
from slipway.errors import ModelError
from slipway.ir.function import IRModule
from slipway.relay import testing
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(8)


def run(model, **inputs):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def test_a_network(tmp_path):
    mod, params = testing.resnet.get_workload(
        num_layers=18, image_shape=(3, 32, 32), num_classes=10
    )
    model = to_onnx(mod, params, "resnet", path=str(tmp_path / "resnet.onnx"))
    x = RNG.random((1, 3, 32, 32), dtype="float32")
    found = run(model, data=x)[0]
    again, weights = relay.frontend.from_onnx(str(tmp_path / "resnet.onnx"))
    bound = relay.bind_params_by_name(again["main"], weights)
    np.testing.assert_allclose(interpret(IRModule.from_expr(bound), x), found, rtol=1e-4, atol=1e-5)
    own = relay.bind_params_by_name(mod["main"], params)
    np.testing.assert_allclose(interpret(IRModule.from_expr(own), x), found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [13, 18])
def test_operators(opset):
    x = relay.var("x", shape=(2, 4, 6))
    c = relay.const(RNG.normal(size=(2, 3, 6)).astype("float32"))
    y = relay.nn.batch_matmul(relay.clip(x, -0.5, 0.9), c)
    parts = [
        relay.nn.softmax(relay.transpose(y, (0, 2, 1)), axis=1),
        relay.sum(y, axis=(1,), keepdims=True), relay.mean(y), relay.max(y, axis=[0], exclude=True),
        relay.concatenate([y, relay.nn.pad(y, [(0, 0), (1, 0), (0, 0)], 2.0)], 1),
        relay.cast(relay.nn.leaky_relu(relay.squeeze(relay.expand_dims(y, 0), [0])), "float64"),
    ]  # fmt: skip
    function = relay.Function([x], relay.Tuple(parts))
    value = RNG.normal(size=(2, 4, 6)).astype("float32")
    found = run(to_onnx(function, None, "ops", opset), x=value)
    for one, two in zip(found, interpret(IRModule.from_expr(function), value), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_what_is_not_served_is_named():
    x = relay.var("x", shape=(2, 4))
    function = relay.Function([x], relay.cumsum(relay.sort(x), axis=1))
    with pytest.raises(ModelError, match="cumsum"):
        to_onnx(function, {}, "f")
    with pytest.raises(ModelError, match="opset_version=7"):
        to_onnx(function, {}, "f", 7)
