"""What a search and a task scheduler of a script's own know of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass
class TaskRecord:
    """Where a task stands: its context (of a kernel of a model its task), weight and failures."""

    ctx: Any
    task_weight: float
    flop: float = 1.0
    is_terminated: bool = False
    build_error_count: int = 0
    run_error_count: int = 0
    latency_ms: list[float] = field(default_factory=list)
    runner_futures: None = None  # every batch has ended before the next one is chosen


class Scheduling(Protocol):
    """A task scheduler, as a search needs it."""

    tasks_: list[TaskRecord]

    @property
    def chooses(self) -> bool:
        """Whether `next_task_id` says which task is next, and not the engine."""

    def begin(
        self, tasks: Sequence[TaskRecord], database: object, callbacks: Sequence[object],
        cost_model: object,
    ) -> None:  # fmt: skip
        """Be told what a search is of."""

    def next_task_id(self) -> int:
        """Return which task has the next batch, -1 at the end."""

    def record(self, task_id: int) -> TaskRecord:
        """Return where a task stands."""
