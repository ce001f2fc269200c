"""What there is to decide about layouts, of each convolution and product in a model.

A candidate says what the pass is to make of one of them (`cpu.lowering.layout_wish`); the default
is what the pass decides by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from slipway.backends.backend import compile_target
from slipway.backends.choices import LAYOUT, key_of
from slipway.backends.cpu.lowering.layout_wish import LayoutSpace, layouts_met
from slipway.backends.strategy import Problem
from slipway.compiler.relay_build import kernel_graph
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.tuning.records import AS_IT_IS
from slipway.tuning.space import Candidate, Choices, candidate_of


@dataclass(eq=False)
class LayoutTask:
    """One convolution or product of a model; `weight` is how often the model has it.

    `decided` is what the default is, by the other candidates' names; `plain_part`, where it is
    known, what the plain layout is predicted to take of the time on blocks.
    """

    problem: Problem
    values: LayoutSpace
    weight: int = 1
    decided: Candidate | None = None
    plain_part: float | None = None

    @cached_property
    def space(self) -> Choices:
        """All candidates; the default is what the layout pass decides by itself."""
        values: dict[str, dict[str, tuple[Any, ...]]] = {AS_IT_IS: {}}
        for strategy, knobs in self.values.items():
            values[strategy] = {name: tuple(legal) for name, legal in knobs.items()}
        firsts = {s: candidate_of(s, {k: v[-1] for k, v in of.items()}) for s, of in values.items()}
        return Choices(values, firsts)

    @cached_property
    def key(self) -> str:
        """What the task is found by in a database: its problem's record key, hashed."""
        return hashlib.sha256("\n".join(key_of(self.problem)).encode()).hexdigest()[:24]

    def candidates(self) -> Iterator[Candidate]:
        """Yield all candidates but the default, first those that differ most from each other.

        Those are one of each strategy, with the widest blocks of results and every block of data;
        narrower blocks of results, which leave lanes idle, are rarely faster.
        """
        space = self.space
        every = {
            strategy: [
                candidate_of(strategy, dict(zip(knobs, values, strict=True)))
                for values in product(*(legal[::-1] for legal in knobs.values()))
            ]
            for strategy, knobs in space.values.items()
            if strategy != AS_IT_IS
        }
        widest = {s: max(space.values[s].get("written", (0,))) for s in every}
        first = [
            c for s, of in every.items() for c in of if dict(c.knobs).get("written", 0) == widest[s]
        ]
        yield from first
        yield from (c for of in every.values() for c in of if c not in first)

    def __str__(self) -> str:
        shapes = " ".join(str(t) for t in self.problem.in_types)
        return f"layout of {self.problem.op.removeprefix(LAYOUT)} {shapes}"


def extract_layouts(
    module: IRModule, target: Target | str, params: Mapping[str, Any] | None = None
) -> list[LayoutTask]:
    """Return the convolutions and products of "main" whose layout can be chosen, as they come."""
    found: dict[str, LayoutTask] = {}
    with layouts_met() as met:
        kernel_graph(module, compile_target(target), params)
    for each in met:
        decided = None if each.decided is None else candidate_of(*each.decided)
        task = LayoutTask(each.problem, each.space, decided=decided, plain_part=each.plain_part)
        if task.key in found:
            found[task.key].weight += 1
        else:
            found[task.key] = task
    return list(found.values())
