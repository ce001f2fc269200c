"""qnn.rsqrt_multiplier, qnn.rsqrt_shift: 1 / sqrt(x) of int32 values, a factor of `qnn.rescale`.

Both hold one half of what `quantization.inverse_square_root` gives: five steps of Newton in Q3.28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay import quantization as rule
from slipway.relay.expr import Call
from slipway.relay.op_registry import OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype
from slipway.relay.ops.qnn.rescale import (
    doubling_high_multiply,
    rounding_divide_by_power_of_two,
    saturating_shift_left,
)
from slipway.relay.ops.tensor.tensors import NamedSteps, elementwise, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike

HALF_SQRT_TWO = 1518500250


def _const(value: int) -> Any:
    return te().const(value, "int32")


def _normalized(value: Array) -> tuple[Any, Any]:
    """Return the value brought into [2**27, 2**29) by powers of four, and the right shift left."""
    large = value >= _const(1 << 29)
    small = te().select(large, value >> _const(2), te().max(value, _const(2)))
    pairs = ((te().clz(small) - _const(1)) >> _const(1)) - _const(1)
    shift = te().select(large, _const(12), _const(11)) - pairs
    return small << (pairs << _const(1)), shift


def _multiplier(value: Array) -> Any:
    normal, shift = _normalized(value)
    half = rounding_divide_by_power_of_two(normal >> _const(1), _const(1))
    x = _const(1 << 28)
    steps = NamedSteps()
    half = steps.name(half)
    for _ in range(5):
        square = doubling_high_multiply(x, x)
        cube = saturating_shift_left(doubling_high_multiply(square, x), 6)
        grown = doubling_high_multiply(_const((1 << 28) + (1 << 27)), x)
        x = steps.name(saturating_shift_left(grown - doubling_high_multiply(half, cube), 3))
    x = steps.around(doubling_high_multiply(x, _const(HALF_SQRT_TWO)))
    x = x << te().max(_const(0) - shift, _const(0))
    return te().select(value <= _const(1), _const(rule.INT32_MAX), x)


def _shift(value: Array) -> Any:
    _, shift = _normalized(value)
    return te().select(value <= _const(1), _const(0), _const(0) - te().max(shift, _const(0)))


def _register(name: str, part: int, element: Any) -> OpDefinition:
    definition = register_op(
        f"qnn.{name}", "data", pattern=OpPattern.ELEMWISE, flops_per_element=60,
        doc=f"The {name.split('_')[1]} of 1 / sqrt(data) for int32 data, at least 0.",
    )  # fmt: skip

    @definition.type_relation
    def relation(attrs: None, data: TensorType) -> Type:
        need_dtype("data", data, "int32", "every accumulator")
        return data

    @definition.reference
    def evaluate(attrs: None, data: Array) -> Any:
        found = [rule.inverse_square_root(int(v))[part] for v in data.reshape(-1)]
        return np.array(found, np.int32).reshape(data.shape)

    @definition.compute
    def compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        (x,) = inputs
        return [elementwise(f"T_{name}", x.shape, lambda *i: element(x(*i)))]

    @definition.make
    def make(data: ExprLike) -> Call:
        return definition(data)

    make.__name__, make.__doc__ = name, definition.doc
    definition.sample_case((3, 60), dtypes=("int32",), low=0, high=(1 << 31) - 2)
    definition.sample_case((60,), dtypes=("int32",), low=0, high=60)
    return definition


RSQRT_MULTIPLIER = _register("rsqrt_multiplier", 0, _multiplier)
RSQRT_SHIFT = _register("rsqrt_shift", 1, _shift)
