"""Operators that read elements several times or the other way round: broadcast_to, tile and kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import extents, normal_axis
from slipway.relay.ops.dyn import length_of, of_rank, sizes_may_be_tensors
from slipway.relay.ops.tensor.tensors import injective, read_broadcast, shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class ShapeAttrs(Attrs):
    """The result's shape."""

    shape: tuple[int, ...] = ()


BROADCAST_TO = register_op(
    "broadcast_to", "data", attrs=ShapeAttrs, pattern=OpPattern.BROADCAST,
    doc="Repeated along axes of extent 1 to fill a shape.",
)  # fmt: skip


@BROADCAST_TO.type_relation
def _broadcast_to_type(attrs: ShapeAttrs, data: TensorType) -> Type:
    added = len(attrs.shape) - data.rank
    own = attrs.shape[max(added, 0) :]
    if added < 0 or any(d not in (1, e) for d, e in zip(data.shape, own, strict=True)):
        raise BadArgument("shape", f"is {attrs.shape}, to which {data} does not broadcast")
    return TensorType(attrs.shape, data.dtype)


@BROADCAST_TO.reference
def _broadcast_to_reference(attrs: ShapeAttrs, data: Array) -> Any:
    return np.array(np.broadcast_to(data, attrs.shape), order="C")


@BROADCAST_TO.compute
def _broadcast_to_compute(
    attrs: ShapeAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,), (out,) = inputs, out_types
    return [
        te().compute(
            out.shape, lambda *i: read_broadcast(x, i), name="T_broadcast_to", tag="broadcast"
        )
    ]


@BROADCAST_TO.make
@sizes_may_be_tensors(
    "shape", result=lambda data, shape: of_rank(length_of("shape", shape), data.dtype)
)
def broadcast_to(data: ExprLike, shape: Extents) -> Call:
    """Repeat the tensor along axes of extent 1 until it has `shape`."""
    return BROADCAST_TO(data, attrs=ShapeAttrs(extents("shape", shape)))


BROADCAST_TO.sample_case((3, 1), attrs=ShapeAttrs((2, 3, 4)))


@node
class TileAttrs(Attrs):
    """How often the tensor is repeated along each axis."""

    reps: tuple[int, ...] = (1,)


TILE = register_op(
    "tile",
    "data",
    attrs=TileAttrs,
    pattern=OpPattern.INJECTIVE,
    doc="The tensor repeated as a whole.",
)


def tile_shapes(attrs: TileAttrs, shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the shape of the data and the repetitions, both of the result's rank."""
    rank = max(len(shape), len(attrs.reps))
    full = [1] * (rank - len(shape)) + list(shape)
    return full, [1] * (rank - len(attrs.reps)) + list(attrs.reps)


@TILE.type_relation
def _tile_type(attrs: TileAttrs, data: TensorType) -> Type:
    full, reps = tile_shapes(attrs, data.shape)
    return TensorType(tuple(d * r for d, r in zip(full, reps, strict=True)), data.dtype)


@TILE.reference
def _tile_reference(attrs: TileAttrs, data: Array) -> Any:
    return np.tile(data, attrs.reps)


@TILE.compute
def _tile_compute(attrs: TileAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,), (out,) = inputs, out_types
    full, reps = tile_shapes(attrs, shape_of(x))
    skip = len(full) - len(shape_of(x))

    def source(*i: PrimExpr) -> Any:
        folded = [j if r == 1 else j % d for j, d, r in zip(i, full, reps, strict=True)]
        return x(*folded[skip:])

    return injective("tile", out, source)


@TILE.make
@sizes_may_be_tensors(
    "reps",
    result=lambda data, reps: of_rank(max(data.rank, length_of("reps", reps)), data.dtype),
)
def tile(data: ExprLike, reps: Extents) -> Call:
    """Repeat the whole tensor `reps` times along each axis."""
    return TILE(data, attrs=TileAttrs(extents("reps", reps)))


TILE.sample_case((2, 3), attrs=TileAttrs((2, 1, 2)))


@node
class RepeatAttrs(Attrs):
    """Each element repeated `repeats` times along `axis`."""

    repeats: int = 1
    axis: int = 0


REPEAT = register_op(
    "repeat", "data", attrs=RepeatAttrs, pattern=OpPattern.INJECTIVE,
    doc="Each element repeated in place along an axis.",
)  # fmt: skip


@REPEAT.type_relation
def _repeat_type(attrs: RepeatAttrs, data: TensorType) -> Type:
    axis = normal_axis(attrs.axis, data.rank)
    shape = list(data.shape)
    shape[axis] *= attrs.repeats
    return TensorType(tuple(shape), data.dtype)


@REPEAT.reference
def _repeat_reference(attrs: RepeatAttrs, data: Array) -> Any:
    return np.repeat(data, attrs.repeats, axis=attrs.axis)


@REPEAT.compute
def _repeat_compute(
    attrs: RepeatAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,), (out,) = inputs, out_types
    axis = attrs.axis % out.rank
    return injective(
        "repeat", out, lambda *i: x(*i[:axis], i[axis] // attrs.repeats, *i[axis + 1 :])
    )


@REPEAT.make
def repeat(data: ExprLike, repeats: int, axis: int = 0) -> Call:
    """Repeat each element `repeats` times along `axis`."""
    return REPEAT(data, attrs=RepeatAttrs(int(repeats), int(axis)))


REPEAT.sample_case((2, 3), attrs=RepeatAttrs(3, 1))


@node
class ReverseAttrs(Attrs):
    """The axis to turn round."""

    axis: int = 0


REVERSE = register_op(
    "reverse", "data", attrs=ReverseAttrs, pattern=OpPattern.INJECTIVE, doc="One axis reversed."
)


@REVERSE.type_relation
def _reverse_type(attrs: ReverseAttrs, data: TensorType) -> Type:
    normal_axis(attrs.axis, data.rank)
    return data


@REVERSE.reference
def _reverse_reference(attrs: ReverseAttrs, data: Array) -> Any:
    return np.asarray(np.flip(data, attrs.axis), order="C")


@REVERSE.compute
def _reverse_compute(
    attrs: ReverseAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,), (out,) = inputs, out_types
    axis = attrs.axis % out.rank
    last = out.shape[axis] - 1
    return injective("reverse", out, lambda *i: x(*i[:axis], last - i[axis], *i[axis + 1 :]))


@REVERSE.make
def reverse(data: ExprLike, axis: int) -> Call:
    """Turn one axis round."""
    return REVERSE(data, attrs=ReverseAttrs(int(axis)))


REVERSE.sample_case((2, 3, 4), attrs=ReverseAttrs(1))
