"""Write the trained network as ONNX, BatchNorm still in it.

BatchNorm is left unfolded on purpose: folding it into the convolution in front is work for
the compiler, and the example shows that it does it.
"""

from __future__ import annotations

from pathlib import Path

import layers
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
INPUT, OUTPUT = "image", "logits"
DOC = (
    "Handwritten digits, 8x8 grey levels divided by 16, to ten logits. Trained by Slipway's "
    "examples/digits/train.py on the UCI 'Optical Recognition of Handwritten Digits' data set "
    "(E. Alpaydin, C. Kaynak, 1998, CC BY 4.0) as packaged in scikit-learn."
)


class GraphWriter:
    """Collects nodes and initialisers; `value` is the name of the tensor written last."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.value = INPUT

    def weight(self, name: str, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def node(self, op: str, name: str, *inputs: str, output: str | None = None, **attrs) -> None:
        output = output or f"{name}_out"
        self.nodes.append(helper.make_node(op, [self.value, *inputs], [output], name=name, **attrs))
        self.value = output


def to_onnx(network: list[tuple[str, layers.Layer]], path: Path) -> None:
    """Write `network`, a list of (name, layer), to `path`; the last layer gives the logits."""
    writer = GraphWriter()
    for name, layer in network:
        write_layer(writer, name, layer)
    graph = helper.make_graph(
        writer.nodes,
        "digits",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, 10])],
        initializer=writer.weights,
        doc_string=DOC,
    )
    model = helper.make_model(
        graph,
        producer_name="slipway-examples-digits",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
    )
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def write_layer(writer: GraphWriter, name: str, layer: layers.Layer) -> None:
    """Append the ONNX form of one layer."""
    match layer:
        case layers.Conv3x3():
            taps, channels_out = layer.weight.value.shape
            kernel = layer.weight.value.reshape(3, 3, taps // 9, channels_out)
            weight = writer.weight(f"{name}_weight", kernel.transpose(3, 2, 0, 1))
            writer.node("Conv", name, weight, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        case layers.DepthwiseConv3x3():
            channels = layer.weight.value.shape[1]
            kernel = layer.weight.value.reshape(3, 3, channels).transpose(2, 0, 1)[:, None]
            weight = writer.weight(f"{name}_weight", kernel)
            writer.node(
                "Conv", name, weight, kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=channels
            )
        case layers.Pointwise():
            weight = writer.weight(f"{name}_weight", layer.weight.value.T[:, :, None, None])
            writer.node("Conv", name, weight, kernel_shape=[1, 1])
        case layers.BatchNorm():
            writer.node(
                "BatchNormalization",
                name,
                writer.weight(f"{name}_gamma", layer.gamma.value),
                writer.weight(f"{name}_beta", layer.beta.value),
                writer.weight(f"{name}_mean", layer.mean),
                writer.weight(f"{name}_var", layer.var),
                epsilon=layer.epsilon,
            )
        case layers.Relu():
            writer.node("Relu", name)
        case layers.MaxPool2x2():
            writer.node("MaxPool", name, kernel_shape=[2, 2], strides=[2, 2])
        case layers.AveragePool2x2():
            writer.node("AveragePool", name, kernel_shape=[2, 2], strides=[2, 2])
        case layers.Flatten():
            writer.node("Flatten", name, axis=1)
        case layers.Dense():
            weight = writer.weight(f"{name}_weight", layer.weight.value.T)
            bias = writer.weight(f"{name}_bias", layer.bias.value)
            writer.node("Gemm", name, weight, bias, output=OUTPUT, transB=1)
        case _:
            raise TypeError(f"no ONNX form for layer {name!r} of class {type(layer).__name__}")
