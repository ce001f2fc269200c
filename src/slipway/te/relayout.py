"""cache_write of a stage whose axes are split already: the cache gets the loops as its layout.

before: ``C[i, j]``, with i split by 16 and the loops in the order (j, i.outer, i.inner)
after:  ``C.local[j, i.outer, i.inner]``, and ``C[i, j] = C.local[j, i // 16, i % 16]``
"""

from __future__ import annotations

from typing import Any

from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.expr import IterVar, PrimExpr, Range, Var
from slipway.te.primitives.relations import Fuse, Split
from slipway.te.stage import Stage


class Relayout:
    """The layout that the loops of a stage give its result.

    `axes` are new axes, one per data loop in the order of the loops; `inside` maps the operation's
    axis variables to expressions of them; `positions` are those of the loops in terms of the
    operation's axes.
    """

    def __init__(self, stage: Stage) -> None:
        roots = [a for a in stage.op.axis if isinstance(a, IterVar)]
        extents: dict[IterVar, int] = {}
        down: dict[IterVar, PrimExpr] = {a: a.var for a in roots}
        for axis in roots:
            extents[axis] = _constant(stage, axis, axis.extent)
        for relation in stage.relations:
            if isinstance(relation, Split):
                _split(stage, relation, extents, down)
            elif isinstance(relation, Fuse) and relation.outer in down and relation.inner in down:
                outer, inner, fused = relation.outer, relation.inner, relation.fused
                extents[fused] = extents[outer] * extents[inner]
                down[fused] = ops.add(ops.mul(down[outer], extents[inner]), down[inner])
            else:
                raise _refusal(
                    stage, "a reduction axis is split, or an axis was made by fusing none"
                )
        leaves = [a for a in stage.leaf_iter_vars if a.kind != "reduce"]
        self.axes = tuple(
            IterVar(Range.of(extents[a]), Var(f"{a.name}.c", a.dtype), "data") for a in leaves
        )
        self.positions = tuple(down[a] for a in leaves)
        up: dict[IterVar, Any] = {a: n.var for a, n in zip(leaves, self.axes, strict=True)}
        for relation in reversed(stage.relations):
            if isinstance(relation, Split):
                step = ops.mul(up[relation.outer], extents[relation.inner])
                up[relation.parent] = ops.add(step, up[relation.inner])
            else:
                width = extents[relation.inner]
                up[relation.outer] = ops.floordiv(up[relation.fused], width)
                up[relation.inner] = ops.floormod(up[relation.fused], width)
        self.inside = {a.var: up[a] for a in roots}


def _split(
    stage: Stage, relation: Split, extents: dict[IterVar, int], down: dict[IterVar, PrimExpr]
) -> None:
    parent = relation.parent
    if parent not in down:
        raise _refusal(stage, f"the reduction axis {parent.name!r} is split")
    whole = extents[parent]
    given = relation.factor if relation.factor is not None else relation.nparts
    count = _constant(stage, parent, given)
    if relation.shifted or count < 1 or whole % count:
        raise _refusal(stage, f"the split of {parent.name!r} does not divide its {whole} steps")
    width = count if relation.factor is not None else whole // count
    extents[relation.outer], extents[relation.inner] = whole // width, width
    down[relation.outer] = ops.floordiv(down[parent], width)
    down[relation.inner] = ops.floormod(down[parent], width)


def _constant(stage: Stage, axis: IterVar, value: Any) -> int:
    found = ops.as_int(value)
    if found is None or (axis.dom is not None and ops.as_int(axis.dom.min) not in (0, None)):
        raise _refusal(stage, f"axis {axis.name!r} has no constant size")
    return found


def _refusal(stage: Stage, why: str) -> ScheduleError:
    return ScheduleError(
        f"cannot cache_write stage {stage.name!r}: its axes are split or fused already, and {why}, "
        "so that the loops are no layout. Call cache_write first, then split the axes of s[T] "
        "and of the cache"
    )
