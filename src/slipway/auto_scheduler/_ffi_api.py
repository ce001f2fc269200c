"""What sketch rules of classic TVM ask about a state, by the names that they use."""

from __future__ import annotations

from typing import Any

from slipway.auto_scheduler.analysis import is_elementwise
from slipway.auto_scheduler.loop_state import State, StateObject
from slipway.classic.placeholders import TUNING, placeholder_of
from slipway.errors import TuningError
from slipway.te.operation import ComputeOp
from slipway.te.primitives.state import INLINE
from slipway.te.stage import Stage


class Consumers:
    """Stages that read another, by their numbers; `items()` has a place for each, as a map has."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def items(self) -> list[tuple[int, list[Any]]]:
        """Return pairs, whose first is a stage's number."""
        return [(number, []) for number in self._numbers]

    def __len__(self) -> int:
        return len(self._numbers)


def SearchPolicyUtilsGetConsumers(
    search_task: Any, state: StateObject | State, stage_id: int
) -> Consumers:
    """Return the stages that read a stage, through those that are inlined."""
    del search_task
    return Consumers(sorted(_readers(_stages(state, stage_id), stage_id)))


def SearchPolicyUtilsIsElementwiseMatch(
    search_task: Any, state: StateObject | State, stage_id: int, target_stage_id: int
) -> bool:
    """Return whether each point of a stage reads the same point of another, and no other."""
    del search_task
    stages = _stages(state, stage_id, target_stage_id)
    at = stage_id
    while at != target_stage_id:
        direct = [n for n, s in enumerate(stages) if _reads(s, stages[at])]
        if len(direct) != 1 or (
            direct[0] != target_stage_id and not _is_inlined(stages[direct[0]])
        ):
            return False
        reader = stages[direct[0]].op
        if not isinstance(reader, ComputeOp) or not is_elementwise(reader, stages[at].op):
            return False
        at = direct[0]
    return True


def SearchPolicyUtilsIsTiled(search_task: Any, state: StateObject | State, stage_id: int) -> bool:
    """Return whether a loop of a stage has been split."""
    del search_task
    stage = _stages(state, stage_id)[stage_id]
    return len(state.stages[stage_id].iters) != len(stage.op.root_iter_vars)


def _stages(state: StateObject | State, *numbers: int) -> list[Stage]:
    known = (state.state_object if isinstance(state, State) else state).replay.stages
    for number in numbers:
        if not 0 <= number < len(known):
            raise TuningError(f"there is no stage {number}: the state has {len(known)}")
    return known


def _readers(stages: list[Stage], number: int) -> set[int]:
    found: set[int] = set()
    for at, stage in enumerate(stages):
        if _reads(stage, stages[number]):
            found |= _readers(stages, at) if _is_inlined(stage) else {at}
    return found


def _reads(reader: Stage, stage: Stage) -> bool:
    return any(t.op in (stage.op, stage.origin_op) for t in reader.op.input_tensors)


def _is_inlined(stage: Stage) -> bool:
    return stage.attach_type == INLINE


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
