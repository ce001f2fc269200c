"""DeepPools: the largest of a large window of a volume, frame by frame first.

    max_pool3d(x, (7, 7, 7))  ->  max_pool3d(max_pool3d(x, (7, 1, 1)), (1, 7, 7))

The largest of what is largest in each column of frames is the same number.  The first pool reads
what lies along memory, the second one only the frames of results.  What lies between is written
and read, so that small windows stay whole.
"""

from __future__ import annotations

from math import prod
from typing import Any

from slipway.relay.expr import Call, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite

MOVED = 4  # steps of an element that is written, and read again


def deep_pools(function: Function) -> Function:
    """Return `function` with the same results, its pools of large windows in two steps."""
    result: Function = rewrite(function, _apart)
    return result


def steps(window: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Return what a result of a pool takes: at once, its rows first, and its frames before them."""
    deep, high, wide = window
    across = strides[2]
    rows = high * across + wide
    frames = strides[1] * strides[2]  # elements of a frame for each result
    return deep * high * across + wide, (deep + MOVED) * frames + rows


def _apart(call: Expr) -> Expr | None:
    if not is_call_of(call, "nn.max_pool3d") or not isinstance(call, Call):
        return None
    attrs: Any = call.attrs
    first, *others = attrs.pool_size
    if attrs.layout != "NCDHW" or first < 2 or prod(others) < 2:
        return None
    at_once, in_parts = steps(attrs.pool_size, attrs.strides)
    if in_parts >= at_once:
        return None
    front, *before = attrs.padding[:3]
    back, *after = attrs.padding[3:]

    def part(data: Expr, keeps: tuple[bool, bool, bool], padding: tuple[int, ...]) -> Call:
        def of(values: Any) -> tuple[int, ...]:
            return tuple(v if kept else 1 for v, kept in zip(values, keeps, strict=True))

        window = attrs.replace(
            pool_size=of(attrs.pool_size), strides=of(attrs.strides),
            dilation=of(attrs.dilation), padding=padding,
        )  # fmt: skip
        return Call(call.op, (data,), window, call.span)

    frames = part(call.args[0], (True, False, False), (front, 0, 0, back, 0, 0))
    return part(frames, (False, True, True), (0, *before, 0, *after))
