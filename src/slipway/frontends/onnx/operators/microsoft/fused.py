"""Convolutions and products with what onnxruntime's optimiser fuses into them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.conv import conv
from slipway.frontends.onnx.operators.matmul import gemm
from slipway.frontends.onnx.operators.microsoft.channels import channels_first, channels_last
from slipway.frontends.onnx.operators.microsoft.layers import gelu
from slipway.frontends.onnx.operators.pool import window_pool
from slipway.frontends.product import product_of


def _line(x: Any, alpha: Any, beta: Any) -> Any:
    return relay.clip(relay.add(relay.multiply(x, alpha), beta), 0, 1)


# An activation, and what its numbers are where a file gives none.
_ACTIVATIONS: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "Relu": (relay.nn.relu, ()),
    "Sigmoid": (relay.sigmoid, ()),
    "Tanh": (relay.tanh, ()),
    "LeakyRelu": (relay.nn.leaky_relu, (0.01,)),
    "Clip": (relay.clip, (-3.4028234663852886e38, 3.4028234663852886e38)),
    "HardSigmoid": (_line, (0.2, 0.5)),
}


def _activated(node: NodeView, value: Any, given: tuple[float, ...]) -> Any:
    if node.attr("activation") is None:
        return value
    function, usual = node.choice("activation", "", _ACTIVATIONS)
    numbers: tuple[Any, ...] = (*given, *usual[len(given) :])[: len(usual)]
    if function is _line:
        numbers = tuple(node.like(v) for v in numbers)
    return function(value, *numbers)


@converter("com.microsoft.FusedConv")
def fused_conv(node: NodeView) -> Any:
    """A convolution with a bias, a term that is added, and an activation."""
    result = conv(node)
    if node.has(3):
        result = relay.add(result, node.input(3))
    return _activated(node, result, node.attr("activation_params", ()))


@converter("com.microsoft.NhwcConv", "com.microsoft.NhwcFusedConv")
def channels_last_conv(node: NodeView) -> Any:
    """A convolution of channels last, of data and of weights."""
    node.inputs[:2] = [channels_first(node.input(0)), channels_first(node.input(1))]
    if node.has(3):
        node.inputs[3] = channels_first(node.input(3))
    return channels_last(fused_conv(node))


@converter("com.microsoft.NhwcMaxPool")
def channels_last_pool(node: NodeView) -> Any:
    """The maximum of windows, of channels last."""
    node.kind, node.inputs[0] = "MaxPool", channels_first(node.input(0))
    return channels_last(window_pool(node))


@converter("com.microsoft.FusedGemm")
def fused_gemm(node: NodeView) -> Any:
    """Gemm and an activation."""
    named = [node.attr(f"activation_{name}") for name in ("alpha", "beta")]
    return _activated(node, gemm(node), tuple(v for v in named if v is not None))


@converter("com.microsoft.GemmFastGelu")
def gemm_gelu(node: NodeView) -> Any:
    """A product, a bias, and gelu by the tanh approximation."""
    product = product_of(node.input(0), node.input(1))
    product = relay.add(product, node.input(2)) if node.has(2) else product
    node.kind, node.inputs = "FastGelu", [product]
    return gelu(node)


@converter("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def fused_matmul(node: NodeView) -> Any:
    """A product of transposed matrices, times alpha.

    transBatch moves the first axis behind the others of the batch before anything else.
    """
    a, b = (_transposed(node, index, side) for index, side in enumerate("AB"))
    product = node.narrow(product_of(a, b, node.wide()))
    alpha = node.attr("alpha", 1.0)
    return product if alpha == 1.0 else relay.multiply(product, node.like(alpha))


def _transposed(node: NodeView, index: int, side: str) -> Any:
    value, rank = node.input(index), node.rank(index)
    order = list(range(rank))
    if rank > 2 and node.attr(f"transBatch{side}", 0):
        order = [*order[1:-1], 0, order[-1]]
    if rank > 1 and node.attr(f"trans{side}", 0):
        order[-2:] = order[:-3:-1]
    return value if order == sorted(order) else relay.transpose(value, order)


@converter(
    *(
        f"com.microsoft.nchwc.{kind}"
        for kind in (
            "Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "ReorderInput",
            "ReorderOutput", "Upsample",
        )
    )
)  # fmt: skip
def in_blocks(node: NodeView) -> Any:
    """Weights in blocks of the machine that saved the file, which does not say how large they are.

    Raises UnsupportedNode.
    """
    raise node.unsupported(
        "its channels are in blocks of the processor that saved this file: save it with "
        "graph_optimization_level ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL, or take the file before"
    )
