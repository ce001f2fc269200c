"""What a search on one machine says about another: records without a trial.

Kernels of one problem have the same strategies on related processors, and what was measured says
how much faster each is than the default there.  That is corrected by the two machines' cost models:
by how a candidate is to its default on the one, over how it is on the other.  What is not clearly
faster than the default is left.

A layout is compared with what this machine's default is there (`alike`), which need not be the
default there: that it is faster than another default says nothing.  Between plain data and blocks
it is corrected as kernels are, by what the layout passes for the two machines predict of both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from slipway.backends.choices import key_of
from slipway.backends.strategy import Problem
from slipway.errors import SlipwayError
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.database import Database, KeptTask
from slipway.tuning.layouts import LayoutTask, extract_layouts
from slipway.tuning.measure import Measured
from slipway.tuning.space import Candidate, Choices, Space, candidate_of
from slipway.tuning.task import extract_tasks

CLEARLY = 0.97  # of the default's time, or a candidate is not taken
CLEARLY_ALONE = 0.8  # the same where no cost model speaks of both, as of layouts
PLAIN = "plain"  # the layout without blocks
TRUSTED = 2.0  # the cost models' correction is at most this, either way


@dataclass(frozen=True)
class Foretold:
    """A choice for a task that another machine's trials speak for; `score` is the guess."""

    task: KeptTask
    candidate: Candidate
    score: float
    from_target: str


def foretold(task: Any, database: Database) -> Foretold | None:
    """Return the best choice for a task by the trials of its problem on other targets, or None."""
    return next(iter(all_foretold(task, database)), None)


def all_foretold(task: Any, database: Database) -> list[Foretold]:
    """Return the choices that are expected to be clearly faster than the default, best first."""
    op, attrs, *types = key_of(task.problem)
    rows = database.elsewhere(op, attrs, json.dumps(types[:-1]), types[-1])
    found: dict[Candidate, Foretold] = {}
    for candidate, score, target in rows:
        if not _is_legal(task.space, candidate):
            continue
        correction = _correction(task.problem, task.space, candidate, target)
        guess, known = score * (correction or 1.0), found.get(candidate)
        limit = CLEARLY_ALONE if correction is None else CLEARLY
        if guess < limit and (known is None or guess < known.score):
            found[candidate] = Foretold(task, candidate, guess, target)
    return sorted(found.values(), key=lambda choice: choice.score)


class Elsewhere:
    """The layouts of a model on the targets that a database has trials of."""

    def __init__(
        self, module: IRModule, params: Mapping[str, Any] | None, database: Database
    ) -> None:
        self.module, self.params, self.database = module, params, database
        self._known: dict[str, dict[tuple[str, ...], LayoutTask]] = {}

    def foretold(self, task: LayoutTask) -> list[Foretold]:
        """Return the layouts that are expected to be clearly faster than the default, best first.

        Those that were measured beside what the default is; else as `all_foretold` says.
        """
        found: list[Foretold] = []
        compared: set[str] = set()
        for target in self.database.targets():
            there = None if target == str(task.problem.target) else self._of(task, target)
            if there is None or there.decided is None or task.decided is None:
                continue
            scores = self._scores(there)
            beside = scores.get(alike(task.decided, there))
            if beside is None:
                continue
            compared.add(target)
            for candidate in task.candidates():
                score = scores.get(alike(candidate, there))
                if score is None:
                    continue
                guess = score / beside * _between_layouts(task, there, candidate)
                if guess < CLEARLY_ALONE:
                    found.append(Foretold(task, candidate, guess, target))
        found += [f for f in all_foretold(task, self.database) if f.from_target not in compared]
        own = set(() if task.decided is None else task.decided.knobs)
        best: dict[Candidate, Foretold] = {}
        # Of several that are one there, what is most like the default here: it knows the widths.
        for choice in sorted(found, key=lambda f: (f.score, -len(own & {*f.candidate.knobs}))):
            best.setdefault(choice.candidate, choice)
        return list(best.values())

    def _of(self, task: LayoutTask, target: str) -> LayoutTask | None:
        """Return the layout of the same operator on another target."""
        if target not in self._known:
            try:
                layouts = extract_layouts(self.module, Target(target), self.params)
            except SlipwayError:
                layouts = []  # a target that this version does not know any more
            self._known[target] = {key_of(t.problem)[:-1]: t for t in layouts}
        return self._known[target].get(key_of(task.problem)[:-1])

    def _scores(self, there: LayoutTask) -> dict[Candidate | None, float]:
        """Return how long layouts take there, over the default.

        One that was never verified counts as no faster than the default, which is right.
        """
        assert there.decided is not None
        best = self.database.best(there)
        right = None if best is None else best.candidate
        scores: dict[Candidate | None, float] = {
            c: s if c == right else max(1.0, s) for c, s in self.database.measured(there).items()
        }
        return scores | {there.decided: 1.0}


