"""Primitives that say where a stage is computed: in loops of its own, at a loop, in its readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.errors import ScheduleError
from slipway.te.operation import ComputeOp
from slipway.te.primitives.state import INLINE, ROOT, SCOPE, StageBase

if TYPE_CHECKING:
    from slipway.ir.expr import IterVar
    from slipway.te.stage import Stage


class PlacePrimitives(StageBase):
    """A stage is put inside others, or taken out again."""

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage inside loop `scope` of stage `parent`, as much as is read there."""
        self._computes("compute_at")
        if not isinstance(parent, StageBase):
            raise ScheduleError(
                f"compute_at of stage {self.name!r} needs a stage such as s[C], got {parent!r}"
            )
        around = parent.group
        while around is not None and around is not self.group:
            around = around.group
        owner = None if self.group is None else self.group.attach_stage
        if around is not self.group and parent is not owner:
            raise ScheduleError(
                f"cannot compute stage {self.name!r} at {parent.name!r}: it belongs to a group of "
                f"stages (a scan's body, or create_group), and {parent.name!r} does not. Place the "
                "group: its own compute_at"
            )
        self.place_at(parent, scope)

    def place_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage inside loop `scope` of `parent`, whatever group it belongs to."""
        if parent is self:
            raise ScheduleError(f"cannot compute stage {self.name!r} at a loop of itself")
        if self.is_output:
            consumers = [s for s in self.schedule.stages if self._feeds(s)]
            if parent not in consumers:
                raise ScheduleError(
                    f"cannot compute stage {self.name!r} at {parent.name!r}: it is an output of "
                    f"the schedule and {parent.name!r} does not read it"
                )
        parent._leaf(scope, f"compute stage {self.name!r} at")
        self.attach_type, self.attach_stage, self.attach_ivar = SCOPE, parent, scope
        self._log("compute_at", parent, scope)

    def _feeds(self, consumer: Stage) -> bool:
        return any(t.op is self.op or t.op is self.origin_op for t in consumer.op.input_tensors)

    def compute_inline(self) -> None:
        """Compute each element where it is read; the stage has no loops or storage of its own."""
        self._computes("inline")
        if self.is_output:
            raise ScheduleError(
                f"cannot inline stage {self.name!r}: it is an output of the schedule"
            )
        if not isinstance(self.op, ComputeOp) or self.op.reduce_axis:
            raise ScheduleError(
                f"cannot inline stage {self.name!r}: only an elementwise compute can be inlined, "
                "a reduction or extern call needs storage. Use compute_at"
            )
        self.attach_type, self.attach_stage, self.attach_ivar = INLINE, None, None
        self._log("compute_inline")

    def compute_root(self) -> None:
        """Compute this stage in loops of its own, before its consumers."""
        self.attach_type, self.attach_stage, self.attach_ivar = ROOT, None, None
        self._log("compute_root")
