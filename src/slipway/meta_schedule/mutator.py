"""Mutators (classic): how a search changes what was sampled.

The engine changes one number at a time by itself.  Those of a script's own derive from `PyMutator`
(`PostOrderApply(mutator_probs={MyMutator(): 1.0})`), and are applied to the best schedules besides.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from slipway.blocks import tree
from slipway.blocks.schedule import Schedule
from slipway.blocks.trace import Instruction, Trace
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import NotAvailableError, TuningError
from slipway.ir import ops
from slipway.meta_schedule.rule import RULES, counted_by
from slipway.meta_schedule.schedule_rule import PARALLEL
from slipway.meta_schedule.utils import Described

if TYPE_CHECKING:
    from slipway.ir.function import PrimFunc
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
        last = MutateParallel() if kind in ("llvm", "c") else MutateThreadBinding()
        return {**found, last: 0.02}


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


class _OfFunction(Mutator):
    """A mutator that takes a trace's steps on the search's function, to see the loops there are."""

    def __init__(self) -> None:
        self._func: PrimFunc | None = None

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        self._func = None if context.mod is None else context.func

    def _begun(self) -> Schedule:
        if self._func is None:
            raise TuningError(
                f"{type(self).__name__} changes what depends on the loops of a function, and knows "
                "none: give it to a TuneContext(mod, target=..., mutator_probs=...)"
            )
        return Schedule(self._func)


class MutateParallel(_OfFunction):
    """Gives another number of outer loops to threads: the jobs that a block is annotated with.

    So many jobs for each of the target's cores at most; -1: it changes nothing.
    """

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        super().__init__()
        self.max_jobs_per_core, self._most = int(max_jobs_per_core), 0

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        super()._initialize_with_tune_context(context)
        cores = 1 if context.target is None else max(1, context.target.num_cores)
        self._most = max(0, self.max_jobs_per_core) * cores

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """Return a trace with another number of jobs, None where all mean the same loops."""
        rng, sch = _rng(rand_state), self._begun()
        marked = [one for one in trace.insts if _annotates_jobs(one)]
        if not marked:
            return None
        inst = rng.choice(marked)
        trace.apply_to_schedule(sch, remove_postproc=True)
        nests = jobs_by_loops(sch, _block_name(trace, inst), self._most)
        plans = {_fused(nests, jobs): jobs for nest in nests for jobs in sorted(set(nest))}
        plans = {plan: jobs for plan, jobs in plans.items() if jobs <= self._most}
        plans.pop(_fused(nests, int(inst.inputs[1])), None)
        if not plans:
            return None
        jobs = rng.choice(sorted(plans.values()))
        changed = Instruction(inst.kind, [inst.inputs[0], jobs], inst.attrs, inst.outputs)
        return trace.with_step(inst, changed)


class MutateComputeLocation(_OfFunction):
    """Computes a block elsewhere: at another of the loops where it may be then."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """Return a trace with a block at another place, None where none has two."""
        rng, sch = _rng(rand_state), self._begun()
        found: list[tuple[Instruction, list[int]]] = []

        def note(inst: Instruction, inputs: list[Any], _: list[Any], decision: Any) -> Any:
            if inst.kind.method == "sample_compute_location":
                others = [at for at in sch.compute_locations(inputs[0]) if at != int(decision)]
                found.extend([(inst, others)] if others else [])
            return decision

        trace.apply_to_schedule(sch, remove_postproc=True, decision_provider=note)
        if not found:
            return None
        inst, others = rng.choice(found)
        return trace.with_decision(inst, rng.choice(others), remove_postproc=True)


def own_mutators(given: object) -> list[Mutator]:
    """Return those that the engine's neighbours do not have, and that have a probability.

    They are those of a script's own, and what changes the number of jobs, which no step samples.
    """
    pairs: Iterable[Any] = given.items() if isinstance(given, Mapping) else ()
    own = (PyMutator, MutateParallel)
    return [one for one, chance in pairs if isinstance(one, own) and float(chance) > 0]


def jobs_by_loops(sch: Schedule, block: str, most: int) -> list[list[int]]:
    """Return, for each nest inside of a block, how many jobs its first loops make: one, two, ...

    Up to `most` jobs, of the outermost loops that count data for all that is computed in them.
    """
    held = sch.func.body if block == tree.ROOT else sch.get(sch.get_block(block))
    found: list[list[int]] = []
    for leaf in tree.leaf_blocks(held):
        jobs: list[int] = []
        made = 1
        for loop in tree.own_loops(sch.func.body, leaf):
            extent = ops.as_int(loop.extent)
            kinds = {
                dict(counted_by(one)).get(loop.loop_var) for one in tree.leaf_blocks(loop.body)
            }
            if extent is None or "reduce" in kinds or made >= most:
                break
            made *= extent
            jobs.append(made)
        found += [jobs] if jobs else []
    return found


def _fused(nests: list[list[int]], jobs: int) -> tuple[int, ...]:
    """Return how many loops of each nest make so many jobs at least."""
    return tuple(
        next((n for n, made in enumerate(nest, 1) if made >= jobs), len(nest)) for nest in nests
    )


def _annotates_jobs(inst: Instruction) -> bool:
    return inst.kind.method == "annotate" and list(inst.attrs) == [PARALLEL]


def _block_name(trace: Trace, inst: Instruction) -> str:
    """Return the name of the block that a step is about."""
    (block, *_) = inst.inputs
    for one in trace.insts:
        if one.kind.method == "get_block" and any(out is block for out in one.outputs):
            return str(one.attrs[0])
    return str(getattr(block, "name", tree.ROOT))


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
