"""LOGISTIC and TANH of 16-bit integers: a table of 256 points with linear interpolation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

# sigmoid(10.7 * i / 256) in Q0.16, as TFLite has it (its last digits follow no formula).
SIGMOID = (
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794,
    41432, 42064, 42688, 43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443,
    48964, 49475, 49975, 50464, 50942, 51409, 51865, 52311, 52745, 53169, 53581, 53983, 54374,
    54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433, 57724, 58007, 58280, 58544,
    58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110, 61279,
    61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990,
    63090, 63186, 63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030,
    64090, 64148, 64204, 64257, 64308, 64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652,
    64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900, 64926, 64950, 64974, 64997, 65019,
    65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208, 65221, 65234,
    65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360,
    65367, 65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433,
    65438, 65442, 65445, 65449, 65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476,
    65479, 65481, 65483, 65485, 65488, 65489, 65491, 65493, 65495, 65497, 65498, 65500, 65501,
    65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513, 65514, 65515, 65516,
    65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529,
    65529, 65530, 65530, 65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532,
    65532, 65532, 65532, 65533, 65533, 65533, 65533, 65533, 65533, 65533, 65533, 65534, 65534,
    65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
)  # fmt: skip


def _argument(node: NodeView, shifts: tuple[int, ...]) -> Any:
    """Return the input scaled so that 2**17 stands for 10.7."""
    scale = node.quantization().scale
    mantissa, exponent = math.frexp(scale)
    left = 12 + exponent - 1
    if mantissa == 0.5 and left in shifts:
        multiplier, right = 3 << left, 0
    else:
        real, right = scale * 4096.0 * 3.0, 0
        while real <= 32767.0 / 2.0 and right <= 30:
            right += 1
            real *= 2.0
        multiplier = int(real)
    value = relay.multiply(relay.cast(node[0], "int32"), _const(multiplier))
    if right == 0:
        return value
    return relay.right_shift(relay.add(value, _const(1 << (right - 1))), _const(right))


def _const(value: int) -> Any:
    return const(value, "int32")


def _interpolated(magnitude: Any, bits: int, limit: int) -> Any:
    """Read the table at magnitude / 2**bits, scaled by 2**bits; `limit` from the last entry on."""
    table = array_constant(SIGMOID, "int32")
    position = relay.right_shift(magnitude, _const(bits))
    inside = relay.minimum(position, _const(254))
    low = relay.take(table, inside, mode="clip")
    high = relay.take(table, relay.add(inside, _const(1)), mode="clip")
    part = relay.bitwise_and(magnitude, _const((1 << bits) - 1))
    slope = relay.multiply(part, relay.subtract(high, low))
    found = relay.add(relay.left_shift(low, _const(bits)), slope)
    return relay.where(relay.greater_equal(position, _const(255)), _const(limit), found)


def logistic16(node: NodeView) -> Any:
    """1 / (1 + exp(-x)) in Q0.15."""
    node.need_dtype("int16")
    return logistic_of(_argument(node, (0,)))


def logistic_of(value: Expr) -> Any:
    """1 / (1 + exp(-x)) in Q0.15, of int32 values where 2**17 stands for 10.7."""
    found = _interpolated(relay.abs(value), 9, 0x7FFF << 10)
    above = relay.add(found, _const(1 << 9))
    below = relay.subtract(_const((1 << 25) + (1 << 9) - 1), found)
    chosen = relay.where(relay.less(value, _const(0)), below, above)
    return relay.cast(relay.right_shift(chosen, _const(10)), "int16")


def tanh16(node: NodeView) -> Any:
    """The hyperbolic tangent in Q0.15."""
    node.need_dtype("int16")
    return tanh_of(_argument(node, (0, 1)))


def tanh_of(value: Expr) -> Any:
    """The hyperbolic tangent in Q0.15, of int32 values where 2**17 stands for 10.7."""
    found = _interpolated(relay.abs(value), 8, 0xFFFF << 8)
    above = relay.add(found, _const((1 << 7) - (1 << 23)))
    below = relay.subtract(_const((1 << 23) + (1 << 7) - 1), found)
    chosen = relay.where(relay.less(value, _const(0)), below, above)
    return relay.cast(relay.right_shift(chosen, _const(8)), "int16")
