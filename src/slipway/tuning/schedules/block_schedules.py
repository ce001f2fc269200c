"""The choices of schedules of blocks (`tir.Schedule`): what they sampled, in their traces.

A schedule that was made on a function is a design; its trace says which numbers were sampled.  A
candidate is a design with other numbers, and the steps are taken again on the function as it was.
Its strategy is the trace's steps as JSON, so that a database needs nothing else to take them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from slipway.backends.strategy import Problem
from slipway.blocks.schedule import Schedule
from slipway.blocks.trace import Instruction, Trace
from slipway.compiler.driver import build, lower
from slipway.errors import ScheduleError, SlipwayError, TuningError
from slipway.ir import ops
from slipway.ir.function import BaseFunc, IRModule, PrimFunc
from slipway.ir.stmt import BufferStore
from slipway.ir.visit import walk
from slipway.relay.types import TensorType
from slipway.runtime.ndarray import array
from slipway.target import Target
from slipway.tuning.build import LoopsJob
from slipway.tuning.builders import Builder
from slipway.tuning.database import SCHEDULE, TrialRow
from slipway.tuning.measure import Bench, Measured
from slipway.tuning.runner import Runner
from slipway.tuning.search import TaskSearch
from slipway.tuning.session import Array
from slipway.tuning.space import Candidate, Choices, candidate_of, divisors, fitting

TILE, CATEGORY, PLACE = "sample_perfect_tile", "sample_categorical", "sample_compute_location"
OWN_END = "with postprocessors: "
LOOKED_AT = 4  # candidates, for each that is tried
FIRST = 64  # candidates among which one has to compile
Finish = Callable[[Schedule], bool]
Change = Callable[[Trace, int], "Trace | None"]


class DesignSpace(Choices):
    """The candidates of some designs of a function.

    ``finish(schedule)`` does what comes after the sampled steps, and says whether the candidate is
    one.  ``fresh(seed)`` makes designs anew, where a function of the user's decides by the numbers
    that it samples: `sample` calls it then.  `has_own_end`: `finish` does what only this script
    knows, so that no database can take a candidate's steps without it.  ``changes`` are mutators of
    a script's own: ``change(trace, seed)`` returns another trace, or None.
    """

    def __init__(
        self,
        func: PrimFunc,
        designs: Sequence[Schedule],
        finish: Finish = lambda _: True,
        fresh: Callable[[int], Sequence[Schedule]] | None = None,
        has_own_end: bool = False,
        changes: Sequence[Change] = (),
    ) -> None:
        self.func, self._finish, self._fresh = func, finish, fresh
        self._changes, self._changed = list(changes), 0
        self._end = OWN_END if has_own_end else ""
        self.traces: dict[str, Trace] = {}
        self._tiles: dict[str, list[tuple[int, int, int]]] = {}  # (step, parts, length of its loop)
        super().__init__({}, {})
        for design in designs:
            self.enter(design)
        if not self.values:
            raise TuningError("there is no schedule to search: the space generator made none")

    def enter(self, design: Schedule) -> Candidate:
        """Take a design in, where it is a new one, and return it as a candidate."""
        trace = design.trace
        name, knobs = self._end + strategy_of(trace, len(self.traces)), chosen_by(trace)
        made = candidate_of(name, knobs)
        if name not in self.traces:
            self.traces[name] = trace
            self._tiles[name] = []
            self.values[name] = self._legal(name, trace)  # type: ignore[index]
            self.defaults[name] = made  # type: ignore[index]
            self.default = self.default or made
        return made

    def with_values(self, candidate: Candidate, **values: Any) -> Candidate:
        """Return the candidate with other values, so that equal schedules are equal."""
        knobs = dict(super().with_values(candidate, **values).knobs)
        for number, parts, left in self._tiles[candidate.strategy]:
            for part in range(parts - 1, 0, -1):
                name = f"{number}.{part}"
                knobs[name] = fitting(int(knobs.get(name, 1)), left)
                left //= knobs[name]
        return candidate_of(candidate.strategy, knobs)

    def _legal(self, name: str, trace: Trace) -> dict[str, tuple[int, ...]]:
        """Return the values of what is sampled; of places those that the design could have."""
        legal: dict[str, tuple[int, ...]] = {}
        sch = Schedule(self.func)

        def note(number: int, inst: Instruction, inputs: list[Any], decision: Any) -> Any:
            if inst.kind.method == TILE:
                extent = int(np.prod([int(n) for n in decision]))
                self._tiles[name].append((number, len(decision), extent))
                most = int(inst.attrs[1]) if inst.attrs[1] else extent
                for part in range(1, len(decision)):
                    last = part == len(decision) - 1
                    found = [n for n in divisors(extent) if not last or n <= most]
                    legal[f"{number}.{part}"] = tuple(found)
            elif inst.kind.method == CATEGORY:
                legal[str(number)] = tuple(range(len(inst.attrs[0])))
            else:
                legal[str(number)] = tuple(sorted(sch.compute_locations(inputs[0])))
            return decision

        _taken(trace, sch, note)
        return {knob: values for knob, values in legal.items() if len(values) > 1}

    def sample(self, rng: random.Random) -> Candidate:
        """Return a random candidate: of a design, or of what the generator makes now."""
        if self._fresh is None:
            return super().sample(rng)
        return self.enter(rng.choice(list(self._fresh(rng.randrange(1, 2**31)))))

    def crossed(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        """Return a candidate with what both sampled; `one` where their designs differ."""
        return super().crossed(one, other, rng) if one.strategy == other.strategy else one

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield what is one step of one number away, and what a script's mutators make of it."""
        yield from super().neighbours(candidate)
        for change in self._changes:
            self._changed += 1
            try:
                trace = replayed(self.func, candidate, self.traces.get(candidate.strategy)).trace
                changed, made = change(trace, self._changed), Schedule(self.func)
                if changed is not None:
                    changed.apply_to_schedule(made, remove_postproc=True)
            except SlipwayError:
                continue
            if changed is not None:
                yield self.enter(made)

    def is_legal(self, candidate: Candidate) -> bool:
        """Return whether a candidate's steps can be taken, and its end allows it."""
        try:
            self.schedule(candidate)
        except ScheduleError:
            return False
        return True

    def schedule(self, candidate: Candidate) -> Schedule:
        """Return the schedule of a candidate.  Raises ScheduleError for one that is none."""
        sch = replayed(self.func, candidate, self.traces.get(candidate.strategy))
        if not self._finish(sch):
            raise ScheduleError("a postprocessor refuses this schedule")
        return sch


def strategy_of(trace: Trace, number: int = 0) -> str:
    """Return what a design is called: its steps as JSON, or its number where they have none."""
    try:
        return json.dumps(trace.as_json()[0])
    except (ScheduleError, TypeError):
        return f"design {number}"


def chosen_by(trace: Trace) -> dict[str, int]:
    """Return what a trace sampled, as knobs: of a tile the inner lengths, as the others follow."""
    knobs: dict[str, int] = {}
    for number, inst in enumerate(trace.insts):
        decision = trace.get_decision(inst)
        if inst.kind.method == TILE:
            inner = enumerate(list(decision)[1:], 1)
            knobs |= {f"{number}.{part}": int(value) for part, value in inner}
        elif inst.kind.method in (CATEGORY, PLACE):
            knobs[str(number)] = int(decision)
    return knobs


def replayed(func: PrimFunc, candidate: Candidate, trace: Trace | None = None) -> Schedule:
    """Take a candidate's steps on a function; `trace` are those where they are no JSON."""
    if trace is None:
        try:
            trace = Trace.from_json([json.loads(candidate.strategy), []])
        except ValueError:
            raise ScheduleError(
                f"{candidate.strategy[:80]!r} is made with a function of the script that searched "
                "it, which no record holds (a map of indices, a postprocessor): call tune_tir with "
                "the same space to have it again"
            ) from None
    knobs, sch = dict(candidate.knobs), Schedule(func)

    def choose(number: int, inst: Instruction, inputs: list[Any], decision: Any) -> Any:
        if inst.kind.method != TILE:
            return int(knobs.get(str(number), decision or 0))
        parts = int(inst.attrs[0])
        left = ops.as_int(sch.get(inputs[0]).extent)
        if left is None:
            raise ScheduleError(f"the extent of loop {inputs[0]} is not known")
        inner: list[int] = []
        for part in range(parts - 1, 0, -1):
            given = decision[part] if decision is not None else 1
            inner.append(fitting(int(knobs.get(f"{number}.{part}", given)), left))
            left //= inner[-1]
        return [left, *inner[::-1]]

    _taken(trace, sch, choose)
    return sch


