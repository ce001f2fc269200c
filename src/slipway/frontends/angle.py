"""The angle of a point, as importers need it: C's atan2 with its signs and infinities."""

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

    def is_negative(value: Any) -> Any:
        if dtype not in BITS:
            return relay.less(value, const(0))
        bits = relay.reinterpret(value, BITS[dtype])
        return relay.less(bits, op_registry.const(0, BITS[dtype]))  # the sign of a zero counts

    tall, wide = relay.abs(y), relay.abs(x)
    # Equal sides are an eighth of a turn, infinite ones too; of two zeros the quotient is 0.
    nothing = relay.equal(relay.maximum(tall, wide), const(0))
    quotient = relay.divide(tall, relay.where(nothing, const(1), wide))
    quotient = relay.where(
        relay.logical_and(relay.equal(tall, wide), relay.logical_not(nothing)), const(1), quotient
    )
    angle = relay.atan(quotient)
    angle = relay.where(is_negative(x), relay.subtract(const(np.pi), angle), angle)
    return relay.where(is_negative(y), relay.negative(angle), angle)
