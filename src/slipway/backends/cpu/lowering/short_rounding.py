"""ShortRounding: TFLite's requantisation with two roundings, as one shift of 32 bits.

    qnn.rescale(x, m, s)  ->  qnn.contrib_rescale_high(x << 2, m, offset, 1 - s, away=2)

for constant factors and sums within 29 bits (`ops.qnn.rescale_high` says why the integers are the
same).  Below a clip to the zero point nothing is seen of numbers below zero, which then need no
rounding of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.backends.cpu.lowering.narrow_rescale import NAME, rescale_high
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.visit import post_order, rewrite
from slipway.transform.graph.integers.channel_ranges import channel_ranges

DIGITS = 2  # that the sums are shifted left by
AWAY = 2  # of a number below zero: one in the last place of what is rounded first
SUM_BITS = 29  # of sums, without their sign
MOST = 28  # of a shift to the right, whose offset leaves the product's high half its 31 bits


def short_rounding(function: Function) -> Function:
    """Return `function` with the same integers, rounded by one shift where that is possible."""
    rescales = [
        e for e in post_order(function.body, into_functions=False) if _is_double(e)
    ]  # fmt: skip
    if not rescales:
        return function
    known = channel_ranges(function.body)
    fits: set[tuple[int, ...]] = set()  # by the operands that a rewriting keeps
    wide: set[tuple[int, ...]] = set()
    for call in rescales:
        sums, key = known.get(id(call.args[0])), _key(call)
        reach = 1 << 31 if sums is None else int(max(-sums.low.min(), sums.high.max(), 0))
        (fits if reach < 1 << SUM_BITS else wide).add(key)
    return rewrite(function, lambda e: _short(e, fits - wide))  # type: ignore[no-any-return]


def _is_double(expr: Any) -> bool:
    return (
        is_call_of(expr, "qnn.rescale")
        and not expr.attrs.once
        and expr.args[0].tensor_type.dtype == "int32"
        and all(isinstance(a, Constant) and a.array.size for a in expr.args[1:])
    )


def _key(call: Any) -> tuple[int, ...]:
    return id(call.args[1]), id(call.args[2])


def _short(expr: Any, fits: set[tuple[int, ...]]) -> Expr | None:
    if is_call_of(expr, "clip"):
        return _unsigned(expr)
    if not _is_double(expr) or _key(expr) not in fits:
        return None
    data, multiplier, shift = expr.args
    factor, right = np.broadcast_arrays(multiplier.array, -shift.array.astype(np.int64))
    if factor.min() < 0 or right.min() < 0 or right.max() > MOST:
        return None
    if right.max() > 0:
        right = np.where(factor == 0, np.maximum(right, 1), right)  # nothing times anything
    if right.max() > 0 and right.min() == 0:
        return None  # some channels are rounded twice, others once
    digits = const(DIGITS, "int32")
    shifted = op_registry.get("left_shift")(data, digits, span=expr.span)
    offset = np.where(right > 0, (np.int64(1) << right) + 1, 1)
    away = AWAY if right.max() > 0 else 0
    return rescale_high(shifted, factor, offset, right + 1, expr, away)


def _unsigned(clip: Any) -> Expr | None:
    """Return the clip to a zero point, or above, of numbers rounded as if none were below zero."""
    inner, zero = clip.args[0], 0
    if is_call_of(inner, "add") and isinstance(inner.args[1], Constant):
        if inner.args[1].array.size != 1:
            return None
        inner, zero = inner.args[0], int(inner.args[1].array.reshape(()))
    if not is_call_of(inner, NAME) or not inner.attrs.away or clip.attrs.a_min < zero:
        return None
    data, multiplier, offset, shift = inner.args
    arrays = (multiplier.array, offset.array, shift.array)
    made: Call = rescale_high(data, *arrays, inner)
    if inner is not clip.args[0]:
        made = op_registry.get("add")(made, clip.args[0].args[1], span=clip.args[0].span)
    return op_registry.get("clip")(made, attrs=clip.attrs, span=clip.span)  # type: ignore[no-any-return]
