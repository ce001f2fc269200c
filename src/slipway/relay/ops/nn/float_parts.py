"""nn.float_parts: float32 as sums of bfloat16, whose products a unit for bfloat16 multiplies.

    x = h + m + l       h the nearest bfloat16 of x, m that of the rest, l that of what is left then

h and m hold 16 of the 24 bits, h, m and l all of them.  A number that rounds to infinity, and
infinity itself, have a rest that is no number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, get, register_op
from slipway.relay.ops.checks import integers, normal_axis
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.ops.tensor.unary import CastAttrs
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents

PART, WHOLE = "bfloat16", "float32"
MOST = 3


@node
class FloatPartsAttrs(Attrs):
    """`parts`: numbers of parts, 0 the largest, that follow one another along `axis`."""

    parts: tuple[int, ...] = (0, 1)
    axis: int = 0


FLOAT_PARTS = register_op(
    "nn.float_parts", "data", attrs=FloatPartsAttrs, pattern=OpPattern.INJECTIVE,
    doc="Parts of float32 data in bfloat16, whose sum it is, one after another along an axis.",
)  # fmt: skip


@FLOAT_PARTS.type_relation
def _type(attrs: FloatPartsAttrs, data: TensorType) -> Type:
    if data.dtype != WHOLE:
        raise BadArgument("data", f"must be {WHOLE}, got {data}")
    if not attrs.parts or not all(0 <= part < MOST for part in attrs.parts):
        raise BadArgument("parts", f"must be numbers from 0 to {MOST - 1}, got {attrs.parts}")
    axis = normal_axis(attrs.axis, data.rank)
    shape: list[Any] = list(data.shape)
    shape[axis] = shape[axis] * len(attrs.parts)
    return TensorType(tuple(shape), PART)


@FLOAT_PARTS.reference
def _reference(attrs: FloatPartsAttrs, data: Array) -> Any:
    cast, found, residual = get("cast"), [], np.asarray(data)
    with np.errstate(invalid="ignore"):
        for _ in range(max(attrs.parts) + 1):
            found.append(cast.evaluate(CastAttrs(PART), residual))
            residual = residual - cast.evaluate(CastAttrs(WHOLE), found[-1])
    return np.concatenate([found[part] for part in attrs.parts], normal_axis(attrs.axis, data.ndim))


@FLOAT_PARTS.compute
def _compute(attrs: FloatPartsAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,), (out,) = inputs, out_types
    axis = normal_axis(attrs.axis, len(out.shape))
    size = size_of(x.shape[axis])

    def element(*i: PrimExpr) -> Any:
        which, at = te().floordiv(i[axis], size), te().floormod(i[axis], size)
        residual = x(*i[:axis], at, *i[axis + 1 :])
        found = []
        for _ in range(max(attrs.parts) + 1):
            found.append(residual.astype(PART))
            residual = residual - found[-1].astype(WHOLE)
        value = found[attrs.parts[-1]]
        for number in range(len(attrs.parts) - 2, -1, -1):
            value = te().if_then_else(which <= number, found[attrs.parts[number]], value)
        return value

    return [te().compute(tuple(out.shape), element, name="T_parts", tag="injective")]


@FLOAT_PARTS.make
def float_parts(data: ExprLike, parts: Extents = (0, 1), axis: int = 0) -> Call:
    """Return parts of `data` in bfloat16, one after another along `axis`: 0 is the largest."""
    attrs = FloatPartsAttrs(integers("parts", parts), axis)
    return FLOAT_PARTS(data, attrs=attrs)


FLOAT_PARTS.sample_case((3, 5), attrs=FloatPartsAttrs((0, 0, 1), 1))
FLOAT_PARTS.sample_case((2, 3, 4), attrs=FloatPartsAttrs((0, 1, 2, 0, 1, 0), -2))
