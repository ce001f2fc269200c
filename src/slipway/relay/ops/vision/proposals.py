"""vision.proposal: regions of a region proposal network, a composition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, scalar, typed
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
    most = min(rpn_pre_nms_top_n, total) if rpn_pre_nms_top_n > 0 else total

    def number(value: float) -> Any:
        return scalar(value, dtype)

    def of_picture(index: int) -> Any:
        part = call("strided_slice", info, [index], [index + 1], None, [1])
        return call("reshape", part, (batch, 1, 1, 1))

    # Everything is (N, H, W, anchors): the order in which equal scores stay.
    split = call("transpose", call("reshape", deltas, (batch, count, 4, height, width)),
                 [2, 0, 3, 4, 1])  # fmt: skip
    change = [
        call("squeeze", call("strided_slice", split, [i], [i + 1], None, [0]), [0])
        for i in range(4)
    ]
    y, x = np.indices((height, width)) * feature_stride
    position = (
        np.stack([x, y, x, y])[..., None]
        + _anchors(scales, ratios, feature_stride).T[:, None, None, :]
    )  # (4, H, W, anchors)
    if iou_loss:
        corners = [
            call("add", const(p.astype(dtype)), c) for p, c in zip(position, change, strict=True)
        ]
    else:
        low, high = [], []
        for axis in (0, 1):
            size = position[axis + 2] - position[axis] + 1.0
            center = position[axis] + 0.5 * (size - 1.0)
            size, center = (const(v.astype(dtype)) for v in (size, center))
            middle = call("add", call("multiply", change[axis], size), center)
            extent = call("multiply", call("exp", change[axis + 2]), size)
            half = call("multiply", number(0.5), call("subtract", extent, number(1)))
            low.append(call("subtract", middle, half))
            high.append(call("add", middle, half))
        corners = [*low, *high]
    limits = [call("subtract", of_picture(1 - n % 2), number(1)) for n in range(4)]
    corners = [
        call("maximum", call("minimum", corner, limit), number(0))
        for corner, limit in zip(corners, limits, strict=True)
    ]
    minimum = call("multiply", of_picture(2), number(rpn_min_size))
    small = None
    for axis in (0, 1):
        size = call("add", call("subtract", corners[axis + 2], corners[axis]), number(1))
        below = call("less", size, minimum)
        small = below if small is None else call("logical_or", small, below)
    score = call("transpose", call("strided_slice", scores, [count], [2 * count], None, [1]),
                 [0, 2, 3, 1])  # fmt: skip
    stride = number(feature_stride)
    rows, columns = (call("floor", call("divide", of_picture(n), stride)) for n in (0, 1))
    at = [const(v.reshape(1, height, width, 1).astype(dtype)) for v in np.indices((height, width))]
    outside = call(
        "logical_or",
        call("greater_equal", at[0], rows),
        call("greater_equal", at[1], columns),
    )
    score = call("where", call("logical_or", outside, small), number(-1), score)
    half = call("divide", minimum, number(2))
    corners = [
        call("where", small, call("subtract" if n < 2 else "add", corner, half), corner)
        for n, corner in enumerate(corners)
    ]
    flat = [call("reshape", value, (batch, total)) for value in (score, *corners)]
    order = call("topk", flat[0], total, -1, "indices", False, "int32")
    order = call("strided_slice", order, [0], [most], None, [1])
    chosen = [call("gather", value, 1, order) for value in flat[1:]]
    return _kept(chosen, batch, most, int(rpn_post_nms_top_n), float(threshold), dtype)


def _kept(
    corners: list[Any], batch: int, most: int, wanted: int, threshold: float, dtype: str
) -> Any:
    """Return what is left of boxes in falling order of score, from the first again and again."""
    # A corner belongs to its box: widths are x2 - x1 + 1.
    ends = [call("add", c, scalar(1, dtype)) for c in corners[2:]]
    same = const(np.ones((batch, most), dtype))
    rows = call("stack", [same, *corners[:2], *ends], 2)
    order = const(np.tile(np.arange(most, dtype="int32"), (batch, 1)))
    left, positions = suppress_boxes(
        rows, const(np.full(batch, most, "int32")), order, max_output_size=-1,
        # Boxes go above the threshold, and suppress_boxes takes them from it on.
        iou_threshold=float(np.nextafter(np.float32(threshold), np.float32(np.inf))),
        any_class=True, top_k=-1, coord_start=1, score_index=0, id_index=-1,
    )  # fmt: skip
    # Both results are read: a te extern of several needs its first to be.
    score = call("squeeze", call("strided_slice", left, [0], [1], None, [2]), [2])
    there = call("greater_equal", positions, scalar(0, "int32"))
    there = call("logical_and", there, call("greater", score, scalar(0, dtype)))
    front, count = to_front(there, most)
    slots = const(np.tile(np.arange(wanted, dtype="int32"), (batch, 1)))
    chosen = call("gather", front, 1, call("mod", slots, count))
    sample = const(np.repeat(np.arange(batch, dtype=dtype)[:, None], wanted, 1))
    columns = [sample, *(call("gather", corner, 1, chosen) for corner in corners)]
    return call("reshape", call("stack", columns, 2), (batch * wanted, 5))
