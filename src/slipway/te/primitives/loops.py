"""Primitives that make loops of loops: split, fuse, reorder, tile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.expr import IntImm, IterVar, PrimExpr, Range, Var
from slipway.te.primitives.relations import Fuse, Singleton, Split
from slipway.te.primitives.state import StageBase

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike


class LoopPrimitives(StageBase):
    """Loops are divided, joined and put in order."""

    def split(
        self,
        parent: IterVar,
        factor: Any = None,
        nparts: Any = None,
        disable_predication: bool = False,
        tail: str = "guard",
    ) -> tuple[IterVar, IterVar]:
        """Split a loop in two.

        rewrite: ``for p in n`` -> ``for p.outer in ceil(n / factor): for p.inner in factor``, with
        a guard when factor does not divide n (left out under `disable_predication`).
        With `nparts`, the outer loop has that many steps.  Returns (outer, inner).

        `tail` "shift" needs no guard: the last step begins at n - factor, and computes again what
        the step before has computed (p = min(p.outer * factor, n - factor) + p.inner).  So no data
        axis of a reduction can have it, nor a kernel that writes into one of its inputs; along a
        reduced axis, what comes again is left out.
        """
        if (factor is None) == (nparts is None):
            raise ScheduleError(
                f"cannot split axis {getattr(parent, 'name', parent)!r} of stage {self.name!r}: "
                "give exactly one of factor= (steps of the inner loop) and nparts= (of the outer)"
            )
        position = self._leaf(parent, "split")
        if parent.kind == "ordered":
            raise ScheduleError(
                f"cannot split axis {parent.name!r} of stage {self.name!r}: a scan runs in order. "
                "Split the axes of its update stage instead"
            )
        if tail not in ("guard", "shift"):
            raise ScheduleError(f"tail={tail!r} of a split must be 'guard' or 'shift'")
        if tail == "shift" and self.op.reduce_axis and parent.kind != "reduce":
            raise ScheduleError(
                f"cannot split axis {parent.name!r} of stage {self.name!r} with tail='shift': its "
                "reduction would add some elements twice. Use the default tail, or cache_write the "
                "reduction and split the stage that copies it"
            )
        size = self._positive(factor, "factor", parent) if factor is not None else None
        parts = self._positive(nparts, "nparts", parent) if nparts is not None else None
        kind = parent.kind
        outer = IterVar(None, Var(parent.name + ".outer", parent.dtype), kind)
        inner = IterVar(None, Var(parent.name + ".inner", parent.dtype), kind)
        shifted = tail == "shift"
        self.relations.append(
            Split(parent, outer, inner, size, parts, disable_predication, shifted)
        )
        self._add_axis(outer)
        self._add_axis(inner)
        self.leaf_iter_vars[position : position + 1] = [outer, inner]
        self._log("split", parent, factor, nparts, disable_predication, tail)
        return outer, inner

    def _positive(self, value: PrimExprLike, what: str, axis: IterVar) -> PrimExpr:
        amount = ops.as_extent(value)
        if isinstance(amount, IntImm) and amount.value < 1:
            raise ScheduleError(
                f"cannot split axis {axis.name!r} of stage {self.name!r} with {what}="
                f"{amount.value}: it must be at least 1"
            )
        return amount

    def fuse(self, *args: IterVar) -> IterVar:
        """Fuse adjacent loops into one; two that are given inner first are put in their order.

        rewrite: ``for a in m: for b in n`` -> ``for a.b.fused in m * n``.  Returns the fused axis.
        """
        axes = (
            list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)
        )
        if not axes:
            unit = IterVar(Range.of(1), Var("singleton"), "data")
            self.relations.append(Singleton(unit))
            self._add_axis(unit)
            self.leaf_iter_vars.insert(0, unit)
            self._log("fuse")
            return unit
        fused = axes[0]
        self._leaf(fused, "fuse")
        for inner in axes[1:]:
            fused = self._fuse_two(fused, inner)
        self._log("fuse", *axes)
        return fused

    def _fuse_two(self, outer: IterVar, inner: IterVar) -> IterVar:
        first, second = self._leaf(outer, "fuse"), self._leaf(inner, "fuse")
        if first == second + 1:
            outer, inner, first, second = inner, outer, second, first
        if second != first + 1:
            raise ScheduleError(
                f"cannot fuse axes {outer.name!r} and {inner.name!r} of stage {self.name!r}: only "
                f"iterations that are consecutive are fused; the order is {self._axis_names()}. "
                "Use reorder first"
            )
        if (outer.kind == "reduce") != (inner.kind == "reduce"):
            raise ScheduleError(
                f"cannot fuse axes {outer.name!r} and {inner.name!r} of stage {self.name!r}: one "
                "is a reduction axis and the other is not. Fuse only axes of one kind"
            )
        name = f"{outer.name}.{inner.name}.fused"
        fused = IterVar(None, Var(name, outer.dtype), outer.kind)
        self.relations.append(Fuse(outer, inner, fused))
        self._add_axis(fused)
        self.leaf_iter_vars[first : second + 1] = [fused]
        return fused

    def reorder(self, *args: IterVar) -> None:
        """Put the given loops in the given order, in the places they take up now.

        rewrite: ``for a: for b`` -> ``for b: for a``.  Other loops stay where they are.
        """
        axes = (
            list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)
        )
        positions = [self._leaf(axis, "reorder") for axis in axes]
        if len(set(positions)) != len(positions):
            double = next(a.name for i, a in enumerate(axes) if a in axes[:i])
            raise ScheduleError(
                f"cannot reorder stage {self.name!r}: axis {double!r} is named twice"
            )
        for position, axis in zip(sorted(positions), axes, strict=True):
            self.leaf_iter_vars[position] = axis
        self._log("reorder", *axes)

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: PrimExprLike, y_factor: PrimExprLike
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops and order them as tiles.

        rewrite: ``for x: for y`` -> ``for x.outer: for y.outer: for x.inner: for y.inner``.
        """
        xo, xi = self.split(x_parent, x_factor)
        yo, yi = self.split(y_parent, y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi
