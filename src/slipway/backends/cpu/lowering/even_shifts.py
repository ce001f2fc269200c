"""EvenShifts: requantisation whose last shift is the same for all channels.

    qnn.rescale(x, m, s)  ->  y = qnn.rescale(x, m, 0);  ((y + (y >> 31)) * c + half) >> most

rounds to the nearest, halves away from zero, by 2^-s of each channel: c is 2^(most + s), and what
is below zero is one less before a half is added.  The integers are the same where all shifts go to
the right and the products stay within 32 bits, as bounds of the sums tell.  It is for targets that
shift all lanes of a vector alike, and would take them apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.visit import post_order, rewrite
from slipway.transform.graph.integers.channel_ranges import channel_ranges

SIGN = 31  # the shift that leaves -1 of what is below zero
MOST = 30  # of a shift whose half is added in 32 bits
UNKNOWN = 1 << 31  # the largest magnitude of an int32


def even_shifts(function: Function) -> Function:
    """Return `function` with the same integers, shifted alike in all channels where that fits."""
    known = channel_ranges(function.body)
    reach: dict[tuple[int, int], int] = {}  # the largest sum, by the constants of a rescale
    for expr in post_order(function.body, into_functions=False):
        if is_call_of(expr, "qnn.rescale"):
            sums, key = known.get(id(expr.args[0])), _key(expr)
            far = UNKNOWN if sums is None else int(max(-sums.low.min(), sums.high.max(), 0))
            reach[key] = max(reach.get(key, 0), far)
    if not reach:
        return function
    return rewrite(function, lambda e: _evened(e, reach))  # type: ignore[no-any-return]


def _key(call: Call) -> tuple[int, int]:
    return id(call.args[1]), id(call.args[2])


def _evened(expr: Any, reach: dict[tuple[int, int], int]) -> Expr | None:
    if not is_call_of(expr, "qnn.rescale") or expr.attrs.once:
        return None
    data, multiplier, shift = expr.args
    if data.tensor_type.dtype != "int32" or not isinstance(shift, Constant):
        return None
    if not isinstance(multiplier, Constant) or not multiplier.array.size:
        return None
    right = -shift.array.astype(np.int64)
    if right.min() < 1 or right.max() > MOST or multiplier.array.min() < 0:
        return None
    most = int(right.max())
    factor = np.int64(1) << (most - right)
    half = 1 << (most - 1)
    # A product by less than 1 is no further from zero than what it is of.
    if (reach.get(_key(expr), UNKNOWN) + 1) * int(factor.max()) + half > np.iinfo(np.int32).max:
        return None
    high = op_registry.get("qnn.rescale")(
        data, multiplier, const(0, "int32"), attrs=expr.attrs, span=expr.span
    )
    make = {name: op_registry.get(name) for name in ("add", "multiply", "right_shift")}
    nudged: Expr = make["add"](high, make["right_shift"](high, const(SIGN, "int32")))
    if (factor != 1).any():
        nudged = make["multiply"](nudged, const(factor.astype(np.int32)))
    nudged = make["add"](nudged, const(half, "int32"))
    made: Expr = make["right_shift"](nudged, const(most, "int32"), span=expr.span)
    return made
