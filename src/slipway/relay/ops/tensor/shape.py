"""Operators that rearrange elements without changing any: reshape, transpose and kin."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import SymbolDim, described, factors
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import extents, integers, normal_axes
from slipway.relay.ops.dyn import length_of, of_rank, sizes_may_be_tensors
from slipway.relay.ops.tensor.tensors import injective, number, reshape_indices, shape_of, te
from slipway.relay.types import MAX_RANK, TensorType, Type, is_open

if TYPE_CHECKING:
    from slipway.relay.expr import Array, Axes, ExprLike, Extents


def _reshape_compute(
    attrs: Attrs | None, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,), (out,) = inputs, out_types
    shape = shape_of(x)
    return injective("reshape", out, lambda *i: x(*reshape_indices(out.shape, i, shape)))


@node
class ReshapeAttrs(Attrs):
    """The new shape.

    As in classic TVM: 0 copies the input's extent at that place, -1 is what remains (once),
    -2 copies all remaining axes, -3 joins the next two axes, -4 splits one axis into the
    following two entries (one may be -1).  With `allowzero` 0 means an empty axis, and so it
    does of data without elements where a copied extent would need some.
    """

    newshape: tuple[int, ...] = ()
    allowzero: bool = False


RESHAPE = register_op(
    "reshape", "data", attrs=ReshapeAttrs, pattern=OpPattern.INJECTIVE,
    doc="The same elements in row-major order under another shape.",
)  # fmt: skip


def without_common(one: Sequence[int], other: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the factors of two shapes without the open ones that both have."""
    left, right = [f for extent in one for f in factors(extent)], []
    for factor in [f for extent in other for f in factors(extent)]:
        if is_open(factor) and factor in left:
            left.remove(factor)
        else:
            right.append(factor)
    return left, right


def reshaped(
    shape: Sequence[int], newshape: Sequence[int], allowzero: bool = False
) -> tuple[int, ...]:
    """Return the shape that `newshape` means for `shape`, or raise BadArgument."""
    if not allowzero and 0 in newshape and 0 in shape:
        # Importers and passes hand over the shape they want.
        try:
            return _reshaped(shape, newshape, False)
        except BadArgument:
            return _reshaped(shape, newshape, True)
    return _reshaped(shape, newshape, allowzero)


def _reshaped(shape: Sequence[int], newshape: Sequence[int], allowzero: bool) -> tuple[int, ...]:
    out: list[int] = []
    at, free, entries = 0, -1, list(newshape)
    while entries:
        d = entries.pop(0)
        if is_open(d) or d > 0 or (d == 0 and allowzero):
            out.append(d)
            at += 1
        elif d == 0 or d == -2:
            take = shape[at : at + 1] if d == 0 else shape[at:]
            if d == 0 and not take:
                raise BadArgument("newshape", f"{tuple(newshape)}: no axis {at} in {tuple(shape)}")
            out.extend(take)
            at += len(take)
        elif d == -1:
            if free >= 0:
                raise BadArgument("newshape", f"{tuple(newshape)} has more than one -1")
            free = len(out)
            out.append(1)
            at += 1
        elif d == -3:
            if at + 2 > len(shape):
                raise BadArgument("newshape", f"{tuple(newshape)}: -3 joins two axes of {shape}")
            out.append(shape[at] * shape[at + 1])
            at += 2
        elif d == -4:
            if at >= len(shape) or len(entries) < 2 or 0 in entries[:2]:
                raise BadArgument(
                    "newshape", f"{tuple(newshape)}: -4 splits an axis of {shape} into two numbers"
                )
            one, two = entries.pop(0), entries.pop(0)
            one = shape[at] // two if one == -1 else one
            two = shape[at] // one if two == -1 else two
            out.extend((one, two))
            at += 1
        else:
            raise BadArgument("newshape", f"{tuple(newshape)}: {d} has no meaning")
    size = prod(shape)
    if free >= 0:
        given, wanted = without_common(shape, out)
        known = prod(wanted)
        if known == 0 or prod(given) % known:
            raise BadArgument(
                "newshape",
                f"{tuple(newshape)} does not divide the {size} elements of {tuple(shape)}",
            )
        out[free] = prod(given) // known
    if prod(out) != size:
        raise BadArgument(
            "newshape",
            f"{tuple(newshape)} has {prod(out)} elements, the data {tuple(shape)} has {size}",
        )
    return tuple(out)


