"""blockize: the loops inside of one, and the block they run, as a block of their own.

before: ``for io: for ii: block B: v = data(64, io * 16 + ii) ; B[v] = A[v]``
after:  ``for io: block B_o: vo = data(4, io)``
        ``  for ii: block B: v = data(64, vo * 16 + ii) ; B[v] = A[v]``
"""

from __future__ import annotations

from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import Interval, interval_of
from slipway.arith.linear import Atom
from slipway.blocks import tree
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import IterVar, PrimExpr, Range, Var
from slipway.ir.visit import substitute, walk


def blockize(root: S.Stmt, loop: S.For) -> tuple[Any, str]:
    """Return (statements, name) with `loop` and all inside of it as one block of that name."""
    return _Blockize(root, loop).made()


class _Blockize:
    def __init__(self, root: S.Stmt, loop: S.For) -> None:
        self.root, self.loop = root, loop
        self.block, self.nest = self._inside()
        self.an = Analyzer()
        for one in [*tree.loops_above(root, loop), *self.nest]:
            extent = ops.as_int(one.extent)
            low = ops.as_int(one.min)
            if extent is not None and low is not None:
                self.an.bind(one.loop_var, low, low + max(extent - 1, 0))
        self.relaxed: dict[Atom, Interval] = {}
        for one in self.nest:
            low_end = self.an.linear(one.min)
            high_end = self.an.linear(ops.add(one.min, ops.sub(one.extent, 1)))
            self.relaxed[self.an.var_atom(one.loop_var)] = (low_end, high_end)

    def fail(self, why: str) -> ScheduleError:
        return ScheduleError(
            f"cannot make a block of loop {self.loop.loop_var.name!r} around "
            f"{self.block.name!r}: {why}"
        )

    def _inside(self) -> tuple[S.Block, list[S.For]]:
        nest: list[S.For] = []
        node: S.Stmt = self.loop
        while isinstance(node, S.For):
            nest.append(node)
            node = node.body
        if not isinstance(node, S.Block):
            names = [b.name for b in tree.blocks_of(self.loop)]
            raise ScheduleError(
                f"cannot make a block of loop {self.loop.loop_var.name!r}: what is inside must be "
                f"loops around one block, each all that the last one holds; the blocks are {names}"
            )
        return node, nest

    def made(self) -> tuple[Any, str]:
        block = self.block
        inner_vars = {one.loop_var for one in self.nest}
        if any(n in inner_vars for n in walk(block.predicate)):
            raise self.fail(
                "its steps need a boundary check. Choose split factors that divide the extents"
            )
        axes, bindings, inner = [], [], []
        for axis, value in zip(block.axes, block.bindings, strict=True):
            outer, start, inside = self._divided(axis, value)
            axes.append(outer)
            bindings.append(start)
            inner.append(inside)
        name = tree.fresh_name(self.root, f"{block.name}_o")
        init = None if block.init is None else self._init(inner)
        within = block.replace(bindings=tuple(inner), predicate=ops.TRUE, init=None)
        body = tree.exchanged(self.loop, block, within)
        made = S.Block(name, tuple(axes), tuple(bindings), block.predicate, body, init)
        return tree.exchanged(self.root, self.loop, made), name

    def _divided(self, axis: IterVar, value: PrimExpr) -> tuple[IterVar, PrimExpr, PrimExpr]:
        """Return the outer block's axis, its value, and the value of the axis inside."""
        an = self.an
        found = interval_of(an, an.linear(value), self.relaxed)
        if found is None:
            raise self.fail(f"the values of its axis {axis.name!r} inside have no bound")
        low, size = found[0], an.recombine(found[1].minus(found[0])).shifted(1)
        if not size.is_const:
            raise self.fail(
                f"its axis {axis.name!r} runs {size.to_expr()} steps inside, not a known number"
            )
        steps = int(size.const)
        inner = an.simplify(ops.sub(value, an.to_expr(low)))
        inner_vars = {one.loop_var for one in self.nest}
        if any(isinstance(n, Var) and n not in inner_vars for n in walk(inner)):
            raise self.fail(
                f"its axis {axis.name!r} is {value}, which is no sum of loops outside and inside"
            )
        assert axis.dom is not None
        first = ops.as_int(axis.dom.min) or 0
        start = an.simplify(ops.floordiv(ops.sub(an.to_expr(low), first), steps))
        if not an.can_prove_equal(ops.add(ops.mul(start, steps), first), an.to_expr(low)):
            raise self.fail(
                f"its axis {axis.name!r} begins at {an.to_expr(low)}, not at a multiple of the "
                f"{steps} steps inside"
            )
        extent = an.simplify(ops.floordiv(ops.add(axis.extent, steps - 1), steps))
        outer = IterVar(Range.of(extent), Var(f"{axis.name}_o", axis.dtype), axis.kind)
        inside = ops.add(ops.add(ops.mul(outer.var, steps), inner), first)
        return outer, start, an.simplify(inside)

    def _init(self, inner: list[PrimExpr]) -> S.Stmt:
        """Return the loops and the block that start what the outer block reduces."""
        block = self.block
        assert block.init is not None
        fresh: dict[Any, Any] = {}
        loops: list[tuple[Var, PrimExpr]] = []
        spatial = [(a, v) for a, v in zip(block.axes, inner, strict=True) if a.kind != "reduce"]
        for one in self.nest:
            if any(tree.uses(value, one.loop_var) for _, value in spatial):
                var = Var(f"{one.loop_var.name}_init", one.loop_var.dtype)
                loops.append((var, one.extent))
                fresh[one.loop_var] = ops.add(var, one.min)
        axes = [IterVar(a.dom, Var(f"{a.name}_init", a.dtype), a.kind) for a, _ in spatial]
        renamed = {a.var: own.var for (a, _), own in zip(spatial, axes, strict=True)}
        made = S.Block(
            tree.fresh_name(self.root, f"{block.name}_init"),
            tuple(axes),
            tuple(substitute(value, fresh) for _, value in spatial),
            ops.TRUE,
            substitute(block.init, renamed),
        )
        return tree.nest(loops, made)
