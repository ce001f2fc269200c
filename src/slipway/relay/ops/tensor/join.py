"""Operators on several tensors or several results: concatenate, stack, split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call, TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import integers, normal_axis, one_integer, whole
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents

IN_A_ROW = 16  # parts of a join that are told apart one by one


@node
class JoinAttrs(Attrs):
    """The axis of joining (concatenate) or the new axis (stack)."""

    axis: int = 0


CONCATENATE = register_op(
    "concatenate", "data...", attrs=JoinAttrs, pattern=OpPattern.INJECTIVE,
    doc="Tensors put one after another along an axis.",
)  # fmt: skip


def _fields(data: TupleType) -> list[TensorType]:
    fields = [f for f in data.fields if isinstance(f, TensorType)]
    if not fields or len(fields) != len(data.fields):
        raise BadArgument("data", f"must be a tuple of at least one tensor, got {data}")
    for f in fields:
        if f.dtype != fields[0].dtype:
            raise BadArgument(
                "data", f"mixes {fields[0].dtype} and {f.dtype}; cast them to one dtype"
            )
    return fields


@CONCATENATE.type_relation
def _concatenate_type(attrs: JoinAttrs, data: TupleType) -> Type:
    fields = _fields(data)
    first = fields[0]
    axis = normal_axis(attrs.axis, first.rank)
    for number, f in enumerate(fields):
        if f.shape[:axis] + f.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]:
            raise BadArgument(
                "data", f"field {number} is {f}; but for axis {axis} it must be {first}"
            )
    total = sum(f.shape[axis] for f in fields)
    return TensorType((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)


@CONCATENATE.reference
def _concatenate_reference(attrs: JoinAttrs, data: Sequence[Any]) -> Any:
    return np.concatenate(data, axis=attrs.axis)


def chosen(index: PrimExpr, bounds: Sequence[int], read: Callable[[int], Any]) -> Any:
    """Return ``read(n)`` for the part n that `index` lies in; part n ends before ``bounds[n]``.

    Few parts are asked for one after the other, as many are halved: a thousand parts are ten
    questions, not a thousand inside each other.
    """

    def among(first: int, last: int) -> Any:
        if first == last:
            return read(first)
        cut = first if last - first < IN_A_ROW else (first + last) // 2
        return te().if_then_else(index < bounds[cut], among(first, cut), among(cut + 1, last))

    return among(0, len(bounds))


@CONCATENATE.compute
def _concatenate_compute(
    attrs: JoinAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (out,) = out_types
    axis = attrs.axis % out.rank
    starts = list(accumulate((size_of(t.shape[axis]) for t in inputs), initial=0))

    def element(*i: PrimExpr) -> Any:
        def read(n: int) -> Any:
            at = i[axis] - starts[n] if n else i[axis]
            return inputs[n](*i[:axis], at, *i[axis + 1 :])

        return chosen(i[axis], starts[1:-1], read)

    return [te().compute(out.shape, element, name="T_concat", tag="injective,concat")]


@CONCATENATE.make
def concatenate(data: ExprLike, axis: int = 0) -> Call:
    """Put the tensors one after another along `axis`."""
    return CONCATENATE(as_expr(data), attrs=JoinAttrs(whole("axis", axis, -(2**31), 2**31 - 1)))


CONCATENATE.sample_case([(2, 3), (1, 3), (4, 3)])
CONCATENATE.sample_case([(2, 3, 1), (2, 3, 2)], attrs=JoinAttrs(-1))

STACK = register_op(
    "stack", "data...", attrs=JoinAttrs, pattern=OpPattern.INJECTIVE,
    doc="Equal tensors put beside each other along a new axis.",
)  # fmt: skip


@STACK.type_relation
def _stack_type(attrs: JoinAttrs, data: TupleType) -> Type:
    fields = _fields(data)
    first = fields[0]
    axis = normal_axis(attrs.axis, first.rank + 1)
    for number, f in enumerate(fields):
        if f != first:
            raise BadArgument("data", f"field {number} is {f}; all must be {first}")
    return TensorType((*first.shape[:axis], len(fields), *first.shape[axis:]), first.dtype)


@STACK.reference
def _stack_reference(attrs: JoinAttrs, data: Sequence[Any]) -> Any:
    return np.stack(data, axis=attrs.axis)


@STACK.compute
def _stack_compute(attrs: JoinAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (out,) = out_types
    axis = attrs.axis % out.rank

    def element(*i: PrimExpr) -> Any:
        rest = i[:axis] + i[axis + 1 :]
        return chosen(i[axis], range(1, len(inputs)), lambda n: inputs[n](*rest))

    return [te().compute(out.shape, element, name="T_stack", tag="injective")]


@STACK.make
def stack(data: ExprLike, axis: int = 0) -> Call:
    """Put equal tensors beside each other along a new axis."""
    return STACK(as_expr(data), attrs=JoinAttrs(whole("axis", axis, -(2**31), 2**31 - 1)))


STACK.sample_case([(2, 3), (2, 3)], attrs=JoinAttrs(1))


@node
class SplitAttrs(Attrs):
    """Where the parts begin (an empty tuple: one part) along `axis`."""

    indices: tuple[int, ...] = ()
    axis: int = 0


SPLIT = register_op(
    "split", "data", attrs=SplitAttrs, pattern=OpPattern.INJECTIVE,
    doc="The tensor cut along an axis; a tuple.",
)  # fmt: skip


def _bounds(attrs: SplitAttrs, extent: int) -> list[tuple[int, int]]:
    cuts = (0, *attrs.indices, extent)
    if any(low > high for low, high in pairwise(cuts)):
        raise BadArgument("indices_or_sections", f"{attrs.indices} do not rise within 0..{extent}")
    return list(pairwise(cuts))


@SPLIT.type_relation
def _split_type(attrs: SplitAttrs, data: TensorType) -> Type:
    axis = normal_axis(attrs.axis, data.rank)
    return TupleType(
        tuple(
            TensorType((*data.shape[:axis], high - low, *data.shape[axis + 1 :]), data.dtype)
            for low, high in _bounds(attrs, data.shape[axis])
        )
    )


@SPLIT.reference
def _split_reference(attrs: SplitAttrs, data: Array) -> Any:
    return tuple(np.asarray(p, order="C") for p in np.split(data, attrs.indices, axis=attrs.axis))


@SPLIT.compute
def _split_compute(attrs: SplitAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    axis = attrs.axis % len(x.shape)
    results = []
    for out, (low, _) in zip(out_types, _bounds(attrs, size_of(x.shape[axis])), strict=True):
        results.append(
            te().compute(
                out.shape,
                lambda *i, low=low: x(*i[:axis], i[axis] + low if low else i[axis], *i[axis + 1 :]),
                name="T_split",
                tag="injective",
            )
        )
    return results


@SPLIT.make
def split(data: ExprLike, indices_or_sections: Extents, axis: int = 0) -> TupleWrapper:
    """Cut the tensor into equal sections (an int) or at indices; returns a tuple."""
    given = as_expr(data)
    position = normal_axis(axis, given.tensor_type.rank)
    extent = given.tensor_type.shape[position]
    sections = one_integer(indices_or_sections)
    if sections is not None:
        if sections < 1 or (sections > 1 and extent % sections):
            raise BadArgument(
                "indices_or_sections", f"is {sections}, which does not divide the extent {extent}"
            )
        one = sections == 1 or (isinstance(extent, int) and extent == 0)  # of an open extent, too
        cuts = () if one else tuple(range(extent // sections, extent, extent // sections))
    else:
        cuts = integers("indices_or_sections", indices_or_sections)
    return TupleWrapper(SPLIT(given, attrs=SplitAttrs(cuts, position)), len(cuts) + 1)


SPLIT.sample_case((6, 4), attrs=SplitAttrs((2, 3), 0))
SPLIT.sample_case((2, 6), attrs=SplitAttrs((3,), -1))
