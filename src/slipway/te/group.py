"""Groups of stages, which are placed together: `Schedule.create_group`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import ScheduleError
from slipway.te.operation import Operation, PlaceholderOp
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.ir.expr import IterVar
    from slipway.te.schedule import Schedule
    from slipway.te.stage import Stage


class Group:
    """The stages between some inputs and outputs; what is asked of it each of them does."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = list(stages)

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute the stages inside loop `scope` of `parent`, but for those placed already."""
        for stage in reversed(self.stages):
            if stage.attach_type == "root":
                stage.compute_at(parent, scope)

    def compute_root(self) -> None:
        """Give every stage loops of its own."""
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
    return Group([s for s in schedule.stages if s.op in members])


def _operations(given: Any) -> list[Operation]:
    items = given if isinstance(given, (list, tuple)) else [given]
    return [i.op if isinstance(i, Tensor) else i for i in items]
