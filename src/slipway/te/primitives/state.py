"""What a schedule knows of one operation: its loops, where it is computed, how it is stored.

The primitives beside this file append relations and marks to it; each names a loop of the stage, or
is told why it is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import ScheduleError, did_you_mean
from slipway.ir.expr import IterVar
from slipway.te.operation import ComputeOp, Operation, PlaceholderOp, ScanOp
from slipway.te.primitives.relations import Fuse, IterVarAttr, Split

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.te.group import Group
    from slipway.te.schedule import Schedule
    from slipway.te.stage import Stage
    from slipway.te.tensor_intrin import TensorIntrin

ROOT, INLINE, SCOPE, GROUP_ROOT = "root", "inline", "scope", "group_root"


class StageBase:
    """The loops, marks, place and storage of the stage of operation `op`.

    `leaf_iter_vars` are the loops from the outermost in; `relations` say how they came from the
    operation's axes.  `attach_type` is "root" (its own loops), "inline", or "scope" (inside loop
    `attach_ivar` of `attach_stage`).  `origin_op` is the operation the stage was created for.
    """

    def __init__(self, schedule: Schedule, op: Operation, number: int) -> None:
        self.schedule = schedule
        self.number = number
        self.origin_op = op
        self.is_output = False
        self.scope = ""
        self.attach_type = ROOT
        self.attach_ivar: IterVar | None = None
        self.attach_stage: Stage | None = None
        self.group: Group | None = None
        self.buffer_copies = 1
        self.swizzle_unit = 0  # elements that stay beside each other; 0: none are moved
        self.env_thread_vars: tuple[IterVar, ...] = ()
        self.store_predicate: PrimExpr | None = None
        self.limits: list[tuple[PrimExpr, PrimExpr]] = []
        self.alignments: dict[IterVar, tuple[int, int]] = {}
        self.axes_ever: list[IterVar] = []
        self.set_op(op)

    def set_op(self, op: Operation) -> None:
        """Make `op` the operation of this stage and start again from its axes."""
        self.op = op
        self.all_iter_vars: list[IterVar] = []
        self.leaf_iter_vars: list[IterVar] = []
        self.relations: list[Any] = []
        self.iter_var_attrs: dict[IterVar, IterVarAttr] = {}
        for axis in op.root_iter_vars:
            self._add_axis(axis)
            if not (isinstance(op, ScanOp) and axis.kind == "opaque"):
                self.leaf_iter_vars.append(axis)
        if isinstance(op, ComputeOp) and op.intrinsic is not None:
            self._begin_with(op.intrinsic)

    def _begin_with(self, intrin: TensorIntrin) -> None:
        """Let an intrinsic compute the innermost axes of the operation."""
        axes, reduced = self.op.axis, self.op.reduce_axis
        data = len(axes) - len(intrin.op.axis)
        over = len(reduced) - len(intrin.op.reduce_axis)
        inner = [*axes[data:], *reduced[over:]]
        self.leaf_iter_vars = [*axes[:data], *reduced[:over], *inner]
        mark = self.attr(inner[0])
        mark.kind, mark.tensor_intrin = "tensorized", intrin

    def _add_axis(self, axis: IterVar) -> None:
        self.all_iter_vars.append(axis)
        self.axes_ever.append(axis)

    def __repr__(self) -> str:
        return f"stage({self.op.name}, {self.op})"

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.op.name

    def loop_of(self, axis: IterVar) -> IterVar:
        """Return the loop that an axis became: the inner one of a split, what it is fused in."""
        for relation in self.relations:
            if isinstance(relation, Split) and relation.parent is axis:
                axis = relation.inner
            elif isinstance(relation, Fuse) and axis in (relation.outer, relation.inner):
                axis = relation.fused
        return axis

    def attr(self, axis: IterVar) -> IterVarAttr:
        """Return the marks of a leaf axis."""
        found = self.iter_var_attrs.get(axis)
        if found is None:
            found = self.iter_var_attrs[axis] = IterVarAttr()
        return found

    def _leaf(self, axis: IterVar, what: str) -> int:
        """Return the position of a leaf axis, or explain why it is none."""
        if not isinstance(axis, IterVar):
            raise ScheduleError(
                f"cannot {what} {axis!r} in stage {self.name!r}: it is not an axis. "
                f"Pass one of {self._axis_names()}, as returned by s[T].op.axis, split or fuse"
            )
        for position, leaf in enumerate(self.leaf_iter_vars):
            if leaf is axis:
                return position
        name = axis.name
        if any(a is axis for a in self.all_iter_vars):
            how = "split or fused before"
            for relation in self.relations:
                if isinstance(relation, Split) and relation.parent is axis:
                    how = f"split before into {relation.outer.name!r} and {relation.inner.name!r}"
                elif isinstance(relation, Fuse) and axis in (relation.outer, relation.inner):
                    how = f"fused before into {relation.fused.name!r}"
            raise ScheduleError(
                f"cannot {what} axis {name!r} of stage {self.name!r}: it was {how}. "
                f"Use one of its loops: {self._axis_names()}"
            )
        hint = did_you_mean(name, [a.name for a in self.leaf_iter_vars])
        raise ScheduleError(
            f"cannot {what} axis {name!r} in stage {self.name!r}: it belongs to another stage. "
            f"This stage has the loops {self._axis_names()}.{hint}"
        )

    def _axis_names(self) -> str:
        return ", ".join(repr(a.name) for a in self.leaf_iter_vars) or "none"

    def _computes(self, what: str) -> None:
        if isinstance(self.op, PlaceholderOp):
            raise ScheduleError(
                f"cannot {what} stage {self.name!r}: it is an input (placeholder) and computes "
                "nothing. Use s.cache_read to stage an input"
            )

    def _log(self, primitive: str, *arguments: Any) -> None:
        self.schedule.log(self, primitive, arguments)
