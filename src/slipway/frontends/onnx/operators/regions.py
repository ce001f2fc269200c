"""RoiAlign, MaxRoiPool and DeformConv."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_nodes
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.conv import padding_of
from slipway.frontends.onnx.values import Counted
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


@converter("RoiAlign")
def roi_align(node: NodeView) -> Any:
    """Pooling of regions with interpolation, in as many samples as `sampling_ratio` says."""
    dtype = node.type().dtype
    sample = relay.expand_dims(relay.cast(node.input(2), dtype), 1)
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    aligned = node.attr("coordinate_transformation_mode", default) == "half_pixel"
    size = (node.attr("output_height", 1), node.attr("output_width", 1))
    return relay.vision.roi_align(
        node.input(0), relay.concatenate([sample, node.input(1)], 1), size,
        node.attr("spatial_scale", 1.0), node.attr("sampling_ratio", 0),
        mode=node.attr("mode", "avg"), aligned=aligned,
    )  # fmt: skip


def select_boxes(node: NodeView) -> tuple[Any, Any]:
    """Return NonMaxSuppression's rows, padded with -1, and their number (1,)."""
    boxes = node.input(0)
    if node.attr("center_point_box", 0):  # x, y, width, height
        half = const(0.5, "float32")
        x, y, width, height = (relay.strided_slice(boxes, [i], [i + 1], axes=[2]) for i in range(4))
        sides = []
        for side in (relay.subtract, relay.add):
            sides += [side(y, relay.multiply(height, half)), side(x, relay.multiply(width, half))]
        boxes = relay.concatenate(sides, 2)

    def scalar(index: int, default: Any) -> Any:
        return relay.reshape(node.input(index), ()) if node.has(index) else default

    most, limit = scalar(2, 0), 0
    if isinstance(node.optional(2), relay.Constant):
        limit = max(node.ints(2, "the count")[0], 1)
    return relay.vision.all_class_non_max_suppression(  # type: ignore[no-any-return]
        boxes, node.input(1), most, scalar(3, 0.0), scalar(4, -np.inf), limit=limit
    )


@converter("NonMaxSuppression")
def non_max_suppression(node: NodeView) -> Any:
    """The boxes that overlap none with a greater score; how many depends on the data."""
    rows, count = select_boxes(node)
    return Counted(rows, count, 0)


@converter("DeformConv")
def deform_conv(node: NodeView) -> Any:
    """A convolution whose windows read at positions moved by the third input."""
    kernel = node.type(1).shape[2:]
    if len(kernel) != 2:
        raise node.unsupported(f"it has {len(kernel)} spatial axes; 2 are served")
    strides, dilation = node.attr("strides", (1, 1)), node.attr("dilations", (1, 1))
    result = relay.nn.deformable_conv2d(
        node.input(0), node.input(2), node.input(1), strides,
        padding_of(node, node.type().shape[2:], kernel, strides, dilation), dilation,
        node.attr("offset_group", 1), node.attr("group", 1),
        mask=node.input(4) if node.has(4) else None, cut=False,
    )  # fmt: skip
    if node.has(3):
        result = relay.add(result, relay.reshape(node.input(3), (-1, 1, 1)))
    return result


@converter("MaxRoiPool")
def max_roi_pool(node: NodeView) -> Any:
    """The largest element of each bin of a region."""
    if not isinstance(node.input(1), relay.Constant):
        return relay.vision.roi_pool(
            node.input(0), node.input(1), tuple(node.attr("pooled_shape")),
            node.attr("spatial_scale", 1.0),
        )  # fmt: skip
    regions = node.constant(1, "the regions").astype(np.float64)
    height, width = node.type().shape[2:]
    pooled, scale = node.attr("pooled_shape"), node.attr("spatial_scale", 1.0)
    take_nodes(len(regions) * prod(pooled))
    results = []
    for sample, *corners in regions:
        x1, y1, x2, y2 = (int(np.floor(c * scale + 0.5)) for c in corners)
        rows = _bins(y1, y2, pooled[0], height)
        columns = _bins(x1, x2, pooled[1], width)
        whole = relay.strided_slice(node.input(0), [int(sample)], [int(sample) + 1])
        bins = [_largest(node, whole, row, column) for row in rows for column in columns]
        shape = (1, node.type().shape[1], *pooled)
        results.append(relay.reshape(relay.stack(bins, 2), shape))
    return results[0] if len(results) == 1 else relay.concatenate(results, 0)


def _bins(first: int, last: int, count: int, extent: int) -> list[tuple[int, int]]:
    step = max(last - first + 1, 1) / count
    edges = [
        (first + int(np.floor(b * step)), first + int(np.ceil((b + 1) * step)))
        for b in range(count)
    ]
    return [(min(max(a, 0), extent), min(max(b, 0), extent)) for a, b in edges]


def _largest(node: NodeView, x: Expr, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    if rows[0] >= rows[1] or columns[0] >= columns[1]:  # an empty bin
        return relay.zeros(x.tensor_type.shape[:2], node.type().dtype)
    begin, end = [rows[0], columns[0]], [rows[1], columns[1]]
    return relay.max(relay.strided_slice(x, begin, end, axes=[2, 3]), (2, 3))
