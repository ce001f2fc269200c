"""What databases hold (classic): schedules of functions, and choices for kernels of models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipway.blocks.schedule import Schedule
from slipway.blocks.trace import Trace
from slipway.errors import ArgumentValueError
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.text.serialize import load_json, save_json
from slipway.meta_schedule.arg_info import ArgInfo, TensorInfo
from slipway.meta_schedule.search_strategy import MeasureCandidate
from slipway.target import Target
from slipway.tuning.records import RunSeconds
from slipway.tuning.schedules.block_schedules import chosen_by, problem_of, text_key
from slipway.tuning.space import candidate_of


@dataclass(frozen=True)
class Workload:
    """A function of loops, in a module."""

    mod: IRModule

    @property
    def func(self) -> PrimFunc:
        """The function."""
        return Schedule(self.mod).func

    def as_json(self) -> list[str]:
        """Return it as plain values: what it is known by, and the function."""
        return [text_key(self.func), save_json(self.func)]

    @staticmethod
    def from_json(json_obj: Any) -> Workload:
        """Return what `as_json` wrote.  Raises ArgumentValueError for anything else."""
        func = load_json(json_obj[1]) if _is_list(json_obj, 2) else None
        if not isinstance(func, PrimFunc):
            raise ArgumentValueError(f"{json_obj!r:.200} is not what Workload.as_json returns")
        return workload_of(func)


@dataclass(frozen=True)
class TuningRecord:
    """A schedule of a function: its steps, and the seconds of its runs."""

    trace: Trace
    workload: Workload
    run_secs: Sequence[Any] | None = None
    target: Target | None = None
    args_info: Sequence[TensorInfo] | None = None

    def __post_init__(self) -> None:
        if self.run_secs is not None:
            seconds = [RunSeconds(getattr(one, "value", one)) for one in self.run_secs]
            object.__setattr__(self, "run_secs", seconds)

    def schedule(self) -> Schedule:
        """Return the function with this schedule."""
        made = Schedule(self.workload.mod)
        self.trace.apply_to_schedule(made, remove_postproc=False)
        return made

    def as_measure_candidate(self) -> MeasureCandidate:
        """Return the schedule, to be measured."""
        return MeasureCandidate(self.schedule(), self.args_info)

    def as_json(self) -> list[Any]:
        """Return it as plain values, without its workload."""
        return [
            self.trace.as_json(),
            None if self.run_secs is None else [float(s) for s in self.run_secs],
            None if self.target is None else str(self.target),
            None if self.args_info is None else [one.as_json() for one in self.args_info],
        ]

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> TuningRecord:
        """Return what `as_json` wrote.  Raises ArgumentValueError for anything else."""
        if not _is_list(json_obj, 4):
            raise ArgumentValueError(f"{json_obj!r:.200} is not what TuningRecord.as_json returns")
        trace, seconds, target, infos = json_obj
        return TuningRecord(
            Trace.from_json(trace),
            workload,
            seconds,
            None if target is None else Target(target),
            None if infos is None else [ArgInfo.from_json(one) for one in infos],
        )


@dataclass(frozen=True)
class ChoiceRecord:
    """The best choice for a kernel of a model; `score` is its time over the default choice's."""

    op: str
    attrs: str
    inputs: Sequence[str]
    target: str
    strategy: str
    knobs: dict[str, Any]
    score: float
    workload: str

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return dict(vars(self))


class GivenSchedule:
    """A schedule that a script commits, as the engine's database keeps one."""

    DEVICE = "a script"  # which measured it

    def __init__(self, record: TuningRecord, target: Target) -> None:
        func = record.workload.func
        self.problem = problem_of(func, target)
        self.key = hashlib.sha256(f"{self.problem.attrs}\n{target}".encode()).hexdigest()[:24]
        self.candidate = candidate_of(
            json.dumps(record.trace.as_json()[0]), chosen_by(record.trace)
        )

    def __str__(self) -> str:
        return "a function of loops"


def workload_of(mod: IRModule | PrimFunc) -> Workload:
    """Return what stands for a function."""
    return Workload(IRModule.from_functions({"main": Schedule(mod).func}))


def _is_list(value: Any, length: int) -> bool:
    return isinstance(value, list | tuple) and len(value) == length