def _taken(
    trace: Trace, sch: Schedule, decide: Callable[[int, Instruction, list[Any], Any], Any]
) -> None:
    numbers = {id(inst): number for number, inst in enumerate(trace.insts)}

    def decided(inst: Instruction, inputs: list[Any], _: list[Any], decision: Any) -> Any:
        return decide(numbers[id(inst)], inst, inputs, decision)

    trace.apply_to_schedule(sch, decision_provider=decided)


class BlockTask:
    """A function of loops whose schedule is searched for a target."""

    op, is_portable = SCHEDULE, True

    def __init__(
        self, name: str, func: PrimFunc, target: Target, space: DesignSpace, weight: float = 1.0
    ) -> None:
        self.name, self.func, self.target, self.weight = name, func, target, weight
        self.space = space
        self.read, self.written = arguments(func, name)

    @cached_property
    def problem(self) -> Problem:
        """What records are about: the function, known by its text."""
        return problem_of(self.func, self.target)

    @cached_property
    def key(self) -> str:
        """What trials are found by; their scores are beside the default of this space."""
        default = self.space.default
        assert default is not None
        text = f"{self.problem.attrs}\n{self.target}\n{default.text}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def suffix(self) -> str:
        """The ending of a library of the task's target."""
        return self.target.upload_suffix

    def bench(
        self, runner: Runner, folder: Path, rounds: int = 9, builder: Builder | None = None
    ) -> Bench:
        """Return what measures candidates."""
        return Bench(self, self, runner, folder, rounds, builder)

    def inputs(self) -> list[TensorType]:
        """Return the types of what is read."""
        return [self._type(n) for n in self.read]

    def outputs(self) -> list[TensorType]:
        """Return the types of what is written."""
        return [self._type(n) for n in self.written]

    def _type(self, number: int) -> TensorType:
        buffer = self.func.buffer_map[number][1]
        return TensorType(tuple(int(ops.as_int(n) or 0) for n in buffer.shape), buffer.dtype)

    def job(self, candidates: Sequence[Candidate]) -> LoopsJob:
        """Return what compiles candidates into one library."""
        return LoopsJob.of(self.target, candidates, self.lowered)

    def lowered(self, candidate: Candidate, name: str = "main") -> BaseFunc:
        """Return the loops of a candidate, a function of what is read and then what is written."""
        return self._named(self.space.schedule(candidate).func, name)

    def module(self, candidate: Candidate) -> IRModule:
        """Return a candidate's schedule as a module: "main", of reads and then what is written."""
        func = self._ordered(self.space.schedule(candidate).func, "main")
        return IRModule.from_functions({"main": func})

    def _ordered(self, func: PrimFunc, name: str) -> PrimFunc:
        order = [*self.read, *self.written]
        made = func.replace(params=tuple(func.params[n] for n in order))
        named: PrimFunc = made.with_attr("global_symbol", name)
        return named

    def _named(self, func: PrimFunc, name: str) -> BaseFunc:
        named = self._ordered(func, name)
        return lower(IRModule.from_functions({name: named}), simple_mode=True)[name]

    def reference(self, inputs: Sequence[Array]) -> list[Array]:
        """Return what the function gives here without any schedule.

        Raises TuningError where that depends on what lies in its results before.
        """
        plain = build(IRModule.from_functions({"main": self._named(self.func, "main")}), "llvm")
        found = []
        for before in (0, 1):
            results = [array(np.full(t.shape, before, t.dtype)) for t in self.outputs()]
            plain["main"](*map(array, inputs), *results)
            found.append([result.numpy() for result in results])
        for one, other in zip(*found, strict=True):
            if not np.array_equal(one, other, equal_nan=True):
                raise TuningError(
                    f"the function {self.name!r} reads a result before it writes it (or leaves "
                    "some of it unwritten), so that runs cannot be compared: give its sum a "
                    "T.init(), or write into a buffer of its own"
                )
        return found[0]

    def __str__(self) -> str:
        shapes = " ".join(str(t) for t in self.inputs())
        return f"{self.name} {shapes} -> {' '.join(map(str, self.outputs()))}"


