"""The angle and the length of a point, as importers need them: C's atan2 and hypot."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.relay import op_registry

BITS = {"float16": "int16", "float32": "int32", "float64": "int64"}


def angle_of(y: Any, x: Any) -> Any:
    """Return atan2(y, x) of two expressions of one dtype, elementwise."""
    dtype = x.tensor_type.dtype

    def const(value: float) -> Any:
        return op_registry.const(value, dtype)

    tall, wide = relay.abs(y), relay.abs(x)
    # Equal sides are an eighth of a rotation, infinite ones too; of two zeros the quotient is 0.
    nothing = relay.equal(relay.maximum(tall, wide), const(0))
    quotient = relay.divide(tall, relay.where(nothing, const(1), wide))
    quotient = relay.where(
        relay.logical_and(relay.equal(tall, wide), relay.logical_not(nothing)), const(1), quotient
    )
    angle = relay.atan(quotient)
    angle = relay.where(is_negative(x), relay.subtract(const(np.pi), angle), angle)
    return relay.where(is_negative(y), relay.negative(angle), angle)


def is_negative(value: Any) -> Any:
    """Return whether the sign is negative, that of a zero too."""
    dtype = value.tensor_type.dtype
    if dtype not in BITS:
        return relay.less(value, op_registry.const(0, dtype))
    return relay.less(relay.reinterpret(value, BITS[dtype]), op_registry.const(0, BITS[dtype]))


def length_of(x: Any, y: Any) -> Any:
    """Return sqrt(x * x + y * y), which neither overflows nor vanishes before its result does."""
    x, y = relay.abs(x), relay.abs(y)
    long, short = relay.maximum(x, y), relay.minimum(x, y)
    zero, one = (op_registry.const(v, long.tensor_type.dtype) for v in (0, 1))
    plain = relay.logical_or(relay.equal(long, zero), relay.isinf(long))
    ratio = relay.divide(short, relay.where(plain, one, long))
    slanted = relay.multiply(long, relay.sqrt(relay.add(relay.multiply(ratio, ratio), one)))
    return relay.where(plain, long, slanted)
