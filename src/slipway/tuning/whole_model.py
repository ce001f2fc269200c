"""The last word is the model's: it must not be slower with what the searches of its parts found.

A kernel that is measured alone finds its data in other caches than between its neighbours.  So the
model with every choice runs in rounds with the model without; where it is slower, the choices are
halved until those at fault are known.  They are set aside in the database.  Many that cost a little
each are not told apart by a clock with noise: where two comparisons say that the model gains
nothing by what is left, that is set aside as a whole.

What was verified when it won is looked at once more so: a choice with which the model's outputs are
wrong, and without which they are right, is set aside too.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.errors import RPCError, TuningError
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.database import Database, KeptTask
from slipway.tuning.layouts import LayoutTask
from slipway.tuning.measure import Measured, is_faster, scored
from slipway.tuning.model_bench import ModelBench, is_timed_whole
from slipway.tuning.records import Choice
from slipway.tuning.runner import Runner
from slipway.tuning.session import twice
from slipway.tuning.space import Candidate

ROUNDS = 14
WITHOUT, WITH = Candidate("without", ()), Candidate("with", ())


@dataclass(frozen=True)
class WholeModel:
    """A model before and after: `seconds` of a run untuned, `score` of a tuned one over that.

    `set_aside` are the tasks whose winners the model is slower with, or wrong: then they are among
    `wrong`, too.
    """

    seconds: float
    score: float
    set_aside: tuple[KeptTask, ...]
    wrong: tuple[KeptTask, ...] = ()


def check_model(
    module: IRModule,
    target: Target,
    params: Mapping[str, Any] | None,
    runner: Runner,
    database: Database,
    tasks: Sequence[KeptTask],
) -> WholeModel | None:
    """Time a model with the best choices of its tasks, and set aside those that slow it down.

    None where there is nothing to check: no choice, or open sizes.  Raises TuningError when the
    device fails.
    """
    chosen = _chosen(tasks, database, runner.device)
    if not chosen or not is_timed_whole(module):
        return None
    with (
        tempdir() as folder,
        ModelBench(module, target, params or {}, runner, Path(folder.path)) as bench,
    ):
        try:
            return _Check(bench, database).run(chosen)
        except RPCError as error:
            raise TuningError(
                f"{runner.device} was lost as the model was timed: {error}"
            ) from error


def _chosen(tasks: Sequence[KeptTask], database: Database, device: str) -> list[Choice]:
    found = [(task, database.best(task, device)) for task in tasks]
    return [(task, best.candidate) for task, best in found if best is not None]


class _Check:
    def __init__(self, bench: ModelBench, database: Database) -> None:
        self.bench, self.database = bench, database
        self.aside: list[KeptTask] = []
        self.wrong: list[KeptTask] = []

    def run(self, chosen: Sequence[Choice]) -> WholeModel:
        # Layouts come first: they decide which kernels there are.
        layouts = self.kept([], [c for c in chosen if isinstance(c[0], LayoutTask)])
        kernels = self.kept(layouts, [c for c in chosen if not isinstance(c[0], LayoutTask)])
        left = layouts + kernels
        before, after = self.compared([], left)
        if left and (after.score > 1.0 or after.error):
            before, again = self.compared([], left)
            if again.score > 1.0 or again.error:
                for task, candidate in left:
                    self.set_aside(task, candidate, again)
                again = before
            after = again
        return WholeModel(
            statistics.median(before.seconds), after.score, *map(tuple, (self.aside, self.wrong))
        )

    def kept(self, base: list[Choice], choices: list[Choice]) -> list[Choice]:
        """Return the choices that neither slow down nor spoil the model as it is with `base`."""
        if not choices:
            return []
        without, with_ = self.compared(base, base + choices)
        if not with_.error and not _is_slower(with_, without):
            return choices
        if len(choices) == 1:
            self.set_aside(*choices[0], with_)
            return []
        half = len(choices) // 2
        first = self.kept(base, choices[:half])
        # The others meet what stays of the first half, so that what only both do is seen.
        return first + self.kept(base + first, choices[half:])

    def compared(self, without: list[Choice], with_: list[Choice]) -> tuple[Measured, Measured]:
        """Return the times of the model with two sets of choices, interleaved.

        What the second spoils of its outputs is its error.
        """
        paths = {WITHOUT: self.bench.build(without), WITH: self.bench.build(with_)}
        times = twice(lambda: self.bench.times(paths, ROUNDS))
        one, other = (scored(c, times[c], times[WITHOUT]) for c in (WITHOUT, WITH))
        other.error = self.bench.difference(paths[WITH], paths[WITHOUT]) if with_ else ""
        return one, other

    def set_aside(self, task: KeptTask, candidate: Candidate, whole: Measured) -> None:
        self.aside.append(task)
        self.wrong += [task] if whole.error else []
        slow = f"the model takes {whole.score:.3g} of its time without this choice"
        spoiled = f"the model is wrong with this choice: {whole.error}"
        self.database.set_aside(
            task,
            self.bench.runner.device,
            Measured(candidate, whole.seconds, whole.score, error=spoiled if whole.error else slow),
        )


def _is_slower(one: Measured, other: Measured) -> bool:
    """Return whether `one` is slower than `other`: at all, where the clock has no noise."""
    if len(one.seconds) == len(other.seconds) == 1:
        return one.seconds[0] > other.seconds[0]
    return is_faster(other, one)
