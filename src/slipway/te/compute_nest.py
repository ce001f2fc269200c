"""The loops of one ComputeOp: its stores, the guards around them, the two parts of a reduction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.calls import prefetch
from slipway.ir.expr import IterVar, PrimExpr, Reduce, Var
from slipway.ir.visit import substitute
from slipway.te.buffer_reads import Converter
from slipway.te.infer_bound import TensorBuffer
from slipway.te.loop_nest import LeafLoop, LoopNest
from slipway.te.operation import ComputeOp
from slipway.te.primitives.marks import IMPORTS
from slipway.te.stage import Stage
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.te.lowering import Lowering


class ComputeNest:
    """Builds the loops of one ComputeOp."""

    def __init__(self, lowering: Lowering, stage: Stage) -> None:
        self.lowering = lowering
        self.an = lowering.an
        self.stage = stage
        self.op: ComputeOp = stage.op  # type: ignore[assignment]
        self.nest: LoopNest = lowering.bounds.nests[stage.op]
        self.body = lowering.bounds.bodies[stage.op]

    def statement(self) -> S.Stmt:
        """Return the loops, for a reduction with the initialisation in front."""
        stmt = self._loops()
        for axis, steps in self.nest.unsure:
            few = E.LT(steps, E.IntImm("int64", 1 << 31))
            message = (
                f"{axis.var.name}, an axis of {self.op.name}, has 2^31 steps or more for these "
                "shapes; axes of symbolic extents count in int32: do not fuse them"
            )
            stmt = S.AssertStmt(few, E.StringImm(message), stmt)
        return stmt

    def _loops(self) -> S.Stmt:
        converter = Converter(self.lowering, self.nest.values)
        steps: list[PrimExpr] = []
        guards = self._guards(steps)
        if not isinstance(self.body[0], Reduce):
            values = [converter.convert(b) for b in self.body]
            stmt = self._stores(values, converter)
            return self.wrap(stmt, 0, len(self.nest.loops), guards)
        return self._reduction(converter, guards, steps)

    def _stores(self, values: list[PrimExpr], converter: Converter) -> S.Stmt:
        parts: list[S.Stmt] = []
        for tensor, value in zip(self.op.outputs, values, strict=True):
            buffer, indices = self.target(tensor, converter)
            parts.append(S.BufferStore(buffer, value, indices))
        stmt = S.seq(parts)
        if self.stage.store_predicate is not None:
            stmt = S.IfThenElse(converter.convert(self.stage.store_predicate), stmt)
        return stmt

    def target(self, tensor: Tensor, converter: Converter) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        """Return the buffer and indices at which the current point of `tensor` is stored."""
        storage = self.lowering.storage[tensor]
        sums = [converter.values[self.an.var_atom(a.var)] for a in self.op.axis]
        return storage.buffer, self.shifted(sums, storage)

    def shifted(self, sums: list[Linear], storage: TensorBuffer) -> tuple[PrimExpr, ...]:
        """Return tensor indices as indices into the storage."""
        an = self.an
        if storage.mins is None:
            return tuple(an.to_expr(x) for x in sums)
        pairs = zip(sums, storage.mins, strict=True)
        return tuple(an.to_expr(an.recombine(x.minus(low))) for x, low in pairs)

    # -- guards ------------------------------------------------------------------------------------

    def _guards(
        self, steps: list[PrimExpr] | None = None
    ) -> list[tuple[PrimExpr, frozenset[Atom]]]:
        """Conditions (with the loops they depend on) under which the body may run.

        Those of the loops' ends are marked as likely.  With `steps`, those of reduced axes of one
        step or none, which have no loop, go there: a result has a start without any step.
        """
        an, seen = self.an, set()
        own = {loop.atom for loop in self.nest.loops}
        found: list[tuple[PrimExpr, frozenset[Atom]]] = []

        def require(value: Linear, extent: Linear) -> None:
            difference = an.recombine(value.minus(extent))
            if ("<", difference.key) in seen or an.decide(E.LT, difference):
                return
            seen.add(("<", difference.key))
            condition = _likely(E.LT(an.to_expr(value), an.to_expr(extent)))
            found.append((condition, _loops_in(difference)))

        for value, extent in (*self.nest.guards, *self.nest.repeats):
            require(value, extent)
        for axis, (low, extent) in self.nest.ranges.items():
            assert axis.dom is not None
            value = self.nest.values[an.var_atom(axis.var)]
            first, whole = an.linear(axis.dom.min), an.linear(axis.dom.extent)
            is_all = (low.key, extent.key) == (first.key, whole.key)
            if not (is_all and axis in self.nest.fused):
                before = len(found)
                require(value, first.plus(whole))
                is_new = len(found) > before and found[-1][1].isdisjoint(own)
                if steps is not None and axis.kind == "reduce" and is_new:
                    steps.append(found.pop()[0])
            below = an.recombine(value.minus(first))
            if not an.decide(E.GE, below):
                condition = _likely(E.GE(an.to_expr(value), an.to_expr(first)))
                found.append((condition, _loops_in(below)))
        converter = Converter(self.lowering, self.nest.values)
        for given, limit in self.stage.limits:
            position, end = converter.convert(given), converter.convert(limit)
            loops = _loops_in(an.linear(position)) | _loops_in(an.linear(end))
            found.append((E.LT(position, end), loops))
        return found

    def _place(self, guards: list[tuple[PrimExpr, frozenset[Atom]]]) -> dict[int, list[PrimExpr]]:
        """Put each guard just inside the innermost loop that it depends on; -1 is outside all."""
        placed: dict[int, list[PrimExpr]] = {}
        for condition, atoms in guards:
            depth = -1
            for position, loop in enumerate(self.nest.loops):
                if loop.atom in atoms:
                    depth = position
            placed.setdefault(depth, []).append(condition)
        return placed

    def wrap(
        self,
        stmt: S.Stmt,
        begin: int,
        end: int,
        guards: list[tuple[PrimExpr, frozenset[Atom]]],
    ) -> S.Stmt:
        """Put loops [begin, end) around `stmt`, with guards and the stages computed inside them."""
        placed = self._place(guards)
        for position in range(end - 1, begin - 1, -1):
            loop = self.nest.loops[position]
            stages = self.lowering.attached.get((self.op, loop.axis))
            if stages:
                stmt = self.lowering.pipeline(stages, stmt)
            stmt = guarded(placed.get(position, ()), stmt)
            stmt = S.seq((*self._prefetches(position), stmt))
            stmt = self.loop(loop, stmt)
        if begin == 0:
            stmt = guarded(placed.get(-1, ()), stmt)
        return stmt

    def _prefetches(self, position: int) -> list[S.Stmt]:
        """What loop `position` prefetches; the loops inside it are at their first step."""
        mark = self.stage.iter_var_attrs.get(self.nest.loops[position].axis)
        if mark is None or not mark.prefetch_at:
            return []
        an = self.an
        inside = self.nest.loops[position + 1 :]
        first = {x.atom: an.constant(0) for x in inside if x.atom is not None}
        values = {a: an.substitute(v, first) for a, v in self.nest.values.items()}
        converter = Converter(self.lowering, values)
        return [
            prefetch(
                self.lowering.storage[tensor].buffer, tuple(map(converter.convert, indices)), level
            )
            for tensor, indices, level in mark.prefetch_at
        ]

    def loop(self, loop: LeafLoop, body: S.Stmt, var: Var | None = None) -> S.Stmt:
        """Return one loop with the marks that the schedule put on its axis."""
        mark = self.stage.iter_var_attrs.get(loop.axis)
        extent = self.an.to_expr(loop.extent)
        kind, thread = S.ForKind.SERIAL, None
        notes: tuple[tuple[str, Any], ...] = ()
        if mark is not None:
            if mark.kind and mark.kind != "tensorized":
                kind = mark.kind
            if mark.bind_thread is not None:
                kind = S.ForKind.THREAD
                bound = mark.bind_thread
                thread = IterVar(E.Range.of(extent), bound.var, "thread", bound.thread_tag)
                if loop.reduces:
                    reduction: Reduce = self.body[0]  # type: ignore[assignment]
                    notes = ((S.REDUCES, reduction.combiner),)
            hints = ((key, value) for key, value in mark.pragmas if key not in IMPORTS)
            notes += tuple(("pragma_" + key, value) for key, value in hints)
            for tensor, offset in mark.prefetch:
                note = ("prefetch", (self.lowering.storage[tensor].buffer, offset))
                notes = (*notes, note)
        elif loop.axis.kind == "thread":
            kind, thread = S.ForKind.THREAD, loop.axis
        if loop.atom is None and not notes and thread is None:
            return body
        var = loop.var if var is None else var
        if extent.dtype != var.dtype:  # a short part of a long axis
            extent = ops.cast(extent, var.dtype)
        return S.For(var, ops.const(0, var.dtype), extent, kind, body, thread, notes)

    # -- reductions --------------------------------------------------------------------------------

    def _reduction(
        self,
        converter: Converter,
        guards: list[tuple[PrimExpr, frozenset[Atom]]],
        steps: list[PrimExpr],
    ) -> S.Stmt:
        loops = self.nest.loops
        begin = next((i for i, loop in enumerate(loops) if loop.reduces), len(loops))
        first: Reduce = self.body[0]  # type: ignore[assignment]
        update = self.update(converter)
        if not (isinstance(first.condition, E.IntImm) and first.condition.value):
            update = S.IfThenElse(converter.convert(first.condition), update)
        inside = {loop.atom for loop in loops[begin:] if loop.atom is not None}
        empty = self._combines_nothing()
        if empty:  # what keeps an axis within no elements is of no loop, and holds for no step
            guards = [g for g in guards if g[1]]
        update = guarded(steps, update)
        outer = [g for g in guards if g[1].isdisjoint(inside)]
        inner = [g for g in guards if not g[1].isdisjoint(inside)]
        update = self.wrap(update, begin, len(loops), inner)
        init = self._init(converter, begin, inner)
        return self.wrap(init if empty else S.seq((init, update)), 0, begin, outer)

    def _combines_nothing(self) -> bool:
        """Whether a reduced axis has no elements, while the results have some."""

        def empty(axes: Iterable[IterVar]) -> bool:
            extents = [self.nest.ranges[axis][1] for axis in axes]
            return any(x.is_const and x.const == 0 for x in extents)

        return empty(self.op.reduce_axis) and not empty(self.op.axis)

    def update(self, converter: Converter) -> S.Stmt:
        """Return the statement that combines one more source value into the result."""
        first: Reduce = self.body[0]  # type: ignore[assignment]
        combiner = first.combiner
        sources = [converter.convert(s) for s in first.source]
        mapping: dict[Any, Any] = {}
        targets = []
        for k, tensor in enumerate(self._reduced()):
            buffer, indices = self.target(tensor, converter)
            targets.append((buffer, indices))
            mapping[combiner.lhs[k]] = E.BufferLoad(buffer, indices)
            mapping[combiner.rhs[k]] = sources[k]
        results = [self.an.simplify(substitute(r, mapping)) for r in combiner.result]
        if len(results) == 1:
            return S.BufferStore(targets[0][0], results[0], targets[0][1])
        # All new values are computed before any is stored: one may depend on another.
        fresh = [Var(f"{t[0].name}.new", r.dtype) for t, r in zip(targets, results, strict=True)]
        stores: S.Stmt = S.seq(
            S.BufferStore(buffer, var, indices)
            for (buffer, indices), var in zip(targets, fresh, strict=True)
        )
        for var, result in zip(reversed(fresh), reversed(results), strict=True):
            stores = S.LetStmt(var, result, stores)
        return stores

    def _reduced(self) -> list[Tensor]:
        """The output tensors, by value index of the combiner."""
        order: dict[int, Tensor] = {}
        for tensor, body in zip(self.op.outputs, self.body, strict=True):
            order[body.value_index] = tensor  # type: ignore[attr-defined]
        return [order[k] for k in sorted(order)]

    def _init(
        self, converter: Converter, begin: int, guards: list[tuple[PrimExpr, frozenset[Atom]]]
    ) -> S.Stmt:
        """Return loops that set the results to the reducer's identity (or the given start)."""
        an, loops = self.an, self.nest.loops
        fresh: dict[Atom, Linear] = {}
        renamed: dict[Any, Any] = {}
        kept: list[tuple[int, LeafLoop, Var | None]] = []
        for position, loop in enumerate(loops[begin:], begin):
            if loop.reduces:
                continue
            var = None
            if loop.atom is not None:
                var = Var(loop.var.name + ".init", loop.var.dtype)
                an.bind(var, loop.atom.low, loop.atom.high)
                fresh[loop.atom] = Linear({an.var_atom(var): 1}, 0, var.dtype)
                renamed[loop.var] = var
            kept.append((position, loop, var))
        reduced = {loop.atom for loop in loops if loop.reduces and loop.atom is not None}
        values = {
            atom: an.substitute(value, fresh)
            for atom, value in self.nest.values.items()
            if all(t.variables.isdisjoint(reduced) for t in value.terms)
        }
        own = Converter(self.lowering, values)
        first: Reduce = self.body[0]  # type: ignore[assignment]
        starts = first.init or first.combiner.identity
        parts: list[S.Stmt] = []
        for tensor, start in zip(self._reduced(), starts, strict=True):
            buffer, indices = self.target(tensor, own)
            parts.append(S.BufferStore(buffer, own.convert(start), indices))
        stmt = S.seq(parts)
        placed = self._place([g for g in guards if g[1].isdisjoint(reduced)])
        for position, loop, var in reversed(kept):
            conditions = [substitute(c, renamed) for c in placed.get(position, ())]
            stmt = self.loop(loop, guarded(conditions, stmt), var)
        return stmt


def guarded(conditions: Iterable[PrimExpr], stmt: S.Stmt) -> S.Stmt:
    """Return `stmt` under all conditions."""
    every = list(conditions)
    return S.IfThenElse(ops.all_of(every), stmt) if every else stmt


def _likely(condition: PrimExpr) -> PrimExpr:
    """Return a condition as one that holds but at the end of a loop."""
    return E.Call("bool", "likely", (condition,))


def _loops_in(x: Linear) -> frozenset[Atom]:
    return frozenset().union(*(a.variables for a in x.terms)) if x.terms else frozenset()
