"""What a search on one machine says about another: records without a trial.

Kernels of one problem have the same strategies on related processors, and what was measured says
how much faster each is than the default there.  That is corrected by the two machines' cost models:
by how a candidate is to its default on the one, over how it is on the other.  What is not clearly
faster than the default is left.
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
from slipway.tuning.layouts import extract_layouts
from slipway.tuning.measure import Measured
from slipway.tuning.space import Candidate, Choices, Space
from slipway.tuning.task import extract_tasks

CLEARLY = 0.97  # of the default's time, or a candidate is not taken
# The same where no cost model speaks of both, as of layouts: 0.86 on AVX2 was 1.22 with AVX-512.
CLEARLY_ALONE = 0.8
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
    for task in extract_layouts(module, target, params):
        _keep(foretold(task, database), into, found)
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
