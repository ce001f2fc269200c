"""Operators that read at computed or strided positions: slices, take, gather, one_hot."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir import ops
from slipway.ir.node import node
from slipway.relay.dims import size_of, usual
from slipway.relay.expr import Call, Expr
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.build import call
from slipway.relay.ops.checks import (
    extents,
    integers,
    need_integral,
    normal_axes,
    normal_axis,
    of_elements,
)
from slipway.relay.ops.dyn import length_of, sizes_may_be_tensors, unknown_along
from slipway.relay.ops.tensor.spans import Span, span
from slipway.relay.ops.tensor.tensors import number, te, unflatten
from slipway.relay.types import ANY, TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class StridedSliceAttrs(Attrs):
    """Begin, end and step per listed axis, in Python's meaning (negative counts from the end)."""

    begin: tuple[int, ...] = ()
    end: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()


def reads_of_result(attrs: Attrs, in_types: Sequence[TensorType], out: TensorType) -> list[int]:
    """The bytes that an operator reads which picks elements: as many as it writes."""
    return [out.size_bytes, *(t.size_bytes for t in in_types[1:])]


STRIDED_SLICE = register_op(
    "strided_slice", "data", attrs=StridedSliceAttrs, pattern=OpPattern.INJECTIVE,
    doc="data[begin:end:step] along each axis.",
)  # fmt: skip


def _spans(attrs: StridedSliceAttrs, shape: Sequence[int]) -> list[Span]:
    """Return the source positions along every axis."""
    axes = (
        normal_axes(attrs.axes, len(shape), "axes")
        if attrs.axes
        else tuple(range(len(attrs.begin)))
    )
    if len(axes) > len(shape) or not len(axes) == len(attrs.begin) == len(attrs.end):
        raise BadArgument(
            "begin", f"{attrs.begin}, end {attrs.end} and the axes must agree with {tuple(shape)}"
        )
    found = [Span(0, d, 1) for d in shape]
    steps = attrs.strides or (1,) * len(axes)
    if len(steps) != len(axes):
        raise BadArgument("strides", f"is {attrs.strides}, for {len(axes)} axes")
    for axis, begin, end, step in zip(axes, attrs.begin, attrs.end, steps, strict=True):
        if step == 0:
            raise BadArgument("strides", f"{attrs.strides} has a zero")
        found[axis] = span(begin, end, step, shape[axis])
    return found


STRIDED_SLICE.reads(reads_of_result)


@STRIDED_SLICE.type_relation
def _strided_slice_type(attrs: StridedSliceAttrs, data: TensorType) -> Type:
    return TensorType(tuple(s.count for s in _spans(attrs, data.shape)), data.dtype)


@STRIDED_SLICE.reference
def _strided_slice_reference(attrs: StridedSliceAttrs, data: Array) -> Any:
    out = data
    for axis, s in enumerate(_spans(attrs, data.shape)):
        if s.count != data.shape[axis] or s.step != 1:
            out = out.take(s.start + np.arange(s.count) * s.step, axis=axis)
    return np.asarray(out, order="C") if out is not data else data


@STRIDED_SLICE.compute
def _strided_slice_compute(
    attrs: StridedSliceAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,), (out,) = inputs, out_types
    spans = _spans(attrs, [size_of(d) for d in x.shape])

    def at(i: Any, s: Span) -> Any:
        scaled = i if s.step == 1 else i * s.step
        if isinstance(s.start, int):
            return scaled + s.start if s.start else scaled
        return scaled + s.start.formula

    return [
        te().compute(
            out.shape,
            lambda *i: x(*(at(j, s) for j, s in zip(i, spans, strict=True))),
            name="T_strided_slice",
            tag="injective",
        )
    ]


def _slice_any(data: TensorType, begin: Any, end: Any) -> Type:
    count = max(length_of("begin", begin), length_of("end", end))
    return unknown_along(data, range(count))


@STRIDED_SLICE.make
@sizes_may_be_tensors("begin", "end", "strides", result=_slice_any)
def strided_slice(
    data: ExprLike,
    begin: Extents,
    end: Extents,
    strides: Extents | None = None,
    axes: Extents | None = None,
    slice_mode: str = "end",
) -> Call:
    """Slice in Python's meaning; with `slice_mode` "size", `end` holds lengths (-1: to the end).

    Of begin, end and strides the shorter ones are padded: from the start, to the end, by one.
    """
    first, last = extents("begin", begin), extents("end", end)
    count = max(len(first), len(last))
    if slice_mode == "size":
        steps: tuple[int, ...] = ()
    else:
        steps = () if strides is None else integers("strides", strides)[:count]
    first += (0,) * (count - len(first))
    last += (-1 if slice_mode == "size" else 2**62,) * (count - len(last))
    steps += (1,) * (count - len(steps) if steps else 0)
    if slice_mode == "size":
        last = tuple(2**62 if n < 0 else b + n for b, n in zip(first, last, strict=True))
    return STRIDED_SLICE(
        data,
        attrs=StridedSliceAttrs(
            first,
            last,
            steps,
            () if axes is None else integers("axes", axes),
        ),
    )