@RESHAPE.type_relation
def _reshape_type(attrs: ReshapeAttrs, data: TensorType) -> Type:
    return TensorType(reshaped(data.shape, attrs.newshape, attrs.allowzero), data.dtype)


@RESHAPE.reference
def _reshape_reference(attrs: ReshapeAttrs, data: Array) -> Any:
    return np.reshape(data, reshaped(data.shape, attrs.newshape, attrs.allowzero))


RESHAPE.compute(_reshape_compute)


@RESHAPE.make
@sizes_may_be_tensors(
    "newshape", result=lambda data, newshape: of_rank(length_of("newshape", newshape), data.dtype)
)
def reshape(data: ExprLike, newshape: Extents, allowzero: bool = False) -> Call:
    """Give the tensor another shape; see `ReshapeAttrs` for 0, -1, -2, -3 and -4.

    One open dimension (`relay.Any()`) is written as -1; several must be formulas.
    """
    dims = newshape
    if (
        isinstance(newshape, Sequence)
        and sum(map(is_open, newshape)) + list(newshape).count(-1) < 2
    ):
        dims = [-1 if is_open(d) else d for d in newshape]
    return RESHAPE(data, attrs=ReshapeAttrs(extents("newshape", dims), bool(allowzero)))


RESHAPE.sample_case((2, 3, 4), attrs=ReshapeAttrs((6, -1)))
RESHAPE.sample_case((2, 12), attrs=ReshapeAttrs((0, 3, 4)))
RESHAPE.sample_case((4, 6), attrs=ReshapeAttrs((3, 2, 4)))
RESHAPE.sample_case((), attrs=ReshapeAttrs((1, 1)))

BATCH_FLATTEN = register_op(
    "nn.batch_flatten", "data", pattern=OpPattern.INJECTIVE,
    doc="All axes but the first joined into one.",
)  # fmt: skip


@BATCH_FLATTEN.type_relation
def _batch_flatten_type(attrs: None, data: TensorType) -> Type:
    if data.rank == 0:
        raise BadArgument("data", "must have at least one axis, got a scalar")
    return TensorType((data.shape[0], prod(data.shape[1:])), data.dtype)


@BATCH_FLATTEN.reference
def _batch_flatten_reference(attrs: None, data: Array) -> Any:
    return data.reshape(data.shape[0], prod(data.shape[1:]))


BATCH_FLATTEN.compute(_reshape_compute)


@BATCH_FLATTEN.make
def batch_flatten(data: ExprLike) -> Call:
    """Join all axes but the first."""
    return BATCH_FLATTEN(data)


BATCH_FLATTEN.sample_case((2, 3, 4, 5))


@node
class TransposeAttrs(Attrs):
    """Where each result axis comes from; empty reverses the axes."""

    axes: tuple[int, ...] = ()


TRANSPOSE = register_op(
    "transpose", "data", attrs=TransposeAttrs, pattern=OpPattern.INJECTIVE, doc="Axes permuted."
)


def _axes(attrs: TransposeAttrs, rank: int) -> tuple[int, ...]:
    if not attrs.axes:
        return tuple(range(rank))[::-1]
    axes = normal_axes(attrs.axes, rank, "axes")
    if len(axes) != rank:
        raise BadArgument("axes", f"{attrs.axes} must name each of the {rank} axes once")
    return axes


