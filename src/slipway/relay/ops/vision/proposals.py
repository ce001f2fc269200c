"""vision.proposal: regions of a region proposal network, a composition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.dims import smaller
from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, counted, length, scalar, typed
from slipway.relay.ops.checks import need_rank
from slipway.relay.ops.vision.suppression import suppress_boxes, to_front

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.relay.expr import ExprLike


def _anchors(scales: Sequence[float], ratios: Sequence[float], base: int) -> np.ndarray[Any, Any]:
    """Return the corners (anchors, 4) around the first place, by ratio and then by scale."""
    center = 0.5 * (base - 1.0)
    found = []
    for ratio in ratios:
        side = math.floor(math.sqrt(math.floor(float(base * base) / ratio)) + 0.5)
        for scale in scales:
            wide = side * scale
            high = math.floor(wide / scale * ratio + 0.5) * scale
            dx, dy = 0.5 * (wide - 1.0), 0.5 * (high - 1.0)
            found.append((center - dx, center - dy, center + dx, center + dy))
    return np.array(found, "float64")


def proposal(
    cls_prob: ExprLike, bbox_pred: ExprLike, im_info: ExprLike, scales: Sequence[float],
    ratios: Sequence[float], feature_stride: int, threshold: float, rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int, rpn_min_size: int, iou_loss: bool,
) -> Any:  # fmt: skip
    """Return the best regions (N * post_nms_top_n, 5): sample, x1, y1, x2, y2.

    `cls_prob` is (N, 2 * anchors, H, W), its second half the scores; `bbox_pred` (N, 4 * anchors,
    H, W) how an anchor's center and size change, with `iou_loss` its corners; `im_info` (N, 3)
    height, width and scale of the pictures.  Where fewer regions are left, they are repeated.
    """
    (scores, own), (deltas, moved), (info, about) = map(typed, (cls_prob, bbox_pred, im_info))
    need_rank("cls_prob", own, 4)
    batch, _, height, width = own.shape
    count, dtype = len(scales) * len(ratios), own.dtype
    for name, kind, wanted in (
        ("cls_prob", own, (batch, 2 * count, height, width)),
        ("bbox_pred", moved, (batch, 4 * count, height, width)),
        ("im_info", about, (batch, 3)),
    ):
        if tuple(kind.shape) != wanted:
            raise BadArgument(name, f"must be {wanted} for {count} anchors, got {kind}")
    if not all(value > 0 for value in (*scales, *ratios, feature_stride, rpn_post_nms_top_n)):
        raise BadArgument("scales", "ratios, feature_stride and rpn_post_nms_top_n must be above 0")
    if threshold < 0:
        raise BadArgument("threshold", f"must be at least 0, got {threshold}")
    total = height * width * count
    most = smaller(rpn_pre_nms_top_n, total) if rpn_pre_nms_top_n > 0 else total
    # Everything is (N, H, W, anchors): the order in which equal scores stay.
    pictures = [
        call("reshape", call("strided_slice", info, [i], [i + 1], None, [1]), (batch, 1, 1, 1))
        for i in range(3)
    ]
    split = call("transpose", call("reshape", deltas, (batch, count, 4, height, width)),
                 [2, 0, 3, 4, 1])  # fmt: skip
    change = [
        call("squeeze", call("strided_slice", split, [i], [i + 1], None, [0]), [0])
        for i in range(4)
    ]
    views = (1, -1, 1, 1), (1, 1, -1, 1)
    spots = [
        call("reshape", counted(d, dtype), v) for d, v in zip((height, width), views, strict=True)
    ]
    y, x = (call("multiply", spot, scalar(feature_stride, dtype)) for spot in spots)
    around = _anchors(scales, ratios, feature_stride).T.astype(dtype)
    anchors = [call("add", spot, const(s)) for spot, s in zip((x, y, x, y), around, strict=True)]
    corners = _within(_moved(anchors, change, iou_loss, dtype), pictures, dtype)
    minimum = call("multiply", pictures[2], scalar(rpn_min_size, dtype))
    small = _smaller(corners, minimum, dtype)
    score = call("transpose", call("strided_slice", scores, [count], [2 * count], None, [1]),
                 [0, 2, 3, 1])  # fmt: skip
    outside = _outside(pictures, spots, feature_stride, dtype)
    score = call("where", call("logical_or", outside, small), scalar(-1, dtype), score)
    half = call("divide", minimum, scalar(2, dtype))
    corners = [
        call("where", small, call("subtract" if n < 2 else "add", corner, half), corner)
        for n, corner in enumerate(corners)
    ]
    flat = [call("reshape", value, (batch, total)) for value in (score, *corners)]
    order = call("topk", flat[0], 0, -1, "indices", False, "int32")
    order = call("strided_slice", order, [0], [most], None, [1])
    chosen = [call("gather", value, 1, order) for value in flat[1:]]
    return _kept(chosen, batch, most, int(rpn_post_nms_top_n), float(threshold), dtype)


def _moved(anchors: Sequence[Any], change: Sequence[Any], iou_loss: bool, dtype: str) -> list[Any]:
    """Return the corners of anchors, four of (1, H, W, anchors), changed as the network says."""
    if iou_loss:
        return [call("add", p, c) for p, c in zip(anchors, change, strict=True)]
    low, high = [], []
    for axis in (0, 1):
        reach = call("subtract", anchors[axis + 2], anchors[axis])
        size = call("add", reach, scalar(1, dtype))
        center = call("add", anchors[axis], call("multiply", reach, scalar(0.5, dtype)))
        middle = call("add", call("multiply", change[axis], size), center)
        extent = call("multiply", call("exp", change[axis + 2]), size)
        half = call("multiply", scalar(0.5, dtype), call("subtract", extent, scalar(1, dtype)))
        low.append(call("subtract", middle, half))
        high.append(call("add", middle, half))
    return [*low, *high]


def _within(corners: Sequence[Any], pictures: Sequence[Any], dtype: str) -> list[Any]:
    """Return corners cut at the edges of their pictures (height, width, scale)."""
    limits = [call("subtract", pictures[1 - n % 2], scalar(1, dtype)) for n in range(4)]
    return [
        call("maximum", call("minimum", corner, limit), scalar(0, dtype))
        for corner, limit in zip(corners, limits, strict=True)
    ]


def _smaller(corners: Sequence[Any], minimum: Any, dtype: str) -> Any:
    """Return where a box has a side below the minimum."""
    small = None
    for axis in (0, 1):
        size = call("add", call("subtract", corners[axis + 2], corners[axis]), scalar(1, dtype))
        below = call("less", size, minimum)
        small = below if small is None else call("logical_or", small, below)
    return small


def _outside(pictures: Sequence[Any], at: Sequence[Any], stride: int, dtype: str) -> Any:
    """Return which rows and columns of the features lie beyond their picture."""
    step = scalar(stride, dtype)
    rows, columns = (call("floor", call("divide", pictures[n], step)) for n in (0, 1))
    return call(
        "logical_or",
        call("greater_equal", at[0], rows),
        call("greater_equal", at[1], columns),
    )


def _kept(
    corners: list[Any], batch: int, most: int, wanted: int, threshold: float, dtype: str
) -> Any:
    """Return what is left of boxes in falling order of score, from the first again and again."""
    # A corner belongs to its box: widths are x2 - x1 + 1.
    ends = [call("add", c, scalar(1, dtype)) for c in corners[2:]]
    same = call("broadcast_to", scalar(1, dtype), (batch, most))
    rows = call("stack", [same, *corners[:2], *ends], 2)
    order = call("broadcast_to", counted(most, "int32"), (batch, most))
    all_of_them = call("broadcast_to", length(rows, 1, "int32"), (batch,))
    left, positions = suppress_boxes(
        rows, all_of_them, order, max_output_size=-1,
        # Boxes go above the threshold, and suppress_boxes takes them from it on.
        iou_threshold=float(np.nextafter(np.float32(threshold), np.float32(np.inf))),
        any_class=True, top_k=-1, coord_start=1, score_index=0, id_index=-1,
    )  # fmt: skip
    # Both results are read: a te extern of several needs its first to be.
    score = call("squeeze", call("strided_slice", left, [0], [1], None, [2]), [2])
    there = call("greater_equal", positions, scalar(0, "int32"))
    there = call("logical_and", there, call("greater", score, scalar(0, dtype)))
    front, count = to_front(there)
    slots = call("broadcast_to", counted(wanted, "int32"), (batch, wanted))
    chosen = call("gather", front, 1, call("mod", slots, count))
    sample = call("expand_dims", counted(batch, dtype), 1)
    sample = call("broadcast_to", sample, (batch, wanted))
    columns = [sample, *(call("gather", corner, 1, chosen) for corner in corners)]
    return call("reshape", call("stack", columns, 2), (batch * wanted, 5))
