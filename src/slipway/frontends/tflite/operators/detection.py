"""TFLite_Detection_PostProcess: boxes from anchors, then the best that do not overlap.

The fast form, one class for each box.  The selection is greedy and unrolled: each step takes the
box of the largest score and drops what overlaps it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.flexbuffer import read_map
from slipway.relay.op_registry import const

MAX_DETECTIONS = 200
DROPPED = -3.0e38


@converter("CUSTOM:TFLite_Detection_PostProcess")
def detection_post_process(node: NodeView) -> Any:
    """Inputs: encoded boxes (1, N, 4), class scores (1, N, classes), anchors (N, 4)."""
    options = read_map(node.operator.custom_options)
    count = int(options.get("max_detections", 0))
    if options.get("use_regular_nms", False) or options.get("max_classes_per_detection", 1) != 1:
        raise node.unsupported("only the fast form with one class per detection is supported")
    if not 0 < count <= MAX_DETECTIONS:
        raise node.unsupported(f"max_detections is {count}; it must be 1 to {MAX_DETECTIONS}")
    node.need_dtype("float32")
    node.need_dtype("float32", position=1)
    boxes = _decoded(node, options)
    total = node.shape()[1]
    offset = node.shape(1)[2] - int(options.get("num_classes", 0))
    if node.shape()[0] != 1 or offset not in (0, 1):
        raise node.unsupported(f"its scores have the shape {node.shape(1)}")
    scores = relay.strided_slice(
        relay.reshape(node[1], node.shape(1)[1:]), [0, offset], list(node.shape(1)[1:])
    )
    classes = relay.argmax(scores, 1, dtype="int32")
    best = relay.max(scores, 1)
    threshold = const(float(options.get("nms_score_threshold", 0.0)), "float32")
    dropped = const(DROPPED, "float32")
    live = relay.where(relay.less(best, threshold), dropped, best)
    picked, found = selected(
        boxes, live, count, float(options.get("nms_iou_threshold", 0.5)), total
    )
    valid = relay.greater(found, dropped)
    zero = const(0.0, "float32")
    corners = relay.stack([relay.take(side, picked, 0) for side in boxes], 1)
    rows = relay.where(relay.reshape(valid, (count, 1)), corners, zero)
    labels = relay.where(valid, relay.cast(relay.take(classes, picked, 0), "float32"), zero)
    amount = relay.sum(relay.cast(valid, "float32"), 0, True)
    return [
        relay.reshape(rows, (1, count, 4)),
        relay.reshape(labels, (1, count)),
        relay.reshape(relay.where(valid, found, zero), (1, count)),
        amount,
    ]


def _decoded(node: NodeView, options: dict[str, Any]) -> list[Any]:
    """Return ymin, xmin, ymax, xmax, each (N,) float32; computed in float64, as TFLite does."""
    total = node.shape()[1]
    encoded = relay.cast(relay.reshape(node[0], node.shape()[1:]), "float64")
    anchors = node.constant(2).astype(np.float64)
    if anchors.shape != (total, 4):
        raise node.unsupported(f"its anchors have the shape {anchors.shape}")

    def column(index: int, scale: str) -> Any:
        part = relay.strided_slice(encoded, [0, index], [total, index + 1])
        divisor = const(float(np.float32(options.get(scale, 1.0))), "float64")
        return relay.divide(relay.reshape(part, (total,)), divisor)

    def anchor(index: int) -> Any:
        return array_constant(anchors[:, index], "float64")

    middles, halves = [], []
    for axis, names in enumerate((("y_scale", "h_scale"), ("x_scale", "w_scale"))):
        size = anchor(2 + axis)
        middle = relay.add(relay.multiply(column(axis, names[0]), size), anchor(axis))
        grown = relay.multiply(const(0.5, "float64"), relay.exp(column(2 + axis, names[1])))
        middles.append(relay.cast(middle, "float32"))
        halves.append(relay.cast(relay.multiply(grown, size), "float32"))
    low = [relay.subtract(m, h) for m, h in zip(middles, halves, strict=True)]
    high = [relay.add(m, h) for m, h in zip(middles, halves, strict=True)]
    return [*low, *high]


def selected(
    boxes: list[Any], live: Any, count: int, overlap: float, total: int
) -> tuple[Any, Any]:
    """Return the positions and scores of the chosen boxes, best first; both (count,)."""
    zero, dropped = const(0.0, "float32"), const(DROPPED, "float32")
    limit = const(overlap, "float32")
    numbers = array_constant(np.arange(total), "int32")
    ymin, xmin, ymax, xmax = boxes
    area = relay.multiply(relay.subtract(ymax, ymin), relay.subtract(xmax, xmin))
    positions, scores = [], []
    for _ in range(count):
        position = relay.argmax(live, 0, True, dtype="int32")
        positions.append(position)
        scores.append(relay.max(live, 0, True))
        here = [relay.take(side, position, 0) for side in (*boxes, area)]
        height = relay.subtract(relay.minimum(here[2], ymax), relay.maximum(here[0], ymin))
        width = relay.subtract(relay.minimum(here[3], xmax), relay.maximum(here[1], xmin))
        common = relay.multiply(relay.maximum(height, zero), relay.maximum(width, zero))
        joined = relay.subtract(relay.add(here[4], area), common)
        beyond = relay.greater(relay.divide(common, joined), limit)
        gone = relay.logical_or(beyond, relay.equal(numbers, position))
        live = relay.where(gone, dropped, live)
    return relay.concatenate(positions, 0), relay.concatenate(scores, 0)