STRIDED_SLICE.sample_case((5, 6), attrs=StridedSliceAttrs((1, 0), (4, 6), (1, 2)))
STRIDED_SLICE.sample_case((5, 6), attrs=StridedSliceAttrs((-1,), (-99,), (-2,), (1,)))


@node
class TakeAttrs(Attrs):
    """`axis` None reads the flattened data; `mode` says what an index out of range does.

    Modes: "clip" goes to the nearest end, "wrap" is modulo; "fast" trusts the indices, except
    that negative ones count from the end (as ONNX and NumPy have it).
    """

    axis: int | None = None
    mode: str = "clip"


TAKE = register_op(
    "take", "data", "indices", attrs=TakeAttrs, pattern=OpPattern.INJECTIVE,
    doc="Slices of data along an axis, at the positions that indices holds.",
)  # fmt: skip


TAKE.reads(reads_of_result)


@TAKE.type_relation
@of_elements
def _take_type(attrs: TakeAttrs, data: TensorType, indices: TensorType) -> TensorType:
    need_integral("indices", indices)
    if attrs.axis is None:
        return TensorType(indices.shape, data.dtype)
    axis = normal_axis(attrs.axis, data.rank)
    return TensorType((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.dtype)


def _in_range(indices: Any, extent: int, mode: str) -> Any:
    if mode == "fast":
        return np.where(indices < 0, indices + extent, indices).clip(0, extent - 1)
    return indices % extent if mode == "wrap" else indices.clip(0, extent - 1)


@TAKE.reference
def _take_reference(attrs: TakeAttrs, data: Array, indices: Array) -> Any:
    extent = data.size if attrs.axis is None else data.shape[attrs.axis]
    return np.take(data, _in_range(indices, extent, attrs.mode), axis=attrs.axis)


def _index_in_range(index: PrimExpr, extent: int, mode: str) -> Any:
    """The te form of `_in_range`, as an int32 index; int64 where an axis is so long.

    What is in range fits; what is not has to keep its value until it is clipped or wrapped.
    """
    fits = dtypes.bits_of(index.dtype) < 32 or index.dtype == "int32" or mode == "fast"
    dtype = "int32" if usual(extent) < 1 << 31 else "int64"
    if index.dtype == "uint64" and mode == "clip":
        index = te().min(index, number(extent - 1, "uint64"))
    elif index.dtype == "uint64" and mode == "wrap":
        index = te().floormod(index, number(extent, "uint64"))
    position = index.astype(dtype if fits else "int64")
    size = number(extent, position.dtype)
    if mode == "wrap":
        return te().floormod(position, size).astype(dtype)
    if mode == "fast":
        position = te().select(position < 0, position + size, position)
    return te().min(te().max(position, 0), size - 1).astype(dtype)


@TAKE.compute
def _take_compute(attrs: TakeAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, indices = inputs
    (out,) = out_types
    shape, count = [size_of(d) for d in data.shape], len(indices.shape)

    def element(*i: PrimExpr) -> Any:
        if attrs.axis is None:
            position = _index_in_range(indices(*i), prod(shape), attrs.mode)
            return data(*unflatten(position, shape))
        axis = attrs.axis % len(shape)
        position = _index_in_range(indices(*i[axis : axis + count]), shape[axis], attrs.mode)
        return data(*i[:axis], position, *i[axis + count :])

    return [te().compute(out.shape, element, name="T_take", tag="injective,take")]


@TAKE.make
def take(
    data: ExprLike,
    indices: ExprLike,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: str = "clip",
) -> Call:
    """Read slices of `data` along `axis` at the positions in `indices`."""
    if batch_dims:
        raise BadArgument("batch_dims", f"is {batch_dims}; only 0 is served, use gather")
    if mode not in ("clip", "wrap", "fast"):
        raise BadArgument("mode", f"is {mode!r}; use 'clip', 'wrap' or 'fast'")
    return TAKE(data, as_expr(indices), attrs=TakeAttrs(axis, mode))


TAKE.sample_case(
    (5, 3), (2, 2), attrs=TakeAttrs(0, "clip"), dtypes=("float32", "int32"), low=-2, high=7
)
TAKE.sample_case((4, 3), (6,), attrs=TakeAttrs(), dtypes=("float32", "int64"), low=0, high=11)
TAKE.sample_case(
    (2, 5), (3,), attrs=TakeAttrs(1, "fast"), dtypes=("float32", "int64"), low=-5, high=4
)


@node
class GatherAttrs(Attrs):
    """The axis along which positions are read."""

    axis: int = 0


GATHER = register_op(
    "gather", "data", "indices", attrs=GatherAttrs, pattern=OpPattern.INJECTIVE,
    doc="out[..i..] = data[..indices[..i..]..]: one position per element along an axis.",
)  # fmt: skip


GATHER.reads(reads_of_result)


@GATHER.type_relation
@of_elements
def _gather_type(attrs: GatherAttrs, data: TensorType, indices: TensorType) -> TensorType:
    need_integral("indices", indices)
    normal_axis(attrs.axis, data.rank)
    if data.rank != indices.rank:
        raise BadArgument("indices", f"must have as many axes as the data, {data}; got {indices}")
    return TensorType(indices.shape, data.dtype)


@GATHER.reference
def _gather_reference(attrs: GatherAttrs, data: Any, indices: Any) -> Any:
    axis = attrs.axis % data.ndim
    positions = list(np.indices(indices.shape, sparse=True))
    positions[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
    return data[tuple(positions)]


@GATHER.compute
def _gather_compute(
    attrs: GatherAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, indices = inputs
    (out,) = out_types
    axis = attrs.axis % out.rank
    extent = size_of(data.shape[axis])

    def element(*i: PrimExpr) -> Any:
        position = _index_in_range(indices(*i), extent, "fast")
        return data(*i[:axis], position, *i[axis + 1 :])

    return [te().compute(out.shape, element, name="T_gather", tag="injective")]


@GATHER.make
def gather(data: ExprLike, axis: int, indices: ExprLike) -> Call:
    """Read one position along `axis` per element of `indices`."""
    return GATHER(data, as_expr(indices), attrs=GatherAttrs(int(axis)))


GATHER.sample_case(
    (4, 3), (2, 3), attrs=GatherAttrs(0), dtypes=("float32", "int64"), low=-4, high=3
)


@node
class GatherNdAttrs(Attrs):
    """How many leading axes data and indices share."""

    batch_dims: int = 0


GATHER_ND = register_op(
    "gather_nd", "data", "indices", attrs=GatherNdAttrs, pattern=OpPattern.INJECTIVE,
    doc="Slices of data at index tuples; the tuples lie along the FIRST axis of indices.",
)  # fmt: skip


GATHER_ND.reads(reads_of_result)


@GATHER_ND.type_relation
@of_elements
def _gather_nd_type(attrs: GatherNdAttrs, data: TensorType, indices: TensorType) -> TensorType:
    need_integral("indices", indices)
    if indices.rank < 1 or indices.shape[0] + attrs.batch_dims > data.rank:
        raise BadArgument(
            "indices", f"is {indices}: its first axis counts the indexed axes of {data}"
        )
    rest = data.shape[attrs.batch_dims + indices.shape[0] :]
    return TensorType((*indices.shape[1:], *rest), data.dtype)


@GATHER_ND.reference
def _gather_nd_reference(attrs: GatherNdAttrs, data: Array, indices: Array) -> Any:
    b, depth = attrs.batch_dims, indices.shape[0]
    extents = np.array(data.shape[b : b + depth]).reshape((-1,) + (1,) * (indices.ndim - 1))
    fixed = np.where(indices < 0, indices + extents, indices)
    lead = np.indices(indices.shape[1:], sparse=True)[:b]
    return data[(*lead, *fixed)]


@GATHER_ND.compute
def _gather_nd_compute(
    attrs: GatherNdAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, indices = inputs
    (out,) = out_types
    b, depth, count = attrs.batch_dims, size_of(indices.shape[0]), len(indices.shape) - 1

    def element(*i: PrimExpr) -> Any:
        where = [
            _index_in_range(indices(d, *i[:count]), size_of(data.shape[b + d]), "fast")
            for d in range(depth)
        ]
        return data(*i[:b], *where, *i[count:])

    return [te().compute(out.shape, element, name="T_gather_nd", tag="injective")]


@GATHER_ND.make
def gather_nd(
    data: ExprLike, indices: ExprLike, batch_dims: int = 0, index_rank: int | None = None
) -> Call:
    """Read slices at index tuples, which lie along the first axis of `indices`.

    `index_rank` is that axis' extent, which the tensor says too.
    """
    positions = as_expr(indices)
    if index_rank is not None and positions.type is not None:
        shape = positions.tensor_type.shape
        if shape and int(index_rank) != shape[0]:
            raise BadArgument(
                "index_rank", f"is {index_rank}, but the first axis of indices has {shape[0]}"
            )
    return GATHER_ND(data, positions, attrs=GatherNdAttrs(int(batch_dims)))


GATHER_ND.sample_case((3, 4, 2), (2, 5), dtypes=("float32", "int64"), low=0, high=2)
GATHER_ND.sample_case(
    (2, 4, 3), (1, 2), attrs=GatherNdAttrs(1), dtypes=("float32", "int64"), low=0, high=3
)


@node
class OneHotAttrs(Attrs):
    """`depth` classes along a new `axis`, as `on_value` and `off_value` of `dtype`."""

    on_value: float = 1.0
    off_value: float = 0.0
    depth: int = 1
    axis: int = -1
    dtype: str = "float32"


ONE_HOT = register_op(
    "one_hot", "indices", attrs=OneHotAttrs, pattern=OpPattern.INJECTIVE,
    doc="on_value where the class is the index, off_value elsewhere.",
)  # fmt: skip


@ONE_HOT.type_relation
def _one_hot_type(attrs: OneHotAttrs, indices: TensorType) -> Type:
    need_integral("indices", indices)
    axis = normal_axis(attrs.axis, indices.rank + 1)
    return TensorType((*indices.shape[:axis], attrs.depth, *indices.shape[axis:]), attrs.dtype)


@ONE_HOT.reference
def _one_hot_reference(attrs: OneHotAttrs, indices: Array) -> Any:
    hot = np.expand_dims(indices, -1) == np.arange(attrs.depth)
    out = np.where(hot, attrs.on_value, attrs.off_value).astype(attrs.dtype)
    return np.asarray(np.moveaxis(out, -1, attrs.axis), order="C")


@ONE_HOT.compute
def _one_hot_compute(
    attrs: OneHotAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (indices,), (out,) = inputs, out_types
    axis = attrs.axis % out.rank
    on, off = te().const(attrs.on_value, out.dtype), te().const(attrs.off_value, out.dtype)

    def element(*i: PrimExpr) -> Any:
        wanted = indices(*i[:axis], *i[axis + 1 :])
        if attrs.depth > np.iinfo(indices.dtype).max:  # a class that the indices cannot name
            wanted = wanted.astype("int64")
        return te().select(ops.equal(wanted, i[axis].astype(wanted.dtype)), on, off)

    return [te().compute(out.shape, element, name="T_one_hot", tag="injective")]


def _one_hot_any(indices: TensorType, axis: int | None, dtype: str | None) -> Type:
    position = normal_axis(-1 if axis is None else axis, indices.rank + 1)
    shape = (*indices.shape[:position], ANY, *indices.shape[position:])
    return TensorType(shape, dtype or "float32")


@ONE_HOT.make
@sizes_may_be_tensors("depth", tensors=("indices", "on_value", "off_value"), result=_one_hot_any)
def one_hot(
    indices: ExprLike,
    on_value: ExprLike,
    off_value: ExprLike,
    depth: int,
    axis: int = -1,
    dtype: str = "float32",
) -> Call:
    """Return `on_value` where the class along the new `axis` is the index, else `off_value`.

    Both are one number each, or expressions of one.
    """
    on, off = _number(on_value), _number(off_value)
    if isinstance(on, Expr) or isinstance(off, Expr):
        is_there = ONE_HOT(indices, attrs=OneHotAttrs(1.0, 0.0, int(depth), int(axis), "bool"))
        values = (call("cast", value, dtype) for value in (on_value, off_value))
        return call("where", is_there, *values)  # type: ignore[no-any-return]
    return ONE_HOT(indices, attrs=OneHotAttrs(on, off, int(depth), int(axis), dtype))


def _number(value: Any) -> float | Expr:
    array = getattr(value, "array", value)
    if isinstance(array, Expr):
        return array
    if np.size(array) != 1:
        raise BadArgument("on_value", f"and off_value are one number each, got {array!r}")
    return float(np.asarray(array).reshape(()))


ONE_HOT.sample_case((2, 3), attrs=OneHotAttrs(1.0, 0.0, 4), dtypes=("int32",), low=0, high=3)