def _between_layouts(here: LayoutTask, there: LayoutTask, candidate: Candidate) -> float:
    """Return how much less a layout gains here than there, by what both passes predict."""
    if here.plain_part is None or there.plain_part is None or here.decided is None:
        return 1.0
    steps = (candidate.strategy == PLAIN) - (here.decided.strategy == PLAIN)
    correction = (here.plain_part / there.plain_part) ** steps
    return min(TRUSTED, max(1 / TRUSTED, correction))


def alike(candidate: Candidate, there: LayoutTask) -> Candidate | None:
    """Return what a layout is on another machine: of as many channels, where blocks may be so wide.

    Else of the widest: two blocks of one vector are one block of two.  None where there is none.
    """
    legal = there.space.values.get(candidate.strategy)
    if legal is None:
        return None
    knobs = dict(candidate.knobs)
    for name in ("written", "units", "read"):
        if name in knobs and name in legal:
            knobs[name] = max((n for n in legal[name] if n <= knobs[name]), default=0)
    if any(knobs.get(name) not in values for name, values in legal.items()):
        return None
    return candidate_of(candidate.strategy, knobs)


def transfer(
    module: IRModule,
    target: Target,
    params: Mapping[str, Any] | None,
    database: Database,
    into: Database,
) -> list[Foretold]:
    """Put what trials of other targets foretell for a model into a database, and return it.

    Layouts come first, for the kernels follow from them.  The device of these choices is
    "foretold": they were verified elsewhere, and no time of this target is known.
    """
    found: list[Foretold] = []
    elsewhere = Elsewhere(module, params, database)
    for task in extract_layouts(module, target, params):
        _keep(next(iter(elsewhere.foretold(task)), None), into, found)
    with into:
        kernels = extract_tasks(module, target, params)
    for kernel in kernels:
        _keep(foretold(kernel, database), into, found)
    return found


def records_foretold(
    module: IRModule, target: Target, params: Mapping[str, Any] | None, database: Database
) -> list[dict[str, Any]]:
    """Return what `transfer` finds as records."""
    with tempdir() as folder:
        into = Database(f"{folder.path}/foretold.sqlite")
        transfer(module, target, params, database, into)
        records = into.records()
        into.close()
    return records


def _keep(choice: Foretold | None, into: Database, found: list[Foretold]) -> None:
    if choice is not None:
        measured = Measured(choice.candidate, [], choice.score)
        into.add(choice.task, "foretold", [measured], verified=choice.candidate)
        found.append(choice)


def _is_legal(space: Choices, candidate: Candidate) -> bool:
    legal = space.values.get(candidate.strategy)
    knobs = dict(candidate.knobs)
    return legal is not None and all(knobs.get(n) in values for n, values in legal.items())


def _correction(
    problem: Problem, space: Choices, candidate: Candidate, target: str
) -> float | None:
    """Return how much less a candidate gains here than there, by the two cost models.

    None where they do not speak of it.
    """
    here = _predicted_ratio(space, candidate)
    if not here:
        return None
    try:
        other = _predicted_ratio(Space(replace(problem, target=Target(target))), candidate)
    except SlipwayError:
        return None
    return min(TRUSTED, max(1 / TRUSTED, here / other)) if other else None


def _predicted_ratio(space: Choices, candidate: Candidate) -> float:
    if space.default is None or candidate.strategy not in space.values:
        return 0.0
    mine, default = space.predicted(candidate), space.predicted(space.default)
    return mine / default if mine and default else 0.0