def arguments(func: PrimFunc, name: str) -> tuple[list[int], list[int]]:
    """Return which parameters are only read, and which are written.

    Raises TuningError for what is no tensor of a fixed shape, and where none is written.
    """
    if len(func.buffer_map) != len(func.params):
        raise TuningError(f"the function {name!r} has parameters that are no buffers")
    for _, buffer in func.buffer_map:
        if any(ops.as_int(n) is None for n in buffer.shape):
            raise TuningError(f"the buffer {buffer.name!r} of {name!r} has no fixed shape")
    stored = {node.buffer for node in walk(func.body) if isinstance(node, BufferStore)}
    written = [n for n, (_, buffer) in enumerate(func.buffer_map) if buffer in stored]
    if not written:
        raise TuningError(f"the function {name!r} writes none of its parameters")
    return [n for n in range(len(func.params)) if n not in written], written


def problem_of(func: PrimFunc, target: Target) -> Problem:
    """Return what records of a function are about."""
    return Problem(SCHEDULE, text_key(func), (), (), target)


def text_key(func: PrimFunc) -> str:
    """Return what a function is known by: its text, whatever it is called."""
    text = func.with_attr("global_symbol", "main").script()
    return hashlib.sha256(text.encode()).hexdigest()


class BlockSearch(TaskSearch[BlockTask]):
    """The search for one function; what it begins with counts as found, once it is verified."""

    def _proposals(self, size: int) -> list[Candidate]:
        """Return what is tried next: of a GPU, whose limits refuse much, what they allow."""
        if self.task.target.kind.is_cpu:
            return super()._proposals(size)
        drawn = super()._proposals(LOOKED_AT * size)
        return list(islice(filter(self.task.space.is_legal, drawn), size)) or drawn[:size]

    def attempt(self, batch: Sequence[Candidate]) -> int:
        """Try these candidates and return how many there were; raises as a search does."""
        made = super().attempt(batch)
        default = self.task.space.default
        assert default is not None
        if made and self.default_seconds and not self._is_kept(default):
            wrong = self.bench.verify(default)
            if wrong:
                raise TuningError(
                    f"{self.task}: the schedule {default.strategy[:200]} does not compute what the "
                    f"function computes without one: {wrong}"
                )
            first = Measured(default, [self.default_seconds], 1.0)
            self.database.add(self.task, self.device, [first], verified=default)
        return made

    def _is_kept(self, default: Candidate) -> bool:
        known = self.database.trials(self.task, self.device)
        return any(isinstance(t, TrialRow) and t.verified and t.candidate == default for t in known)


class ReplaySearch(BlockSearch):
    """Proposes at random, as ReplayTrace and ReplayFunc do."""

    def _proposals(self, size: int) -> list[Candidate]:
        space, found = self.task.space, dict[Candidate, None]()
        assert space.default is not None
        if not self.scores:
            found[space.default] = None
        for _ in range(16 * size):
            if len(found) >= size:
                break
            candidate = space.sample(self.rng)
            if candidate not in self.scores:
                found[candidate] = None
        return list(found)


def legal_default(task_name: str, space: DesignSpace) -> None:
    """Let the space begin with a candidate that compiles.  Raises the first error without one."""
    first: SlipwayError | None = None
    rng = random.Random(task_name)
    candidates: Iterable[Candidate] = list(space.defaults.values())
    for _ in range(FIRST):
        for candidate in candidates:
            try:
                made = space.schedule(candidate).func
                lower(IRModule.from_functions({"main": made}))
            except SlipwayError as error:
                first = first or error
            else:
                space.default = candidate
                return
        candidates = [space.sample(rng)]
    assert first is not None
    raise first