@TRANSPOSE.type_relation
def _transpose_type(attrs: TransposeAttrs, data: TensorType) -> Type:
    return TensorType(tuple(data.shape[a] for a in _axes(attrs, data.rank)), data.dtype)


@TRANSPOSE.reference
def _transpose_reference(attrs: TransposeAttrs, data: Array) -> Any:
    return np.array(np.transpose(data, _axes(attrs, data.ndim)), order="C")


@TRANSPOSE.compute
def _transpose_compute(
    attrs: TransposeAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,), (out,) = inputs, out_types
    axes = _axes(attrs, out.rank)

    def element(*i: Any) -> Any:
        source = [0] * len(axes)
        for position, axis in enumerate(axes):
            source[axis] = i[position]
        return x(*source)

    return [te().compute(out.shape, element, name="T_transpose", tag="injective,transpose")]


@TRANSPOSE.make
def transpose(data: ExprLike, axes: Sequence[SupportsIndex] | None = None) -> Call:
    """Permute the axes; without `axes`, reverse them."""
    return TRANSPOSE(data, attrs=TransposeAttrs(() if axes is None else integers("axes", axes)))


TRANSPOSE.sample_case((2, 3, 4))
TRANSPOSE.sample_case((2, 3, 4), attrs=TransposeAttrs((1, 2, 0)))


@node
class SqueezeAttrs(Attrs):
    """The axes of extent 1 to drop; None drops all of them."""

    axis: tuple[int, ...] | None = None


SQUEEZE = register_op(
    "squeeze",
    "data",
    attrs=SqueezeAttrs,
    pattern=OpPattern.INJECTIVE,
    doc="Axes of extent 1 dropped.",
)


def _squeezed(attrs: SqueezeAttrs, shape: Sequence[int]) -> tuple[int, ...]:
    if attrs.axis is None:
        for a, d in enumerate(shape):
            if isinstance(d, SymbolDim) and d.low <= 1 and (d.high is None or d.high >= 1):
                raise BadArgument(
                    "axis",
                    f"is None, which drops axis {a} where it has one element and keeps it "
                    f"elsewhere, and it has {described([d])}: give the dimension a range from 2 "
                    "on or a fixed size, or name the axes",
                )
        return tuple(d for d in shape if d != 1)
    axes = normal_axes(attrs.axis, len(shape))
    for a in axes:
        if shape[a] != 1:
            raise BadArgument("axis", f"is {attrs.axis}: axis {a} has extent {shape[a]}, not 1")
    return tuple(d for a, d in enumerate(shape) if a not in axes)


@SQUEEZE.type_relation
def _squeeze_type(attrs: SqueezeAttrs, data: TensorType) -> Type:
    return TensorType(_squeezed(attrs, data.shape), data.dtype)


@SQUEEZE.reference
def _squeeze_reference(attrs: SqueezeAttrs, data: Array) -> Any:
    return data.reshape(_squeezed(attrs, data.shape))


SQUEEZE.compute(_reshape_compute)


@SQUEEZE.make
@sizes_may_be_tensors(
    "axis", result=lambda data, axis: of_rank(data.rank - length_of("axis", axis), data.dtype)
)
def squeeze(data: ExprLike, axis: Axes = None) -> Call:
    """Drop axes of extent 1."""
    return SQUEEZE(data, attrs=SqueezeAttrs(None if axis is None else integers("axis", axis)))


SQUEEZE.sample_case((1, 3, 1, 4))
SQUEEZE.sample_case((1, 3, 1, 4), attrs=SqueezeAttrs((-2,)))


@node
class ExpandDimsAttrs(Attrs):
    """Where `num_newaxis` axes of extent 1 are put in; negative counts from the result's end."""

    axis: int = 0
    num_newaxis: int = 1


EXPAND_DIMS = register_op(
    "expand_dims", "data", attrs=ExpandDimsAttrs, pattern=OpPattern.BROADCAST,
    doc="Axes of extent 1 put in.",
)  # fmt: skip


