"""What is done after each batch (classic).

Trials are kept, libraries deleted and the model taught whatever is given; those of a script's own
derive from `PyMeasureCallback` and are called with what was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import ArgumentValueError, NotAvailableError
from slipway.meta_schedule.builder import BuilderResult
from slipway.meta_schedule.runner.artifact import RunnerResult
from slipway.meta_schedule.scheduling import Scheduling
from slipway.meta_schedule.search_strategy import MeasureCandidate
from slipway.meta_schedule.utils import Described


class MeasureCallback(Described):
    """Done after each batch."""

    @staticmethod
    def create(kind: str = "default") -> list[MeasureCallback]:
        """Return those that classic TVM had."""
        if kind != "default":
            raise ArgumentValueError(f"measure_callbacks {kind!r}: it is 'default'")
        return [AddToDatabase(), RemoveBuildArtifact(), UpdateCostModel()]


class PyMeasureCallback(MeasureCallback):
    """One of a script's own: it has `apply`.

    Of a kernel of a model `sch` is None: its candidates are strategies.
    """

    def apply(
        self,
        task_scheduler: Scheduling,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Be told what was tried of a task, and what came of it."""
        raise NotAvailableError(f"{type(self).__name__} has no apply(task_scheduler, task_id, ...)")


class AddToDatabase(MeasureCallback):
    """Keeps trials in the database."""


class RemoveBuildArtifact(MeasureCallback):
    """Deletes compiled candidates."""


class UpdateCostModel(MeasureCallback):
    """Lets the cost model learn."""


def own_callbacks(given: object) -> list[PyMeasureCallback]:
    """Return those that a script has written."""
    every: Iterable[Any] = given if isinstance(given, list | tuple) else [given]
    return [one for one in every if isinstance(one, PyMeasureCallback)]


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
