"""Boxes of single-shot detectors: anchors, and class and place of each; compositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Tuple, TupleWrapper
from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, counted, length, scalar, typed
from slipway.relay.ops.checks import need_rank, need_shape
from slipway.relay.ops.vision.counts import get_valid_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.relay.expr import ExprLike


def multibox_prior(
    data: ExprLike,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (-1.0, -1.0),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Any:
    """Return the anchors (1, H * W * (sizes + ratios - 1), 4) of a feature map: left, top, ...

    Every size comes with the first ratio's shape 1, every further ratio with the first size.
    They follow from the shape of `data` (N, C, H, W) alone, in parts of the image.
    """
    x, own = typed(data)
    need_rank("data", own, 4)
    if not len(sizes) or not len(ratios):
        raise BadArgument("sizes", "and ratios must have a number each")
    if not all(r > 0 for r in ratios):
        raise BadArgument("ratios", f"are {list(ratios)}; they are numbers above 0")
    for name, pair in (("steps", steps), ("offsets", offsets)):
        if isinstance(pair, str) or len(pair) != 2:
            raise BadArgument(name, f"are {pair!r}; write two numbers, of the rows and columns")
    high = np.array([*sizes, *(sizes[0] / r**0.5 for r in list(ratios)[1:])]) / 2
    wide = np.array([*sizes, *(sizes[0] * r**0.5 for r in list(ratios)[1:])]) / 2

    def number(value: Any) -> Any:
        return const(np.asarray(value).astype(own.dtype))

    extents = [length(x, axis, own.dtype) for axis in (2, 3)]
    shape = (*own.shape[2:], len(high))
    ends: list[list[Any]] = [[], []]
    aspect = call("divide", *extents)
    halves = number(high), call("multiply", number(wide), aspect)
    for axis, half in enumerate(halves):
        spot = call("add", counted(own.shape[2 + axis], own.dtype), number(offsets[axis]))
        if steps[axis] > 0:
            spot = call("multiply", spot, number(steps[axis]))
        else:
            spot = call("divide", spot, extents[axis])
        middle = call("reshape", spot, (-1, 1, 1) if axis == 0 else (1, -1, 1))
        for low_or_high, name in zip(ends, ("subtract", "add"), strict=True):
            low_or_high.insert(0, call("broadcast_to", call(name, middle, half), shape))
    boxes = call("reshape", call("stack", ends[0] + ends[1], 3), (1, -1, 4))
    return call("clip", boxes, 0.0, 1.0) if clip else boxes


def multibox_transform_loc(
    cls_prob: ExprLike,
    loc_pred: ExprLike,
    anchor: ExprLike,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> TupleWrapper:
    """Return (boxes (N, anchors, 6): class, score, left, top, right, bottom; their number (N,)).

    Class 0 is the background.  Boxes of another class with a score of at least `threshold` come
    first, in the order of anchors, with the number of their class less one; the rest is -1.  With
    `keep_background` every box stays, a class has its own number, and 0 below the threshold.
    """
    (scores, kind), (moves, _), (anchors, given) = typed(cls_prob), typed(loc_pred), typed(anchor)
    need_rank("cls_prob", kind, 3)
    batch, classes, count = kind.shape
    if classes < 2:
        raise BadArgument(
            "cls_prob", f"must be (N, classes, anchors) with a background, got {kind}"
        )
    need_shape("anchor", given, (1, count, 4), "four corners of each anchor")
    need_shape("loc_pred", typed(moves)[1], (batch, count * 4), "four moves of each anchor")
    dtype = kind.dtype

    def number(value: float) -> Any:
        return scalar(value, dtype)

    first = 0 if keep_background else 1
    objects = call("strided_slice", scores, [first], [classes], None, [1])
    best = call("max", objects, [1])
    label = call("cast", call("argmax", objects, 1), dtype)
    rejected = call("less", best, number(threshold))
    label = call("where", rejected, number(-first), label)
    corner = [
        call("squeeze", call("strided_slice", anchors, [i], [i + 1], None, [2]), [2])
        for i in range(4)
    ]
    move = [
        call("strided_slice", call("reshape", moves, (batch, count, 4)), [i], [i + 1], None, [2])
        for i in range(4)
    ]
    low: list[Any] = []
    high: list[Any] = []
    for axis in (0, 1):
        size = call("subtract", corner[axis + 2], corner[axis])
        middle = call("multiply", call("add", corner[axis], corner[axis + 2]), number(0.5))
        shift, growth = (call("squeeze", move[i], [2]) for i in (axis, axis + 2))
        shift = call("multiply", call("multiply", shift, number(variances[axis])), size)
        middle = call("add", shift, middle)
        factor = call("exp", call("multiply", growth, number(variances[axis + 2])))
        half = call("multiply", call("multiply", factor, size), number(0.5))
        for ends, name in ((low, "subtract"), (high, "add")):
            end = call(name, middle, half)
            ends.append(call("clip", end, 0.0, 1.0) if clip else end)
    boxes = call("stack", [label, best, *low, *high], 2)
    counts, rows, _ = get_valid_counts(boxes, -np.inf, 0, 1)
    return TupleWrapper(Tuple((rows, counts)), 2)
