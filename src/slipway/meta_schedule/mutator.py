"""Mutators (classic): how a search changes what was sampled.

The engine changes one number at a time by itself.  Those of a script's own derive from `PyMutator`
(`PostOrderApply(mutator_probs={MyMutator(): 1.0})`), and are applied to the best schedules besides.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from slipway.blocks.trace import Instruction, Trace
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import NotAvailableError
from slipway.meta_schedule.rule import RULES
from slipway.meta_schedule.utils import Described

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext


class Mutator(Described):
    """Changes what was sampled: `apply` returns another trace, or None where there is none."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        """Be told what the search is for."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """Return a trace with another choice, None where there is none."""
        raise NotAvailableError(f"{type(self).__name__} has no apply(trace, rand_state)")

    def clone(self) -> Mutator:
        """Return the mutator: it keeps nothing of a search."""
        return self

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """Return those of a kind of target, with their probabilities."""
        if kind not in RULES:
            raise NotAvailableError(
                f"there are no mutators for {kind!r}: those here are for {', '.join(RULES)}"
            )
        found = {MutateTileSize(): 0.9, MutateComputeLocation(): 0.05, MutateUnroll(): 0.03}
        return found if kind in ("llvm", "c") else {**found, MutateThreadBinding(): 0.02}


create = Mutator.create


class PyMutator(Mutator):
    """A mutator of a script's own: it has `apply(trace, rand_state)`."""


class MutateTileSize(Mutator):
    """Moves a factor from one loop of a tile to another."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """Return a trace with another tile, None where no tile has a factor to move."""
        rng = _rng(rand_state)
        tiles = [
            inst
            for inst in _choosing(trace, "sample_perfect_tile")
            if any(int(n) > 1 for n in trace.get_decision(inst)) and len(inst.outputs) > 1
        ]
        if not tiles:
            return None
        inst = rng.choice(tiles)
        lengths = [int(n) for n in trace.get_decision(inst)]
        given = rng.choice([i for i, n in enumerate(lengths) if n > 1])
        taken = rng.choice([i for i in range(len(lengths)) if i != given])
        factor = rng.choice([n for n in range(2, lengths[given] + 1) if lengths[given] % n == 0])
        lengths[given] //= factor
        lengths[taken] *= factor
        most = inst.attrs[1]
        if most and lengths[-1] > int(most):
            return None
        return trace.with_decision(inst, lengths, remove_postproc=True)


class MutateUnroll(Mutator):
    """Takes another number of steps to unroll, or another of some numbers."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """Return a trace with another number, None where there is none to choose."""
        rng = _rng(rand_state)
        several = [i for i in self.choosing(trace) if len(i.attrs[0]) > 1]
        if not several:
            return None
        inst = rng.choice(several)
        now = int(trace.get_decision(inst))
        other = rng.choice([i for i in range(len(inst.attrs[0])) if i != now])
        return trace.with_decision(inst, other, remove_postproc=True)

    def choosing(self, trace: Trace) -> list[Instruction]:
        """Return the steps whose number this mutator changes."""
        return _choosing(trace, "sample_categorical")


class MutateThreadBinding(MutateUnroll):
    """Takes another number of threads: a sampled number that a loop is split by."""

    def choosing(self, trace: Trace) -> list[Instruction]:
        """Return the steps by whose number a loop is split."""
        splits = (one for one in trace.insts if one.kind.method == "split")
        taken = {id(value) for one in splits for value in one.inputs}
        found = super().choosing(trace)
        return [inst for inst in found if any(id(out) in taken for out in inst.outputs)]


class MutateParallel(Mutator):
    """Takes another number of threads' jobs: that is no sampled number here, and is not changed."""

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core


class MutateComputeLocation(Mutator):
    """Computes a block elsewhere: the engine does, which knows the legal loops."""


def own_mutators(given: object) -> list[PyMutator]:
    """Return those of a script's own that have a probability."""
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else ()
    return [one for one, chance in pairs if isinstance(one, PyMutator) and float(chance) > 0]


def _choosing(trace: Trace, method: str) -> list[Instruction]:
    return [
        inst
        for inst in trace.insts
        if inst.kind.method == method and trace.get_decision(inst) is not None
    ]


def _rng(rand_state: int) -> random.Random:
    return random.Random(None if rand_state == -1 else rand_state)


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
