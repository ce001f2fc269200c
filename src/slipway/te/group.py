"""Groups of stages, which are placed together: `Schedule.create_group`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import ArgumentTypeError, ScheduleError
from slipway.te.operation import Operation, PlaceholderOp
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.ir.expr import IterVar
    from slipway.te.schedule import Schedule
    from slipway.te.stage import Stage


class Group:
    """The stages between some inputs and outputs; what is asked of it each of them does."""

    def __init__(self, schedule: Schedule, stages: Sequence[Stage]) -> None:
        self.schedule = schedule
        self.stages = list(stages)
        self.group: Group | None = None  # the one around it
        self.attach_stage: Stage | None = None
        for stage in self.stages:
            inner: Stage | Group = stage
            while inner.group is not None and set(inner.group.stages) <= set(self.stages):
                if inner.group is self:
                    break
                inner = inner.group
            if inner.group is not self:
                self.group, inner.group = inner.group, self

    def join(self, stage: Stage) -> None:
        """Take in a stage that was made out of one of its own: a cache, a partial reduction."""
        stage.group = self
        around: Group | None = self
        while around is not None:
            around.stages.append(stage)
            around = around.group

    @property
    def num_child_stages(self) -> int:
        """The number of stages and groups directly in it."""
        members: list[Stage | Group] = [*self.stages, *self.schedule.groups]
        return sum(member.group is self for member in members)

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute the stages inside loop `scope` of `parent`, but for those placed already."""
        self.attach_stage = parent
        for stage in reversed(self.stages):
            if stage.attach_type == "root":
                stage.place_at(parent, scope)

    def compute_root(self) -> None:
        """Give every stage loops of its own."""
        self.attach_stage = None
        for stage in self.stages:
            stage.compute_root()


def create_group(
    schedule: Schedule, outputs: Any, inputs: Any, include_inputs: bool = False
) -> Group:
    """Return the stages on the way from `inputs` to `outputs`, both as tensors or lists.

    The inputs' own stages belong to it with `include_inputs`, unless they are placeholders.  Raises
    ScheduleError where an output does not depend on an input.
    """
    ends, begins = _operations(outputs), _operations(inputs)
    inside: dict[Operation, bool] = {}

    def reaches(start: Operation) -> None:
        pending: list[tuple[Operation, bool]] = [(start, False)]
        while pending:
            op, done = pending.pop()
            if op in inside and not done:
                continue
            below = [t.op for t in op.input_tensors]
            if done:
                inside[op] = any(inside.get(b, False) or b in begins for b in below)
            elif op in begins:
                inside[op] = False
            else:
                pending.append((op, True))
                pending += [(b, False) for b in below]

    for end in ends:
        reaches(end)
        if not inside[end] and end not in begins:
            raise ScheduleError(
                f"create_group: {end.name!r} does not depend on "
                f"{', '.join(b.name for b in begins) or 'any input'}"
            )
    members = {op for op, between in inside.items() if between}
    if include_inputs:
        members.update(op for op in begins if not isinstance(op, PlaceholderOp))
    made = Group(schedule, [s for s in schedule.stages if s.op in members])
    schedule.groups.append(made)
    return made


def _operations(given: Any) -> list[Operation]:
    items = given if isinstance(given, (list, tuple)) else [given]
    found = [i.op if isinstance(i, Tensor) else i for i in items]
    for one in found:
        if not isinstance(one, Operation):
            raise ArgumentTypeError(
                f"create_group: outputs and inputs are tensors, or lists of them; got {one!r}"
            )
    return found
