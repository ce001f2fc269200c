"""LOG_SOFTMAX of int8, in fixed point: x - max - log(sum(exp(x - max))) with a scale of 1/16.

The logarithm is TFLite's: the argument is z = r * 2**k with r about sqrt(sqrt(1/2)), and of r it is
a quotient of polynomials.  Numbers are called Qm.n: m bits before the point, n behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import array_constant
from slipway.relay import quantization as rule
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

IN_BITS, SUM_BITS, OUT_BITS = 5, 12, 4  # before the point: of x - max, of the sum, of the result
ZERO_POINT = 127
LOG_2, SQRT_SQRT_HALF, SQRT_HALF = 1488522236, 1805811301, 1518500250  # Q0.31
ALPHA_N, ALPHA_D, ALPHA_I, ALPHA_F = 117049297, 127690142, 1057819769, 638450708  # Q0.31


def _const(value: int) -> Any:
    return const(value, "int64")


def _high(a: Expr, b: Expr) -> Any:
    """The product of two Q0.31, rounded."""
    return relay.right_shift(relay.add(relay.multiply(a, b), _const(1 << 30)), _const(31))


def _divided(x: Expr, exponent: int) -> Any:
    """Divide by 2**exponent, halves away from zero."""
    mask = (1 << exponent) - 1
    remainder = relay.bitwise_and(x, _const(mask))
    threshold = relay.add(relay.cast(relay.less(x, _const(0)), "int64"), _const(mask >> 1))
    carry = relay.cast(relay.greater(remainder, threshold), "int64")
    return relay.add(relay.right_shift(x, _const(exponent)), carry)


def _shifted(x: Expr, amount: Any) -> Any:
    """Multiply by 2**amount; int32 saturates."""
    return relay.clip(relay.left_shift(x, amount), -(1 << 31), rule.INT32_MAX)


def _zeros(x: Expr) -> Any:
    """Count the leading zero bits of positive int32 values."""
    return relay.cast(relay.qnn.op.leading_zeros(relay.cast(x, "int32")), "int64")


def _reciprocal(a: Expr) -> Any:
    """1 / (1 + a) in Q0.31 by Newton's iteration, as `quantization.one_over_one_plus_x`."""
    total = relay.add(a, _const(rule.INT32_MAX + 1))
    half = relay.right_shift(total, _const(1))
    x = relay.add(_high(half, _const(rule.NEWTON_SLOPE)), _const(rule.NEWTON_CONSTANT))
    for _ in range(3):
        error = relay.subtract(_const(1 << 29), _high(half, x))
        x = relay.add(x, _shifted(_high(x, error), _const(2)))
    return _shifted(x, _const(1))


def _logarithm(z: Any) -> Any:
    """log(z) in Q5.26 for z of at least 1 in Q12.19."""
    unit = _const(1 << (31 - IN_BITS - 1))  # 1 in Q6.25
    quarter = _const(1 << (31 - IN_BITS - 3))

    def power(zeros: Any) -> Any:
        return relay.multiply(relay.subtract(_const(SUM_BITS), zeros), unit)

    zeros_a = _zeros(z)
    mantissa = _shifted(z, relay.subtract(zeros_a, _const(1)))
    r_a = _shifted(_high(mantissa, _const(SQRT_HALF)), _const(1))
    power_a = relay.add(power(zeros_a), quarter)
    zeros_b = relay.subtract(_zeros(_high(z, _const(SQRT_HALF))), _const(1))
    r_b = _shifted(z, zeros_b)
    power_b = relay.subtract(power(zeros_b), quarter)
    r, exponent = relay.minimum(r_a, r_b), relay.maximum(power_a, power_b)

    root = _const(SQRT_SQRT_HALF)
    p = relay.right_shift(relay.add(relay.add(r, root), _const(1)), _const(1))
    q = relay.multiply(relay.subtract(r, root), _const(2))
    square = _high(q, q)
    numerator = relay.add(_high(q, r), _high(_high(q, square), _const(ALPHA_N)))
    inner = relay.add(relay.add(_const(ALPHA_I), q), _high(_const(ALPHA_D), square))
    denominator = relay.add(_high(p, inner), _high(_const(ALPHA_F), q))
    fraction = _high(_divided(numerator, IN_BITS + 1), _reciprocal(denominator))
    return _shifted(relay.add(_high(exponent, _const(LOG_2)), fraction), _const(1))


def log_softmax8(data: Expr, scale: float) -> Any:
    """Return the logarithm of the softmax over the last axis: int8 with scale 1/16, zero at 127."""
    multiplier, shift = rule.quantize_multiplier(
        min(scale * (1 << (31 - IN_BITS)), float(rule.INT32_MAX))
    )
    radius = int(((1 << IN_BITS) - 1) * (1 << (31 - IN_BITS)) / 2.0**shift)
    below = np.arange(256, dtype=np.int32)  # max - x
    fixed = np.zeros(256, np.int32)  # x - max in Q5.26
    inside = below <= radius
    fixed[inside] = rule.multiply_by_quantized_multiplier(-below[inside], multiplier, shift)
    exponentials = rule.exp_on_negative_values(fixed, IN_BITS)
    exponentials = np.where(inside, rule.rounding_divide_by_power_of_two(exponentials, SUM_BITS), 0)

    wide = relay.cast(data, "int32")
    depth = relay.subtract(relay.max(wide, axis=-1, keepdims=True), wide)
    terms = relay.take(array_constant(exponentials, "int32"), depth, mode="clip")
    total = relay.cast(relay.sum(terms, axis=-1, keepdims=True), "int64")
    logarithm = _logarithm(total)

    back = float(1 << (31 - shift)) / multiplier
    lowest = relay.cast(relay.subtract(logarithm, _const(1 << 31)), "int32")
    minimum = relay.maximum(rescale_by(lowest, back), const(-radius - 1, "int32"))
    argument = relay.cast(relay.take(array_constant(fixed, "int32"), depth, mode="clip"), "int64")
    found = _divided(relay.subtract(argument, logarithm), 31 - IN_BITS - OUT_BITS)
    found = relay.clip(relay.add(found, _const(ZERO_POINT)), -128, 127)
    kept = relay.greater(relay.negative(depth), minimum)
    return relay.cast(relay.where(kept, found, _const(-128)), "int8")
