"""Builders of small ONNX models."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

TYPE = {
    "float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL, "uint8": TensorProto.UINT8, "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
}  # fmt: skip


def model(nodes, inputs, outputs, weights=None, opset=17):
    """Make a model; `inputs` name -> (dtype, shape), `outputs` names, `weights` name -> array."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TYPE[d], s) for n, (d, s) in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def small_cnn():
    """Conv, BatchNorm, Relu, residual sum, pooling, Gemm, Softmax: a network in miniature."""
    rng = np.random.default_rng(1)

    def normal(*shape):
        return (rng.standard_normal(shape) * 0.3).astype(np.float32)

    weights = {
        "w0": normal(8, 3, 3, 3), "w1": normal(8, 1, 3, 3), "w2": normal(5, 8), "b2": normal(5),
        "scale": rng.uniform(0.5, 1.5, 8).astype(np.float32), "bias": normal(8),
        "mean": normal(8), "var": rng.uniform(0.5, 1.5, 8).astype(np.float32),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0"], ["c0"], name="conv0", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c0", "scale", "bias", "mean", "var"], ["n0"], name="bn0"),
        node("Relu", ["n0"], ["r0"], name="relu0"),
        node("Conv", ["r0", "w1"], ["c1"], name="depthwise1", group=8, pads=[1, 1, 1, 1]),
        node("Add", ["c1", "r0"], ["s1"], name="sum1"),
        node("GlobalAveragePool", ["s1"], ["p1"], name="pool1"),
        node("Flatten", ["p1"], ["f1"], name="flatten1"),
        node("Gemm", ["f1", "w2", "b2"], ["g2"], name="fc", transB=1),
        node("Softmax", ["g2"], ["probabilities"], name="softmax"),
    ]
    return model(nodes, {"x": ("float32", (1, 3, 16, 16))}, ["probabilities"], weights)
