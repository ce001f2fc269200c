"""Nodes of com.microsoft, run here and in onnxruntime."""

import numpy as np
import onnxruntime
from graphs import helper, model

from slipway import relay
from slipway.relay.interpret import interpret


def contrib(kind, inputs, output="q1", **attributes):
    return helper.make_node(kind, inputs, [output], domain="com.microsoft", **attributes)


def run_both(nodes, inputs, outputs, weights=()):
    """Run a model of inputs (name -> array) here and in onnxruntime."""
    proto = _proto(nodes, inputs, outputs, weights)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # with more, states of an LSTM have a range for each thread
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    got = _here(proto, inputs)
    return got if isinstance(got, list | tuple) else [got], session.run(None, inputs)


def _here(proto, inputs):
    return interpret(relay.frontend.from_onnx(proto)[0], **inputs)


def run_here(nodes, inputs, outputs, weights=()):
    return _here(_proto(nodes, inputs, outputs, weights), inputs)


def _proto(nodes, inputs, outputs, weights):
    listed = {n: (a.dtype.name, a.shape) for n, a in inputs.items()}
    proto = model(nodes, listed, outputs, dict(weights))
    for domain in ("com.microsoft", "ai.onnx.ml"):
        proto.opset_import.append(helper.make_opsetid(domain, 1))
    return proto


def check_both(nodes, inputs, outputs, weights=(), tolerance=1e-5):
    for got, want in zip(*run_both(nodes, inputs, outputs, weights), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
