"""Operators on arrays that onnxruntime had before the standard did, and some that it has alone."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.linear_algebra import inverse
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.indexing import gather_nd, trilu
from slipway.frontends.onnx.operators.shape import pad
from slipway.frontends.product import product_of

converter("com.microsoft.GatherND")(gather_nd)
converter("com.microsoft.Pad")(pad)
converter("com.microsoft.Trilu")(trilu)


@converter("com.microsoft.ExpandDims")
def expand_dims(node: NodeView) -> Any:
    """One new axis."""
    return relay.expand_dims(node.input(0), node.ints(1, "the axis")[0])


@converter("com.microsoft.Inverse")
def inverses(node: NodeView) -> Any:
    """The inverse of each matrix."""
    return inverse(node.input(0))


@converter("com.microsoft.CDist")
def distances(node: NodeView) -> Any:
    """How far each row of one matrix lies from each of another."""
    kinds = {"euclidean": relay.sqrt, "sqeuclidean": lambda squares: squares}
    finish = node.choice("metric", "sqeuclidean", kinds)
    a, b = node.input(0), node.input(1)
    own = [relay.sum(relay.multiply(x, x), 1) for x in (a, b)]
    products = product_of(a, relay.transpose(b))
    squares = relay.add(relay.expand_dims(own[0], 1), relay.expand_dims(own[1], 0))
    squares = relay.subtract(squares, relay.multiply(products, node.like(2)))
    return finish(relay.maximum(squares, node.like(0)))


@converter("com.microsoft.CropAndResize")
def crop_and_resize(node: NodeView) -> Any:
    """Boxes cut out of images and resampled to one size."""
    methods = {"bilinear": "bilinear", "nearest": "nearest_neighbor"}
    height, width = node.ints(3, "the size of a crop")
    return relay.image.crop_and_resize(
        node.input(0),
        node.input(1),
        node.input(2),
        (height, width),
        "NCHW",
        node.choice("mode", "bilinear", methods),
        node.attr("extrapolation_value", 0.0),
    )
