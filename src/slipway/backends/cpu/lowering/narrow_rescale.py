"""NarrowRescale: requantisation with constant factors in vectors of 32 bits.

    add(qnn.rescale(x, m, s, once), z)  ->  qnn.contrib_rescale_high(x, m, offset, shift)

for factors below a quarter, as those of convolutions are (`ops.qnn_rescale_high` says why the
integers are the same).  Where bytes are shifted left first, as sums of two tensors do, they are
shifted further, so that greater factors come below a quarter, and a factor of one half is a shift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.ops.qnn.rescale_high import RescaleHighAttrs
from slipway.relay.visit import rewrite

Array = np.ndarray[Any, Any]

MAX_SHIFT = -2  # the shift of factors below a quarter
MIN_SHIFT = -32  # of shifts, for the half that is added to fit
HALF = (1 << 30, 0)  # multiplier and shift
BYTE_BITS = 10  # of a byte less its zero point, with sign
NAME = "qnn.contrib_rescale_high"


def narrow_rescale(function: Function) -> Function:
    """Return `function` with the same integers, requantised in 32 bits where that is possible."""
    return rewrite(function, _narrowed)  # type: ignore[no-any-return]


def _narrowed(expr: Any) -> Expr | None:
    if is_call_of(expr, "add") and is_call_of(expr.args[0], NAME):
        return _with_zero_point(expr)
    if not is_call_of(expr, "qnn.rescale") or not expr.attrs.once:
        return None
    data, multiplier, shift = expr.args
    if data.tensor_type.dtype != "int32":
        return None
    if not isinstance(multiplier, Constant) or not isinstance(shift, Constant):
        return None
    factor, power = multiplier.array, shift.array.astype(np.int64)
    if factor.ndim == 0 and (int(factor), int(power)) == HALF:
        halved = _shifted(data, -1)
        if halved is not None:
            return halved  # type: ignore[no-any-return]
    factor, power = np.broadcast_arrays(factor, power)
    power = np.where(factor == 0, MAX_SHIFT, power)  # nothing times anything
    excess = int(power.max(initial=MAX_SHIFT)) - MAX_SHIFT
    if excess > 0:
        data = _shifted(data, excess)
        power = power - excess
    if data is None or factor.size == 0 or power.min() < MIN_SHIFT:
        return None
    shifts = -1 - power
    return rescale_high(data, factor, np.int64(1) << (shifts - 1), shifts, expr)


def rescale_high(
    data: Expr, multiplier: Array, offset: Array, shift: Array, origin: Call, away: int = 0
) -> Call:
    """Return the call in 32 bits with constant factors, in the place of `origin`."""
    factors = (const(np.asarray(a, np.int32, order="C")) for a in (multiplier, offset, shift))
    made: Call = op_registry.get(NAME)(
        data, *factors, attrs=RescaleHighAttrs(away), span=origin.span
    )
    return made


def _shifted(data: Any, digits: int) -> Any:
    """Return a byte, less its zero point, shifted left by `digits` more; None for others."""
    if not is_call_of(data, "left_shift") or not _is_byte(data.args[0]):
        return None
    amount = data.args[1]
    if not isinstance(amount, Constant) or amount.array.size != 1:
        return None
    total = int(amount.array.reshape(())) + digits
    if not 0 <= total <= 32 - BYTE_BITS:
        return None
    return op_registry.get("left_shift")(data.args[0], const(total, "int32"), span=data.span)


def _is_byte(value: Any) -> bool:
    """Return whether `value` is a byte cast to int32, perhaps less a zero point."""
    if is_call_of(value, "subtract"):
        value, zero = value.args
        if not isinstance(zero, Constant) or np.abs(zero.array).max(initial=0) > 255:
            return False
    return (
        is_call_of(value, "cast")
        and value.attrs.dtype == "int32"
        and value.args[0].tensor_type.dtype in ("int8", "uint8")
    )


def _with_zero_point(call: Any) -> Expr | None:
    """Add a constant before the last shift, where the sum stays within 31 bits."""
    inner, zero = call.args
    data, multiplier, offset, shift = inner.args
    if not isinstance(zero, Constant) or zero.array.size != 1:
        return None
    shifts = shift.array.astype(np.int64)
    moved = offset.array + (int(zero.array.reshape(())) << shifts)
    if np.abs(moved).max() >= 1 << 30:  # the product's high half has 31 bits
        return None
    return rescale_high(data, multiplier.array, moved, shifts, inner, inner.attrs.away)
