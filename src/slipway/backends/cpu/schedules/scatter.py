"""Scatters as they are read: a copy of the data, then each update stored where it belongs.

    out[...] = data[...]                         in vectors
    for each update, in order:
        at = indices[update]
        if at lies inside: out[.., at, ..] = (or +=, *=, ...) updates[update]

That takes (elements) + (updates) steps, where the operators' own computes, whose elements are
independent, look through all updates of an axis for each element.  Updates of different slices
before the axis never meet, so that cores share those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import COPY_SPACE, RowKnobs, copy_knobs, streamed_cycles
from slipway.backends.cpu.schedules.inlined import extents, shape_of, view
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.strategy import Problem, register_strategy
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.relay.dims import is_open, usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.relay.ops.tensor.scatter import ScatterAttrs
    from slipway.target import Target

_COPIED = 4  # elements are copied in vectors in the time of one update
STEPS = 6  # instructions of an update: index, two comparisons, address, load, store


def _cost(problem: Problem, knobs: RowKnobs) -> float:
    """Return the cycles of the copy and of the updates."""
    copied = streamed_cycles(problem, knobs.lanes, 2)
    return copied + STEPS * usual(prod(problem.in_types[1].shape))


def _applies(attrs: ScatterAttrs, in_types: Sequence[Type], target: Target) -> bool:
    (data, *_) = in_types
    assert isinstance(data, TensorType)
    return attrs.reduction == "update" or data.dtype != "bool"


_COMBINE: dict[str, Callable[[Any, Any], E.PrimExpr]] = {
    "update": lambda old, new: new,
    "add": ops.add, "mul": ops.mul, "max": ops.maximum, "min": ops.minimum,
}  # fmt: skip


def scatter(problem: Problem, inputs: Sequence[te.Tensor], knobs: RowKnobs) -> list[te.Tensor]:
    """Return the data with the updates put in."""
    (out,) = problem.out_types

    def statements(ins: list[Buffer], outs: list[Buffer]) -> S.Stmt:
        made = _Scatter(problem, ins, outs[0], knobs)
        body = made.slices() if problem.op == "scatter_nd" else made.elements()
        return S.seq((made.copied(), body))

    return [te.extern(extents(out.shape), inputs, statements, problem.op, out.dtype)]


register_strategy(
    "scatter_elements", "scatter_nd", name="scatter.stores", applies=_applies, compute=scatter,
    default=copy_knobs, space=lambda problem: COPY_SPACE, cost=_cost,
)(as_they_are(RowKnobs))  # fmt: skip


class _Scatter:
    """Builds the statements of one scatter from its buffers."""

    def __init__(self, problem: Problem, ins: list[Buffer], out: Buffer, knobs: RowKnobs) -> None:
        self.problem, self.knobs = problem, knobs
        self.data, self.indices, self.updates = ins
        self.out = out
        self.shape = shape_of(out)
        self.combine = _COMBINE[problem.attrs.reduction]

    def copied(self) -> S.Stmt:
        """Return the copy of the data."""
        size = prod(self.shape)
        data, out = (view(b, (size,)) for b in (self.data, self.out))
        return self._along(size, lambda at: S.BufferStore(out, E.BufferLoad(data, (at,)), (at,)))

    def elements(self) -> S.Stmt:
        """Return the updates of `scatter_elements`."""
        shape = shape_of(self.updates)
        axis = self.problem.attrs.axis % len(shape)
        indices = [E.Var(f"i{n}", "int32") for n in range(len(shape))]
        at = E.Var("at", "int32")
        there = [at if n == axis else i for n, i in enumerate(indices)]
        new = E.BufferLoad(self.updates, tuple(indices))
        store = S.BufferStore(self.out, self._met(there, new), tuple(there))
        body = self._inside([(at, tuple(indices), self.shape[axis])], store)
        return self._loops(indices, shape, axis, body)

    def slices(self) -> S.Stmt:
        """Return the updates of `scatter_nd`: a slice of the data for each tuple of indices."""
        depth, *many = shape_of(self.indices)
        position = [E.Var(f"i{n}", "int32") for n in range(len(many))]
        at = [E.Var(f"at{n}", "int32") for n in range(depth)]
        size = prod(self.shape[depth:])
        out = view(self.out, (*self.shape[:depth], size))
        updates = view(self.updates, (*many, size))

        def one(element: E.PrimExpr) -> S.Stmt:
            new, there = E.BufferLoad(updates, (*position, element)), (*at, element)
            return S.BufferStore(out, self.combine(E.BufferLoad(out, there), new), there)

        found = [
            (var, (ops.const(n, "int32"), *position), self.shape[n]) for n, var in enumerate(at)
        ]
        body = self._inside(found, self._along(size, one))
        return self._loops(position, many, 0, body)

    def _met(self, there: Sequence[E.PrimExpr], new: E.PrimExpr) -> E.PrimExpr:
        return self.combine(E.BufferLoad(self.out, tuple(there)), new)

    def _inside(
        self, found: Sequence[tuple[E.Var, tuple[E.PrimExpr, ...], Any]], body: S.Stmt
    ) -> S.Stmt:
        """Return `body` where each of the indices, counted from the end if negative, is inside."""
        tests = []
        for var, _, extent in found:
            tests += [ops.greater_equal(var, ops.const(0)), ops.less(var, _expr(extent))]
        body = S.IfThenElse(ops.all_of(tests), body) if tests else body
        for var, where, extent in reversed(found):
            index = ops.cast(E.BufferLoad(self.indices, where), "int32")
            below = ops.add(index, _expr(extent))
            wrapped = ops.select(ops.less(index, ops.const(0)), below, index)
            body = S.LetStmt(var, wrapped, body)
        return body

    def _loops(
        self, variables: Sequence[E.Var], shape: Sequence[Any], apart: int, body: S.Stmt
    ) -> S.Stmt:
        """Return loops over updates; those of the first `apart` axes never meet."""
        large = _COPIED * usual(prod(shape)) >= self.knobs.share_from
        for n, (var, extent) in reversed(list(enumerate(zip(variables, shape, strict=True)))):
            shared = large and n == 0 and apart > 0
            kind = S.ForKind.PARALLEL if shared else S.ForKind.SERIAL
            body = S.For(var, ops.const(0, "int32"), _expr(extent), kind, body)
        return body

    def _along(self, size: Any, one: Callable[[E.PrimExpr], S.Stmt]) -> S.Stmt:
        """Return `one` for all elements of a run, in vectors and then one by one."""
        lanes = 1 if is_open(size) else self.knobs.lanes
        whole = size // lanes
        shared = usual(size) >= self.knobs.share_from
        parts = [(whole, lanes, 0)]
        if not is_open(size) and size % lanes:
            parts.append((size % lanes, 1, whole * lanes))
        done = []
        for extent, width, begin in parts:
            if not is_open(extent) and extent == 0:
                continue
            outer, lane = E.Var("j", "int32"), E.Var("v", "int32")
            at = ops.add(ops.add(ops.mul(outer, ops.const(width)), lane), ops.const(begin))
            zero = ops.const(0, "int32")
            body = S.For(lane, zero, ops.const(width), S.ForKind.VECTORIZED, one(at))
            kind = S.ForKind.PARALLEL if shared and width == lanes else S.ForKind.SERIAL
            done.append(S.For(outer, zero, _expr(extent), kind, body))
        return S.seq(done)


def _expr(extent: Any) -> E.PrimExpr:
    (value,) = extents((extent,))
    return ops.as_expr(value)