def _expanded(attrs: ExpandDimsAttrs, shape: Sequence[int]) -> tuple[int, ...]:
    if not -len(shape) - 1 <= attrs.axis <= len(shape):
        raise BadArgument("axis", f"is {attrs.axis}, but the data has {len(shape)} axes")
    if not 0 <= attrs.num_newaxis <= MAX_RANK:
        raise BadArgument("num_newaxis", f"is {attrs.num_newaxis}; it must be 0 to {MAX_RANK}")
    at = attrs.axis if attrs.axis >= 0 else attrs.axis + len(shape) + 1
    return (*shape[:at], *(1,) * attrs.num_newaxis, *shape[at:])


@EXPAND_DIMS.type_relation
def _expand_dims_type(attrs: ExpandDimsAttrs, data: TensorType) -> Type:
    return TensorType(_expanded(attrs, data.shape), data.dtype)


@EXPAND_DIMS.reference
def _expand_dims_reference(attrs: ExpandDimsAttrs, data: Array) -> Any:
    return data.reshape(_expanded(attrs, data.shape))


EXPAND_DIMS.compute(_reshape_compute)


@EXPAND_DIMS.make
@sizes_may_be_tensors(
    "axis",
    result=lambda data, num_newaxis: of_rank(
        data.rank + (1 if num_newaxis is None else num_newaxis), data.dtype
    ),
)
def expand_dims(data: ExprLike, axis: int, num_newaxis: int = 1) -> Call:
    """Put in `num_newaxis` axes of extent 1 at `axis`."""
    return EXPAND_DIMS(data, attrs=ExpandDimsAttrs(int(axis), int(num_newaxis)))


EXPAND_DIMS.sample_case((2, 3), attrs=ExpandDimsAttrs(1, 2))
EXPAND_DIMS.sample_case((2, 3), attrs=ExpandDimsAttrs(-1, 1))


@node
class ShapeOfAttrs(Attrs):
    """The dtype of the sizes."""

    dtype: str = "int32"


# Opaque: the kernel has the tensor as an argument, whose shape it reads.
SHAPE_OF = register_op(
    "shape_of", "data", attrs=ShapeOfAttrs, pattern=OpPattern.OPAQUE,
    doc="The shape as a vector, of a tensor whose sizes are known when the model runs.",
)  # fmt: skip


@SHAPE_OF.type_relation
def _shape_of_type(attrs: ShapeOfAttrs, data: TensorType) -> Type:
    if not attrs.dtype.startswith(("int", "uint")):
        raise BadArgument("dtype", f"is {attrs.dtype!r}; sizes are integers")
    return TensorType((data.rank,), attrs.dtype)


@SHAPE_OF.reference
def _shape_of_reference(attrs: ShapeOfAttrs, data: Array) -> Any:
    return np.array(data.shape, attrs.dtype)


@SHAPE_OF.compute
def _shape_of_compute(
    attrs: ShapeOfAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    sizes = [number(extent, attrs.dtype) for extent in shape_of(inputs[0])]

    def element(i: Any) -> Any:
        value = sizes[-1] if sizes else te().const(0, attrs.dtype)
        for axis, size in enumerate(sizes[:-1]):
            value = te().Select(i == axis, size, value)
        return value

    return [te().compute(out_types[0].shape, element, name="shape_of", tag="opaque")]


@SHAPE_OF.make
def sizes_of(data: ExprLike, dtype: str = "int32") -> Call:
    """Return the vector of the tensor's sizes, computed when the model runs."""
    return SHAPE_OF(data, attrs=ShapeOfAttrs(dtype))


SHAPE_OF.sample_case((2, 3, 4))
SHAPE_OF.sample_case((5,), attrs=ShapeOfAttrs("int64"))


def swapaxes(data: ExprLike, axis1: int, axis2: int) -> Call:
    """Exchange two axes."""
    given = as_expr(data)
    axes = list(range(given.tensor_type.rank))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    made: Call = transpose(given, axes)
    return made
