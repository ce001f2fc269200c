"""vision.get_valid_counts, yolo_reorg and roi_pool: compositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Tuple, TupleWrapper
from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, counted, length, scalar, typed
from slipway.relay.ops.checks import as_tuple, need_rank, need_steps

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike, Extents


def get_valid_counts(
    data: ExprLike, score_threshold: ExprLike = 0, id_index: int = 0, score_index: int = 1
) -> TupleWrapper:
    """Return (number of valid boxes (N,), boxes with those first, their places (N, boxes)).

    A box of `data` (N, boxes, values) is valid when its score is above the threshold and its class
    not negative; `id_index` below 0: there are no classes.  The rest is -1.
    """
    x, own = typed(data)
    need_rank("data", own, 3)
    _, count, width = own.shape
    if not 0 <= score_index < width or id_index >= width:
        raise BadArgument("score_index", f"is {score_index} and id_index {id_index} of {own}")

    def column(index: int) -> Any:
        return call("squeeze", call("strided_slice", x, [index], [index + 1], None, [2]), [2])

    minimum = call("cast", score_threshold, own.dtype)
    valid = call("greater", column(score_index), minimum)
    if id_index >= 0:
        known = call("greater_equal", column(id_index), scalar(0, own.dtype))
        valid = call("logical_and", valid, known)
    number = counted(count, "int32")
    # Keys are unique, so that the order of what is valid stays.
    key = call("where", valid, number, call("add", number, length(x, 1, "int32")))
    order = call("topk", key, 0, -1, "indices", True, "int32")
    total = call("sum", call("cast", valid, "int32"), [1])
    inside = call("less", number, call("expand_dims", total, 1))
    positions = call("where", inside, order, scalar(-1, "int32"))
    rows = call("broadcast_to", call("expand_dims", order, 2), own.shape)
    boxes = call("gather", x, 1, rows)
    boxes = call("where", call("expand_dims", inside, 2), boxes, scalar(-1, own.dtype))
    return TupleWrapper(Tuple((total, boxes, positions)), 3)


def yolo_reorg(data: ExprLike, stride: int) -> Any:
    """Move pixels to channels in the order of Darknet's reorg layer."""
    x, own = typed(data)
    need_rank("data", own, 4)
    batch, channels, height, width = own.shape
    s = int(stride)
    if s < 1 or channels % (s * s) or height % s or width % s:
        raise BadArgument("stride", f"is {stride}, which does not divide {own}")
    inner = channels // (s * s)
    spots = call("reshape", x, (batch, inner, height, s, width, s))
    moved = call("transpose", spots, (0, 3, 5, 1, 2, 4))
    return call("reshape", moved, (batch, channels * s * s, height // s, width // s))


def roi_pool(
    data: ExprLike, rois: ExprLike, pooled_size: Extents, spatial_scale: float, layout: str = "NCHW"
) -> Any:
    """Return the largest elements of the bins of regions (R, 5): sample, x1, y1, x2, y2.

    A region's corners are rounded to elements; its bins may overlap by one.  An empty bin is 0.
    """
    (x, own), (regions, kind) = typed(data), typed(rois)
    need_rank("data", own, 4)
    if kind.rank != 2 or kind.shape[1] != 5:
        raise BadArgument("rois", f"must be (regions, 5), got {kind}")
    if layout != "NCHW":
        raise BadArgument("layout", f"is {layout!r}; only NCHW is served")
    bins = as_tuple(pooled_size, 2, "pooled_size")
    need_steps("pooled_size", bins, 2)
    count = kind.shape[0]

    def column(index: int) -> Any:
        return call("strided_slice", regions, [index], [index + 1], None, [1])

    def number(value: float) -> Any:
        return scalar(value, kind.dtype)

    scale = number(spatial_scale)
    sample = call("cast", call("reshape", column(0), (count,)), "int32")
    found = call("take", x, sample, 0)
    lowest = float(np.finfo(own.dtype).min)
    empty = None
    for axis in (0, 1):
        extent, parts = own.shape[2 + axis], bins[axis]
        end_of_axis = length(x, 2 + axis, kind.dtype)
        first, last = (
            call("floor", call("add", call("multiply", column(i), scale), number(0.5)))
            for i in (2 - axis, 4 - axis)
        )
        reach = call("maximum", call("add", call("subtract", last, first), number(1)), number(1))
        step = call("divide", reach, number(parts))
        begin = call("floor", call("multiply", const(np.arange(parts, dtype=kind.dtype)), step))
        end = call("ceil", call("multiply", const(np.arange(1, parts + 1, dtype=kind.dtype)), step))
        begin, end = (
            call("minimum", call("maximum", call("add", edge, first), number(0)), end_of_axis)
            for edge in (begin, end)
        )  # (regions, parts)
        position = counted(extent, kind.dtype)
        inside = call(
            "logical_and",
            call("greater_equal", position, call("expand_dims", begin, 2)),
            call("less", position, call("expand_dims", end, 2)),
        )  # (regions, parts, extent)
        nothing = call("less_equal", end, begin)
        view = (count, 1, parts, 1) if axis == 0 else (count, 1, 1, parts)
        nothing = call("reshape", nothing, view)
        empty = nothing if empty is None else call("logical_or", empty, nothing)
        if axis == 0:  # (R, C, 1, H, W) over H
            wide, mask = call("expand_dims", found, 2), (count, 1, parts, extent, 1)
        else:  # (R, C, PH, 1, W) over W
            wide, mask = call("expand_dims", found, 3), (count, 1, 1, parts, extent)
        picked = call("where", call("reshape", inside, mask), wide, scalar(lowest, own.dtype))
        found = call("max", picked, [3 + axis])
    return call("where", empty, scalar(0, own.dtype), found)
