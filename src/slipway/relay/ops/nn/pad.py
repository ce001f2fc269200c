"""nn.pad: constant, edge, reflected, symmetric and wrapped padding of any axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import larger, size_of
from slipway.relay.expr import Call, Constant, Expr
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, const, register_op
from slipway.relay.ops.build import call, known
from slipway.relay.ops.checks import as_extents
from slipway.relay.ops.dyn import of_rank, sizes_may_be_tensors
from slipway.relay.ops.nn.windows import pad_stage
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@node
class PadAttrs(Attrs):
    """(before, after) per axis; negative amounts crop.  `pad_value` serves mode "constant".

    "reflect" leaves the last element itself out, "symmetric" repeats it.
    """

    pad_width: tuple[tuple[int, int], ...] = ()
    pad_value: float = 0.0
    pad_mode: str = "constant"


PAD = register_op(
    "nn.pad", "data", attrs=PadAttrs, pattern=OpPattern.INJECTIVE, doc="The tensor with a padding."
)


@PAD.type_relation
def _pad_type(attrs: PadAttrs, data: TensorType) -> Type:
    if len(attrs.pad_width) != data.rank:
        raise BadArgument("pad_width", f"has {len(attrs.pad_width)} pairs, but the data is {data}")
    if attrs.pad_mode not in MODES:
        raise BadArgument("pad_mode", f"is {attrs.pad_mode!r}; use one of {', '.join(MODES)}")
    shape = []
    for axis, (d, (low, high)) in enumerate(zip(data.shape, attrs.pad_width, strict=True)):
        left = d + (low if low < 0 else 0) + (high if high < 0 else 0)
        if d + low + high < 0:
            raise BadArgument("pad_width", f"crops more than the {d} elements of axis {axis}")
        most = {"reflect": left - 1, "symmetric": left}.get(attrs.pad_mode)
        for width in (low, high):
            if most is not None and width > larger(most, 0):
                raise BadArgument(
                    "pad_width", f"reflects {width} of {left} elements on axis {axis}"
                )
        shape.append(d + low + high)
    if attrs.pad_mode != "constant" and 0 in data.shape and 0 not in shape:
        raise BadArgument("data", f"is {data}: it has no elements to repeat")
    return TensorType(tuple(shape), data.dtype)


@PAD.reference
def _pad_reference(attrs: PadAttrs, data: Array) -> Any:
    crop = tuple(
        slice(max(-low, 0), d - max(-high, 0))
        for d, (low, high) in zip(data.shape, attrs.pad_width, strict=True)
    )
    grow = [(max(low, 0), max(high, 0)) for low, high in attrs.pad_width]
    if attrs.pad_mode == "constant":
        value = data.dtype.type(attrs.pad_value)
        return np.pad(data[crop], grow, constant_values=value) if data.ndim else data
    return np.pad(data[crop], grow, mode=attrs.pad_mode)  # type: ignore[call-overload]


def source_position(i: Any, widths: tuple[int, int], extent: int, mode: str) -> Any:
    """Return where along an axis of `extent` the element at padded position `i` comes from.

    What negative widths crop is no part of what is continued.
    """
    low, high = widths
    if low < 0 < high or high < 0 < low:
        first = max(-low, 0)
        left = extent + min(low, 0) + min(high, 0)
        return source_position(i, (max(low, 0), max(high, 0)), left, mode) + first
    at = i - low
    if mode == "edge":
        return te().min(te().max(at, 0), extent - 1)
    if mode == "wrap":
        return te().floormod(at, extent)
    twice = 0 if mode == "reflect" else 1  # the last element is there as often more
    at = te().max(at, 0 - at - twice)
    return te().min(at, 2 * (extent - 1) - at + twice)


@PAD.compute
def pad_compute(attrs: PadAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """Return the padded tensor: where it continues the data, an element finds its own place."""
    (x,), (out,) = inputs, out_types
    shape, widths = [size_of(d) for d in x.shape], attrs.pad_width
    if attrs.pad_mode == "constant" and all(w >= 0 for pair in widths for w in pair):
        before, after = zip(*widths, strict=True) if widths else ((), ())
        padded = pad_stage(x, before, after, attrs.pad_value, name="T_pad")
        if padded is not x:
            return [padded]

    def element(*indices: PrimExpr) -> Any:
        source, inside = [], []
        for i, extent, (low, high) in zip(indices, shape, widths, strict=True):
            if attrs.pad_mode == "constant" or (low <= 0 and high <= 0):
                source.append(i - low if low else i)
                inside += [i >= low] if low > 0 else []
                inside += [i < extent + low] if high > 0 else []
            else:
                source.append(source_position(i, (low, high), extent, attrs.pad_mode))
        value = x(*source)
        if attrs.pad_mode != "constant" or not inside:
            return value
        return te().if_then_else(te().all(*inside), value, te().const(attrs.pad_value, x.dtype))

    return [te().compute(out.shape, element, name="T_pad", tag="injective,pad")]


@PAD.make
@sizes_may_be_tensors(
    "pad_width",
    tensors=("data", "pad_value"),
    result=lambda data: of_rank(data.rank, data.dtype),
)
def pad(
    data: ExprLike,
    pad_width: Sequence[Extents],
    pad_value: ExprLike = 0,
    pad_mode: str = "constant",
) -> Call:
    """Surround the tensor: `pad_width` is one (before, after) pair per axis.

    An amount may be a formula of open sizes.
    """
    if isinstance(pad_value, Expr) and not isinstance(pad_value, Constant):
        return _padded_with(data, pad_width, pad_value, pad_mode)
    value = known("pad_value", pad_value)
    if value.size != 1:
        raise BadArgument("pad_value", f"must be one number, got {value.size}")
    low_high = [as_extents(pair, 2, "pad_width") for pair in pad_width]
    widths = tuple((low, high) for low, high in low_high)
    return PAD(data, attrs=PadAttrs(widths, float(value.item()), pad_mode))


def _padded_with(data: ExprLike, pad_width: Sequence[Extents], value: Expr, pad_mode: str) -> Call:
    """Return the padded tensor for a value that a run computes: chosen by a mask known now."""
    made = pad(data, pad_width, 0, pad_mode)
    if pad_mode != "constant":
        return made
    inside = call("full", const(True, "bool"), as_expr(data).tensor_type.shape)
    mask = pad(inside, pad_width, 0)
    scalar = call("reshape", call("cast", value, made.tensor_type.dtype), ())
    return call("where", mask, made, scalar)  # type: ignore[no-any-return]


PAD.sample_case((2, 3), attrs=PadAttrs(((1, 0), (2, 1)), 0.5))
PAD.sample_case((4, 5), attrs=PadAttrs(((-1, 1), (0, -2)), 0.5))
PAD.sample_case((3, 4), attrs=PadAttrs(((1, 2), (2, 0)), 0.0, "edge"))
PAD.sample_case((3, 4), attrs=PadAttrs(((1, 2), (3, 0)), 0.0, "reflect"))
PAD.sample_case((3, 4), attrs=PadAttrs(((1, 3), (4, 0)), 0.0, "symmetric"))
PAD.sample_case((3, 4), attrs=PadAttrs(((1, 2), (3, 0)), 0.0, "wrap"))
