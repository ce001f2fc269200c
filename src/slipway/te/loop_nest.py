"""The loops of one stage: extents, values of the axes, and guards.

`LoopNest.build` walks the relations twice.  Down: the extent of every axis from those of the root
axes (an outer axis gets ceil(extent / factor) steps).  Up: the value of every root axis as a
linear sum of the leaf loops.  Where a split is not exact, a guard keeps the parent in range.

An axis fused of int32 axes with 2^31 steps or more counts in int64, and so does what it is split
into; the axes it was fused of get their values back in int32.  Where the steps are not known before
the function is called, it counts in int32, and `unsure` has what is then to be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import Interval, interval_of
from slipway.arith.linear import INF, Atom, Linear
from slipway.ir import expr as E
from slipway.ir.expr import IterVar, PrimExpr, Var
from slipway.te.primitives.relations import Fuse, Singleton, Split
from slipway.te.stage import Stage

_MOST_STEPS = (1 << 31) - 1  # of a loop that counts in int32


class LeafLoop:
    """One leaf loop: its axis, loop variable (counting from 0), extent, and where it came from."""

    __slots__ = ("atom", "axis", "extent", "reduces", "var")

    def __init__(self, axis: IterVar, var: Var, atom: Atom | None, extent: Linear) -> None:
        self.axis = axis
        self.var = var
        self.atom = atom
        self.extent = extent
        self.reduces = False


class LoopNest:
    """What lowering knows of one stage's loops.

    `ranges` gives (min, extent) of each root axis; `values` the value of each root axis's variable
    in terms of loop variables; `guards` pairs (value, extent): value < extent must hold.
    `repeats` are such pairs too, that do not hold for what a reduction has had in the step before.
    """

    def __init__(self, an: Analyzer, stage: Stage) -> None:
        self.an = an
        self.stage = stage
        self.ranges: dict[IterVar, tuple[Linear, Linear]] = {}
        self.values: dict[Atom, Linear] = {}
        self.loops: list[LeafLoop] = []
        self.guards: list[tuple[Linear, Linear]] = []
        self.fused: set[IterVar] = set()  # that `guards` keep within their `ranges`
        self.repeats: list[tuple[Linear, Linear]] = []
        self.path: list[LeafLoop] = []
        self.unsure: list[tuple[IterVar, E.PrimExpr]] = []  # axes, and their steps in int64
        self.wide: set[IterVar] = set()  # axes that count in int64 though declared in int32

    def dtype(self, axis: IterVar) -> str:
        """Return the type that an axis counts in."""
        return "int64" if axis in self.wide else axis.dtype

    def build(self, ranges: Mapping[IterVar, tuple[Linear, Linear]]) -> None:
        """Fix the loops, given (min, extent) of every root axis."""
        an, stage = self.an, self.stage
        self.ranges = dict(ranges)
        extents: dict[IterVar, Linear] = {axis: extent for axis, (_, extent) in ranges.items()}
        factors: dict[int, Linear] = {}
        for relation in stage.relations:
            if isinstance(relation, Split):
                self._split_extents(relation, extents, factors)
            elif isinstance(relation, Fuse):
                self._fuse_extents(relation, extents)
            elif isinstance(relation, Singleton):
                extents[relation.iter] = an.constant(1)
        offsets: dict[IterVar, Linear] = {}
        for axis in stage.leaf_iter_vars:
            self._add_loop(axis, extents, offsets)
        self._offsets_up(extents, factors, offsets)
        for axis, (low, _) in ranges.items():
            if axis in offsets:
                self.values[an.var_atom(axis.var)] = offsets[axis].plus(low)
        self._mark_reductions()

    def _fuse_extents(self, fuse: Fuse, extents: dict[IterVar, Linear]) -> None:
        a, b = extents[fuse.outer], extents[fuse.inner]
        both = a.is_const and b.is_const
        if not self.wide.isdisjoint((fuse.outer, fuse.inner)) or (
            both and a.const * b.const > _MOST_STEPS and fuse.fused.dtype != "int64"
        ):
            self.wide.add(fuse.fused)
            a, b = self._counted_in(a, "int64"), self._counted_in(b, "int64")
        elif not both and fuse.fused.dtype == "int32":
            steps = [self.an.to_expr(self._counted_in(x, "int64")) for x in (a, b)]
            self.unsure.append((fuse.fused, E.Mul(*steps)))
        extents[fuse.fused] = self.an.multiply(a, b)

    def _counted_in(self, value: Linear, dtype: str) -> Linear:
        if value.dtype == dtype:
            return value
        if value.is_const:
            return Linear({}, value.const, dtype)
        return self.an.linear(E.Cast(dtype, self.an.to_expr(value)))

    def _split_extents(
        self, split: Split, extents: dict[IterVar, Linear], factors: dict[int, Linear]
    ) -> None:
        an, whole = self.an, extents[split.parent]
        if split.factor is not None:
            factor = an.linear(split.factor)
            parts = ceil_divide(an, whole, factor)
        else:
            assert split.nparts is not None
            parts = an.linear(split.nparts)
            factor = ceil_divide(an, whole, parts)
        if split.parent in self.wide:
            self.wide |= {split.outer, split.inner}
            parts, factor = (self._counted_in(x, "int64") for x in (parts, factor))
        factors[id(split)] = factor
        extents[split.outer] = parts
        # A factor above the extent leaves one step; its inner loop need not overrun.
        short = an.recombine(whole.minus(factor)).high <= 0
        extents[split.inner] = whole if short and parts.high <= 1 else factor

    def _add_loop(
        self, axis: IterVar, extents: dict[IterVar, Linear], offsets: dict[IterVar, Linear]
    ) -> None:
        an = self.an
        mark = self.stage.iter_var_attrs.get(axis)
        extent = extents.get(axis)
        if extent is None:  # an environment thread
            assert axis.dom is not None
            extent = an.linear(axis.dom.extent)
        name = axis.var.name
        if mark is not None and mark.bind_thread is not None:
            name = mark.bind_thread.var.name
        dtype = self.dtype(axis)
        var = Var(name, dtype)
        if extent.high <= 1:  # one step, also where a symbolic extent cannot be more
            self.loops.append(LeafLoop(axis, var, None, an.constant(1, dtype)))
            offsets[axis] = an.constant(0, dtype)
            return
        an.bind(var, 0, max(extent.high - 1, 0) if extent.high < INF else INF)
        an.bind_last(var, extent.shifted(-1))
        atom = an.var_atom(var)
        self.loops.append(LeafLoop(axis, var, atom, extent))
        offsets[axis] = Linear({atom: 1}, 0, dtype)

    def _offsets_up(
        self,
        extents: dict[IterVar, Linear],
        factors: dict[int, Linear],
        offsets: dict[IterVar, Linear],
    ) -> None:
        an = self.an
        for relation in reversed(self.stage.relations):
            if isinstance(relation, Split):
                factor, whole = factors[id(relation)], extents[relation.parent]
                steps = an.multiply(offsets[relation.outer], factor)
                begin = steps
                if relation.shifted and an.recombine(whole.minus(factor)).low >= 0:
                    last = self._counted_in(an.recombine(whole.minus(factor)), steps.dtype)
                    begin = an.minimum(steps, last)
                value = an.recombine(begin.plus(offsets[relation.inner]))
                offsets[relation.parent] = value
                if relation.parent.kind == "reduce" and begin.key != steps.key:
                    again = an.recombine(steps.minus(value))
                    self.repeats.append((again, an.constant(1, again.dtype)))
                if relation.exact:
                    continue
                covered = an.multiply(extents[relation.outer], extents[relation.inner])
                exact = covered.minus(whole)
                if exact.is_const and exact.const == 0:
                    continue
                if not an.decide(E.LT, an.recombine(value.minus(whole))):
                    self.guards.append((value, whole))
            elif isinstance(relation, Fuse):
                fused, inner = offsets[relation.fused], extents[relation.inner]
                if inner.is_const:
                    size = max(int(inner.const), 1)  # a loop over no elements is never entered
                    quotient = an.floordiv(fused, size)
                    remainder = an.floormod(fused, size)
                else:
                    top = an.to_expr(fused)
                    size = an.to_expr(self._counted_in(inner, fused.dtype))
                    quotient = an.linear(E.FloorDiv(top, size))
                    remainder = an.linear(E.FloorMod(top, size))
                # Below a * b, what is divided by b is below a, though few proofs find it.
                self.fused |= {relation.outer, relation.inner}
                for axis, value in ((relation.outer, quotient), (relation.inner, remainder)):
                    own = self.dtype(axis)  # wider than a fused axis of few steps may be
                    is_cast = own == "int64" or relation.fused in self.wide
                    offsets[axis] = self._counted_in(value, own) if is_cast else value

    def _mark_reductions(self) -> None:
        from_reduction = {a for a in self.stage.op.reduce_axis}
        for relation in self.stage.relations:
            if isinstance(relation, Split) and relation.parent in from_reduction:
                from_reduction.update((relation.outer, relation.inner))
            elif isinstance(relation, Fuse) and relation.outer in from_reduction:
                from_reduction.add(relation.fused)
        for loop in self.loops:
            loop.reduces = loop.axis in from_reduction

    def axis_intervals(self, relaxed: Mapping[Atom, Interval]) -> dict[Atom, Interval]:
        """Return the interval each root axis covers while the `relaxed` loops run."""
        an, found = self.an, {}
        for axis, (low, extent) in self.ranges.items():
            atom = an.var_atom(axis.var)
            if atom not in self.values:
                continue
            inside = interval_of(an, self.values[atom], relaxed)
            # The range itself may move with a relaxed loop: one that encloses this stage.
            own_low = interval_of(an, low, relaxed)
            own_last = interval_of(an, low.plus(extent).shifted(-1), relaxed)
            if own_low is None or own_last is None:
                assert axis.dom is not None
                whole = an.linear(axis.dom.min)
                end = whole.plus(an.linear(axis.dom.extent)).shifted(-1)
                found[atom] = inside or (whole, end)
                continue
            low, last = own_low[0], own_last[1]
            if inside is None:
                inside = (low, last)
            # Guards keep the axis inside its own range, so the interval may be cut to it.
            first, end = inside
            if an.decide(E.LE, an.recombine(first.minus(low))):
                first = low
            if an.decide(E.GE, an.recombine(end.minus(last))):
                end = last
            found[atom] = (first, end)
        return found


def ceil_divide(an: Analyzer, x: Linear, y: Linear) -> Linear:
    """Return ceil(x / y)."""
    if y.is_const:
        return an.floordiv(x.shifted(y.const - 1), y.const)
    if an.recombine(x.minus(y)).key == an.constant(0).key:
        return an.constant(1, x.dtype)
    top: PrimExpr = an.to_expr(x.plus(y).shifted(-1))
    return an.linear(E.FloorDiv(top, an.to_expr(y)))


__all__ = ["Any", "LeafLoop", "LoopNest", "ceil_divide"]
