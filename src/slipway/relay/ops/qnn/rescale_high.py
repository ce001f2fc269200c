"""qnn.contrib_rescale_high: requantisation in 32 bits, from the high half of the product.

One rounding of a factor below a quarter, ``(x * m + 2**(T - 1)) >> T`` with T > 32, takes nothing
from the low half of the product: the half that is added lies in the high one.  So

    (((x * m) >> 32) + offset) >> shift      shift = T - 32,  offset = 2**(shift - 1)

is the same integer, and vectors of 32 bits are enough.  A zero point z is part of the offset, as
``z << shift``.  The pass `narrow_rescale` makes it.

TFLite rounds twice, ``h = (x * m + 2**30) >> 31`` and then ``h >> s`` to the nearest, halves away
from zero.  Of ``4 * x`` the high half has h with one binary digit more, so that both halves are
part of the offset, ``2**s + 1``, the shift is s + 1, and `away` is 2, an h.  The pass
`short_rounding` makes that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import broadcast_shapes, need_dtype
from slipway.relay.ops.tensor.tensors import read_broadcast, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike


@node
class RescaleHighAttrs(Attrs):
    """`away`: by how much the offset is less where the data is below zero."""

    away: int = 0


HIGH = register_op(
    "qnn.contrib_rescale_high", "data", "multiplier", "offset", "shift", attrs=RescaleHighAttrs,
    pattern=OpPattern.BROADCAST, flops_per_element=4,
    doc="(((data * multiplier) >> 32) + offset) >> shift, all int32, the product 64 bits wide; "
    "the offset is less by `away` where the data is below zero.",
)  # fmt: skip


@HIGH.type_relation
def _high_type(
    attrs: RescaleHighAttrs,
    data: TensorType,
    multiplier: TensorType,
    offset: TensorType,
    shift: TensorType,
) -> Type:
    for name, kind in (
        ("data", data), ("multiplier", multiplier), ("offset", offset), ("shift", shift)
    ):  # fmt: skip
        need_dtype(name, kind, "int32", "every operand")
        if broadcast_shapes(data.shape, kind.shape, name) != data.shape:
            raise BadArgument(name, f"is {kind}, larger than the data, {data}")
    return data


@HIGH.reference
def _high_reference(
    attrs: RescaleHighAttrs, data: Array, multiplier: Array, offset: Array, shift: Array
) -> Any:
    high = (data.astype(np.int64) * np.asarray(multiplier, np.int64)) >> 32
    high = high - np.where(data < 0, attrs.away, 0)
    return ((high.astype(np.int32) + np.asarray(offset, np.int32)) >> shift).astype(np.int32)


@HIGH.compute
def _high_compute(
    attrs: RescaleHighAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, *factors = inputs
    zero, away = te().const(0, "int32"), te().const(-attrs.away, "int32")

    def element(*i: PrimExpr) -> Any:
        multiplier, offset, shift = (read_broadcast(f, i) for f in factors)
        value = read_broadcast(data, i)
        high = te().multiply_high(value, multiplier) + offset
        if attrs.away:
            high = high + te().select(value < zero, away, zero)
        return high >> shift

    return [te().compute(out_types[0].shape, element, name="T_rescale_high", tag="broadcast")]


@HIGH.make
def contrib_rescale_high(
    data: ExprLike, multiplier: ExprLike, offset: ExprLike, shift: ExprLike, away: int = 0
) -> Call:
    """Scale int32 sums; the other operands are int32 and broadcast against `data`."""
    factors = (as_expr(f, "int32") for f in (multiplier, offset, shift))
    return HIGH(data, *factors, attrs=RescaleHighAttrs(away))


def _case(shape: tuple[int, ...], count: int, away: int = 0) -> None:
    def make(rng: np.random.Generator) -> Any:
        data = rng.integers(-(1 << 31), 1 << 31, shape).astype("int32")
        data.reshape(-1)[:4] = [-(1 << 31), (1 << 31) - 1, -1, 1]
        shift = rng.integers(1, 20, count).astype("int32")
        multiplier = rng.integers(1 << 30, (1 << 31) - 1, count, endpoint=True).astype("int32")
        offset = (rng.integers(-128, 256, count) << shift) + (1 << (shift - 1))
        factors = [multiplier, offset.astype("int32"), shift]
        return [data, *(f[0] if count == 1 else f for f in factors)]

    per = () if count == 1 else (count,)
    attrs = RescaleHighAttrs(away)
    HIGH.sample_case(shape, per, per, per, attrs=attrs, dtypes=("int32",) * 4, make=make)


_case((3, 40, 8), 8)
_case((2, 33), 1)
_case((3, 40, 8), 8, away=2)
