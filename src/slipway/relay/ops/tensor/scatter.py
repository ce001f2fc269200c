"""scatter_elements and scatter_nd: a copy of the data with updates put in at computed positions.

The computes gather: each result element looks through the updates that may hit it, so that every
element is independent.  That costs (elements) x (updates along the axis), and needs no order.
Where updates are whole slices that replace others, one look serves all elements of a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import ops
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import need_dtype, need_integral, need_shape, normal_axis
from slipway.relay.ops.tensor.tensors import te, unflatten
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike

REDUCTIONS = ("update", "add", "mul", "max", "min")


@node
class ScatterAttrs(Attrs):
    """The axis, and how an update meets the value there: "update" (the last one wins), "add"..."""

    axis: int = 0
    reduction: str = "update"


def _check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise BadArgument("reduction", f"is {reduction!r}; use one of {', '.join(REDUCTIONS)}")


def _combine(reduction: str, target: Any, position: Any, updates: Any) -> None:
    """Apply updates to a NumPy array in place, in order."""
    if reduction == "update":
        target[position] = updates
    else:
        function: Any = {
            "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
        }[reduction]  # fmt: skip
        function.at(target, position, updates)


def _merged(reduction: str, hit: PrimExpr, update: PrimExpr, taps: list[Any]) -> Any:
    """Return the reduction of the updates that hit one element."""
    neutral = {
        "add": lambda: te().const(0, update.dtype),
        "mul": lambda: te().const(1, update.dtype),
        "max": lambda: te().lowest(update.dtype),
        "min": lambda: te().highest(update.dtype),
    }[reduction]()
    function = {"add": te().sum, "mul": te().prod, "max": te().max, "min": te().min}[reduction]
    return function(te().if_then_else(hit, update, neutral), axis=taps)


def _finish(reduction: str, own: PrimExpr, merged: PrimExpr) -> Any:
    match reduction:
        case "add":
            return own + merged
        case "mul":
            return own * merged
        case "max":
            return te().max(own, merged)
        case _:
            return te().min(own, merged)


SCATTER_ELEMENTS = register_op(
    "scatter_elements", "data", "indices", "updates", attrs=ScatterAttrs, pattern=OpPattern.OPAQUE,
    doc="data with out[..indices[i]..] = updates[i] along an axis.",
)  # fmt: skip


@SCATTER_ELEMENTS.type_relation
def _elements_type(
    attrs: ScatterAttrs, data: TensorType, indices: TensorType, updates: TensorType
) -> Type:
    need_integral("indices", indices)
    normal_axis(attrs.axis, data.rank)
    need_shape("updates", updates, indices.shape, "that of the indices")
    need_dtype("updates", updates, data.dtype, "the data")
    if indices.rank != data.rank:
        raise BadArgument("indices", f"must have as many axes as the data, {data}; got {indices}")
    _check_reduction(attrs.reduction)
    return data


@SCATTER_ELEMENTS.reference
def _elements_reference(attrs: ScatterAttrs, data: Any, indices: Any, updates: Any) -> Any:
    axis = attrs.axis % data.ndim
    position = [np.broadcast_to(i, indices.shape) for i in np.indices(indices.shape, sparse=True)]
    position[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
    out = data.copy()
    _combine(attrs.reduction, out, tuple(position), updates)
    return out


@SCATTER_ELEMENTS.compute
def _elements_compute(
    attrs: ScatterAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, indices, updates = inputs
    (out,) = out_types
    axis = attrs.axis % out.rank
    reach = [size_of(d) for d in updates.shape]
    k = te().reduce_axis((0, reach[axis]), name="k")

    def clipped(i: Sequence[Any]) -> list[Any]:
        """The update's indices: the other axes of the updates may be shorter than the data's."""
        position = [
            te().min(j, r - 1) if r < d else j for j, r, d in zip(i, reach, out.shape, strict=True)
        ]
        position[axis] = k
        return position

    def hits(i: Sequence[Any]) -> Any:
        found = indices(*clipped(i)).astype("int32")
        wanted = ops.equal(te().select(found < 0, found + out.shape[axis], found), i[axis])
        inside = [
            j < r for a, (j, r, d) in enumerate(zip(i, reach, out.shape, strict=True))
            if a != axis and r < d
        ]  # fmt: skip
        return te().all(wanted, *inside)

    def update_at(i: Sequence[Any], number: PrimExpr) -> Any:
        return updates(*(number if a == axis else p for a, p in enumerate(clipped(i))))

    return _stages(
        attrs.reduction, out, data, k, [k], hits, lambda i: updates(*clipped(i)), update_at
    )


def _stages(
    reduction: str, out: TensorType, data: Any, number: Any, taps: list[Any],
    hits: Any, update: Any, update_at: Any, looked_at: int | None = None,
) -> list[Any]:  # fmt: skip
    """Return the result stage after the reduction over the updates.

    Which update hits an element depends on so many of its leading axes as are `looked_at`.
    """
    if reduction == "update":
        last = te().compute(
            out.shape[:looked_at],
            lambda *i: te().max(te().if_then_else(hits(i), number, -1), axis=taps),
            name="last_hit",
        )

        def chosen(*i: Any) -> Any:
            found = last(*i[:looked_at])
            return te().if_then_else(found >= 0, update_at(i, te().max(found, 0)), data(*i))

        return [te().compute(out.shape, chosen, name="T_scatter")]
    merged = te().compute(
        out.shape,
        lambda *i: _merged(reduction, hits(i), update(i), taps),
        name="merged_updates",
    )
    return [
        te().compute(
            out.shape, lambda *i: _finish(reduction, data(*i), merged(*i)), name="T_scatter"
        )
    ]


@SCATTER_ELEMENTS.make
def scatter_elements(
    data: ExprLike, indices: ExprLike, updates: ExprLike, axis: int = 0, reduction: str = "update"
) -> Call:
    """Return `data` with `updates` put in along `axis` at `indices`."""
    attrs = ScatterAttrs(int(axis), reduction)
    return SCATTER_ELEMENTS(data, as_expr(indices), updates, attrs=attrs)


def _indices(high: int, *shape: int) -> Any:
    def make(rng: np.random.Generator) -> list[Any]:
        data = rng.standard_normal((4, 3)).astype(np.float32)
        indices = np.stack([rng.permutation(high)[: shape[0]] for _ in range(shape[1])], 1)
        return [data, indices - (indices == 3) * 4, rng.standard_normal(shape).astype(np.float32)]

    return make


for _reduction in REDUCTIONS:
    SCATTER_ELEMENTS.sample_case(attrs=ScatterAttrs(0, _reduction), make=_indices(4, 2, 2))


SCATTER_ND = register_op(
    "scatter_nd", "data", "indices", "updates", attrs=ScatterAttrs, pattern=OpPattern.OPAQUE,
    doc="data with slices replaced at index tuples, which lie along the FIRST axis of indices.",
)  # fmt: skip


@SCATTER_ND.type_relation
def _nd_type(
    attrs: ScatterAttrs, data: TensorType, indices: TensorType, updates: TensorType
) -> Type:
    need_integral("indices", indices)
    if indices.rank < 1 or indices.shape[0] > data.rank:
        raise BadArgument(
            "indices", f"is {indices}: its first axis counts the indexed axes of {data}"
        )
    wanted = (*indices.shape[1:], *data.shape[indices.shape[0] :])
    need_shape("updates", updates, wanted, "one slice of the data per index tuple")
    need_dtype("updates", updates, data.dtype, "the data")
    _check_reduction(attrs.reduction)
    return data


@SCATTER_ND.reference
def _nd_reference(attrs: ScatterAttrs, data: Array, indices: Array, updates: Array) -> Any:
    extents = np.array(data.shape[: len(indices)]).reshape((-1,) + (1,) * (indices.ndim - 1))
    out = data.copy()
    position = np.where(indices < 0, indices + extents, indices)
    there = ((position >= 0) & (position < extents)).all(0)  # what lies outside is left out
    _combine(attrs.reduction, out, tuple(p[there] for p in position), updates[there])
    return out


@SCATTER_ND.compute
def _nd_compute(attrs: ScatterAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, indices, updates = inputs
    (out,) = out_types
    depth, many = int(indices.shape[0]), [size_of(d) for d in indices.shape[1:]]
    n = te().reduce_axis((0, prod(many)), name="n")

    def hits(i: Sequence[Any]) -> Any:
        where = unflatten(n.var, many)
        found = [indices(d, *where).astype("int32") for d in range(depth)]
        return te().all(
            *(ops.equal(te().select(f < 0, f + out.shape[d], f), i[d]) for d, f in enumerate(found))
        )

    return _stages(
        attrs.reduction, out, data, n, [n], hits,
        lambda i: updates(*unflatten(n.var, many), *i[depth:]),
        lambda i, number: updates(*unflatten(number, many), *i[depth:]),
        looked_at=depth or None,
    )  # fmt: skip


@SCATTER_ND.make
def scatter_nd(data: ExprLike, indices: ExprLike, updates: ExprLike, mode: str = "update") -> Call:
    """Return `data` with slices replaced (or added, ...) at index tuples."""
    return SCATTER_ND(data, as_expr(indices), updates, attrs=ScatterAttrs(0, mode))


def _tuples(rng: np.random.Generator) -> list[Any]:
    positions = rng.permutation(12)[:5]
    data = rng.standard_normal((3, 4, 2)).astype(np.float32)
    indices = np.stack([positions // 4, positions % 4 - 4 * (positions % 4 == 3)])
    return [data, indices, rng.standard_normal((5, 2)).astype(np.float32)]


for _reduction in REDUCTIONS:
    SCATTER_ND.sample_case(attrs=ScatterAttrs(0, _reduction), make=_tuples)
