"""Strategies: the ways to compute an operator, each with its knobs.

A `Strategy` belongs to one operator: a condition under which it applies, perhaps its own compute (a
Winograd convolution, say), a schedule, and knobs, a frozen dataclass of the decisions that both
take (`Knobs`): tiles, widths, parts.  `default` chooses the knobs for a `Problem` from the target's
description, `space` says which values are legal.  `choose` takes the strategy of highest priority
that applies, or what a user has forced.  Below all of them is the strategy of the operator's fusion
pattern (`register_pattern`), which serves those without any.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.backend import backend_of, strategy_packages
from slipway.errors import ScheduleError, TypeInferenceError, did_you_mean
from slipway.ir.op_attrs import strategy_of
from slipway.relay import op_registry
from slipway.relay.op_registry import OpPattern
from slipway.relay.open_dims import has_open, odd_type, smallest_type, usual_type
from slipway.relay.types import Type, flatten

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.op_registry import Attrs
    from slipway.relay.op_rules import OpImplementation, OpStrategy
    from slipway.target import Target

Condition = Callable[[Any, Sequence[Type], "Target"], bool]


@dataclass(frozen=True)
class Knobs:
    """The decisions of a strategy: each field an int, bool or str.  This one has none."""

    def __str__(self) -> str:
        return ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))


@dataclass(frozen=True)
class SizedKnobs:
    """Knobs, and what they take: an int64 formula of open sizes, in any unit of time."""

    knobs: Knobs
    cost: PrimExpr


@dataclass(frozen=True)
class Problem:
    """An operator with its types on a target: what knobs are chosen for.

    `computed` says of each input whether the kernel computes it, so that it is no memory.
    """

    op: str
    attrs: Any
    in_types: Sequence[Any]
    out_types: Sequence[Any]
    target: Target
    computed: tuple[bool, ...] = ()

    @property
    def is_open(self) -> bool:
        """Return whether a size is known only when the model runs."""
        return any(map(has_open, (*self.in_types, *self.out_types)))

    @property
    def smallest(self) -> Problem:
        """The same with the lower end of its range for each open size."""
        return self._with(smallest_type)

    @property
    def usual(self) -> Problem:
        """The same with the sizes that costs are told for."""
        return self._with(usual_type)

    @property
    def samples(self) -> tuple[Problem, ...]:
        """The same with the ends of the ranges and a size that nothing divides; itself if fixed."""
        if not self.is_open:
            return (self,)
        return self.smallest, self._with(odd_type), self.usual

    def _with(self, fixed: Callable[[Any], Any]) -> Problem:
        in_types, out_types = (tuple(map(fixed, t)) for t in (self.in_types, self.out_types))
        return replace(self, in_types=in_types, out_types=out_types)

    def reads_memory(self, number: int) -> bool:
        """Return whether input `number` is a tensor in memory."""
        return not (self.computed and self.computed[number])


# compute(problem, inputs, knobs) and schedule(problem, outs, anchor, knobs); of a strategy without
# knobs compute(target, attrs, inputs, out_types) and schedule(target, outs, anchor)
ComputeFunction = Callable[..., Sequence[te.Tensor]]
ScheduleFunction = Callable[..., te.Schedule]
Space = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Strategy:
    """One way to compute and schedule an operator.

    `schedule(target, outs, anchor)` gets the outputs of the whole fused kernel and the operator's
    own tensor among them.  `compute` None means the operator's own.  Both get the problem and the
    knobs where the strategy has any, which is where it has a `default`.  `cost` is the cycles that
    knobs are predicted to take.  `by_size` gives several knobs for a problem of open sizes: a
    kernel has a schedule for each, and takes the one of least cost when it runs.
    """

    name: str
    op: str
    schedule: ScheduleFunction
    compute: ComputeFunction | None
    applies: Condition
    priority: int
    default: Callable[[Problem], Knobs] | None = None
    space: Callable[[Problem], Space] | None = None
    cost: Callable[[Problem, Any], float] | None = None
    by_size: Callable[[Problem], Sequence[SizedKnobs]] | None = None

    @property
    def home(self) -> str:
        """The module that holds it: strategies in a backend's packages are that backend's."""
        function = getattr(self.schedule, "func", self.schedule)
        return str(getattr(function, "__module__", ""))

    @property
    def knob_names(self) -> tuple[str, ...] | None:
        """The names of its knobs: of what it computes and schedules with; None: that is untold."""
        kinds = [_last_type(part) for part in (self.schedule, self.compute) if part is not None]
        told = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Knobs)]
        return tuple(dict.fromkeys(f.name for kind in told for f in fields(kind))) if told else None

    def candidates(self, problem: Problem) -> Iterator[Knobs]:
        """Yield all legal knobs, the default first."""
        first = self.knobs_for(problem)
        yield first
        space = self.legal(problem)
        if not space:
            return
        for values in product(*space.values()):
            knobs = type(first)(**dict(zip(space, values, strict=True)))
            if knobs != first:
                yield knobs

    def legal(self, problem: Problem) -> dict[str, tuple[Any, ...]]:
        """Return the values that each knob may have; those that the default has are among them."""
        if self.space is None:
            return {}
        found, first = {}, self._default_knobs(problem)
        # What is legal for a size need not be for the next: the knobs of open sizes serve all.
        space, *others = map(self.space, problem.samples)
        for name, values in space.items():
            own = getattr(first, name)
            common = tuple(v for v in values if all(v in other[name] for other in others))
            found[name] = common if own in common else (*common, own)
        return found

    def predicted(self, problem: Problem, knobs: Knobs) -> float | None:
        """Return the cycles that knobs are predicted to take, where there is a model of them."""
        if self.cost is None:
            return None
        return float(self.cost(problem.usual if problem.is_open else problem, knobs))

    def knobs_for(self, problem: Problem, wanted: Mapping[str, Any] | None = None) -> Knobs:
        """Return the default knobs with those of `wanted` in place of them.

        Raises ScheduleError for a knob or value that there is not.
        """
        knobs = self._default_knobs(problem)
        if not wanted:
            return knobs
        space = self.legal(problem)
        for name, value in wanted.items():
            if name not in space:
                raise ScheduleError(
                    f"the strategy {self.name} has no knob {name!r}.{did_you_mean(name, space)} "
                    f"It has: {', '.join(space) or 'none'}"
                )
            if value not in space[name]:
                legal = ", ".join(map(str, space[name]))
                raise ScheduleError(
                    f"the knob {name} of {self.name} cannot be {value!r} for this {self.op}: "
                    f"its legal values are {legal}"
                )
        return type(knobs)(**{**{f.name: getattr(knobs, f.name) for f in fields(knobs)}, **wanted})

    def _default_knobs(self, problem: Problem) -> Knobs:
        """Return the analytic choice; where it depends on an open size, that for the smallest.

        What fits the smallest size has its room in all others; `size_versions` sees to it that they
        are not much larger.
        """
        if self.default is None:
            return Knobs()
        try:
            return self.default(problem)
        except TypeInferenceError:
            if not problem.is_open:
                raise
            return self.default(problem.smallest)


@dataclass(frozen=True)
class Choice:
    """A strategy with its knobs for one problem."""

    strategy: Strategy
    problem: Problem
    knobs: Knobs

    def compute(self, inputs: Sequence[te.Tensor]) -> list[te.Tensor] | None:
        """Return the outputs, or None where the operator's own compute serves."""
        strategy, problem = self.strategy, self.problem
        if strategy.compute is None:
            return None
        if strategy.default is not None:
            return list(strategy.compute(problem, inputs, self.knobs))
        return list(strategy.compute(problem.target, problem.attrs, inputs, problem.out_types))

    def schedule(self, outs: Sequence[te.Tensor], anchor: te.Tensor) -> te.Schedule:
        """Return the schedule of the kernel with the outputs `outs`."""
        if self.strategy.default is not None:
            return self.strategy.schedule(self.problem, outs, anchor, self.knobs)
        return self.strategy.schedule(self.problem.target, outs, anchor)

    @property
    def cycles(self) -> float | None:
        """The predicted cycles, where the strategy has a model of its cost."""
        return self.strategy.predicted(self.problem, self.knobs)


_STRATEGIES: dict[str, list[Strategy]] = {}
_PATTERNS: dict[OpPattern, list[Strategy]] = {}
_imported: set[str] = set()


def _last_type(function: Callable[..., object]) -> object:
    """Return the annotation of a function's last parameter, which is its knobs."""
    function = getattr(function, "func", function)
    kind = list(signature(function).parameters.values())[-1].annotation
    return function.__globals__.get(kind) if isinstance(kind, str) else kind


def _always(attrs: Attrs | None, in_types: Sequence[Type], target: Target) -> bool:
    return True


def register_strategy(
    *ops: str,
    name: str,
    priority: int = 10,
    compute: ComputeFunction | None = None,
    applies: Condition = _always,
    default: Callable[[Problem], Knobs] | None = None,
    space: Callable[[Problem], Space] | None = None,
    cost: Callable[[Problem, Any], float] | None = None,
    by_size: Callable[[Problem], Sequence[SizedKnobs]] | None = None,
) -> Callable[[ScheduleFunction], ScheduleFunction]:
    """Decorator: enter a schedule function for the operators `ops`."""

    def register(schedule: ScheduleFunction) -> ScheduleFunction:
        for op in ops:
            entry = Strategy(
                name, op, schedule, compute, applies, priority, default, space, cost, by_size
            )
            _STRATEGIES.setdefault(op, []).append(entry)
        return schedule

    return register


def register_pattern(
    *patterns: OpPattern,
    name: str,
    default: Callable[[Problem], Knobs],
    space: Callable[[Problem], Space],
    cost: Callable[[Problem, Any], float],
) -> Callable[[ScheduleFunction], ScheduleFunction]:
    """Decorator: enter a schedule function for all operators of some fusion patterns."""

    def register(schedule: ScheduleFunction) -> ScheduleFunction:
        for pattern in patterns:
            entry = Strategy(name, "", schedule, None, _always, 0, default, space, cost)
            _PATTERNS.setdefault(pattern, []).append(entry)
        return schedule

    return register


def _import(package: str) -> None:
    """Import the modules of a package of strategies, each of which registers its own."""
    if package in _imported:
        return
    _imported.add(package)
    found = importlib.import_module(package)
    for item in pkgutil.walk_packages(found.__path__, f"{package}."):
        importlib.import_module(item.name)


def strategies(op: str, target: Target) -> list[Strategy]:
    """Return the strategies for an operator that the target's backend has, or that a user added."""
    found = _of_pattern(op, op_registry.get(op).pattern, target)
    return _of_program(op) + _of_backend(_STRATEGIES.get(op, ()), target) + found


def _of_program(op: str) -> list[Strategy]:
    """Return the strategy that ``relay.op.register_strategy`` has entered, before all others."""
    function = strategy_of(op)
    if function is None:
        return []

    def implementation(problem: Problem, inputs: Sequence[te.Tensor]) -> OpImplementation:
        made: OpStrategy = function(problem.attrs, list(inputs), made_of(problem), problem.target)
        return made.chosen(op)

    def made_of(problem: Problem) -> object:
        types = problem.out_types
        return types[0] if len(types) == 1 else types

    def compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: Knobs) -> Sequence[te.Tensor]:
        way = implementation(problem, inputs)
        outs = way.compute(problem.attrs, list(inputs), made_of(problem))
        return [outs] if isinstance(outs, te.Tensor) else list(outs)

    def schedule(
        problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: Knobs
    ) -> te.Schedule:
        inputs = [
            te.placeholder(t.shape, dtype=t.dtype, name=f"p{number}")
            for number, t in enumerate(t for given in problem.in_types for t in flatten(given))
        ]
        way = implementation(problem, inputs)
        return way.schedule(problem.attrs, list(outs), problem.target)

    for part in (compute, schedule):  # kernels of a program's own functions are not kept
        part.__module__ = function.__module__
    name = f"{op}.registered"
    return [Strategy(name, op, schedule, compute, _always, 1 << 20, lambda problem: Knobs())]


def registered(op: str) -> list[Strategy]:
    """Return the strategies for an operator that any backend has, or that a user added."""
    for package in strategy_packages():
        _import(package)
    return [*_STRATEGIES.get(op, ()), *_PATTERNS.get(op_registry.get(op).pattern, ())]


def _of_pattern(op: str, pattern: OpPattern, target: Target) -> list[Strategy]:
    packages = backend_of(target).strategies
    for package in packages:
        _import(package)
    return [replace(e, op=op) for e in _of_backend(_PATTERNS.get(pattern, ()), target)]


def _of_backend(entries: Iterable[Strategy], target: Target) -> list[Strategy]:
    packages, every = backend_of(target).strategies, strategy_packages()
    return [e for e in entries if _is_of(e.home, packages, every)]


def choose_plain(problem: Problem) -> Choice | None:
    """Return how the target's backend schedules what is no operator: a copy."""
    found = _of_pattern(problem.op, OpPattern.INJECTIVE, problem.target)
    return Choice(found[0], problem, found[0].knobs_for(problem)) if found else None


@lru_cache(maxsize=4096)
def _is_of(module: str, packages: tuple[str, ...], every: frozenset[str]) -> bool:
    """Return whether a module lies in one of `packages`, or in no backend's."""

    def inside(names: Iterable[str]) -> bool:
        return any(module.startswith(f"{name}.") for name in names)

    return inside(packages) or not inside(every)


def applicable(problem: Problem) -> list[Strategy]:
    """Return the strategies that apply, the preferred first; empty if there is none."""
    every = strategies(problem.op, problem.target)
    fitting = [e for e in every if _serves(e, problem)]
    return sorted(fitting, key=lambda e: -e.priority)


def _serves(entry: Strategy, problem: Problem) -> bool:
    """Return whether a strategy applies; not where that depends on what an open size is."""
    if not problem.is_open:
        return entry.applies(problem.attrs, problem.in_types, problem.target)
    try:
        if entry.applies(problem.attrs, problem.in_types, problem.target):
            entry.knobs_for(problem)
            return True
    except TypeInferenceError:
        pass
    return False


# What strategies were called in records and logs that people may have.
_EARLIER_NAMES = {
    "conv_pairs.squares": "conv_pairs.mmla",
    "dense_pairs.squares": "dense_pairs.mmla",
}


def present_name(strategy: str) -> str:
    """Return the name of a strategy that a file may know by an earlier one."""
    return _EARLIER_NAMES.get(strategy, strategy)


@dataclass(frozen=True)
class Forced:
    """What a user wants for an operator: a strategy by name, and values of its knobs."""

    strategy: str = ""
    knobs: Mapping[str, Any] = field(default_factory=dict)


def choose(
    problem: Problem, forced: Forced | None = None, passed_over: Collection[str] = ()
) -> Choice | None:
    """Return the strategy and knobs to use, or None: the operator gets its pattern's schedule.

    Not one of those `passed_over`, by name.

    Raises ScheduleError for a forced strategy that does not apply, or knobs that are not legal.
    """
    fitting = [e for e in applicable(problem) if e.name not in passed_over]
    if forced is not None and forced.strategy:
        named = [entry for entry in fitting if entry.name == forced.strategy]
        if not named:
            names = [entry.name for entry in fitting]
            raise ScheduleError(
                f"the strategy {forced.strategy!r} does not apply to this {problem.op} on "
                f"{problem.target}.{did_you_mean(forced.strategy, names)} These do: "
                f"{', '.join(names) or 'none'}"
            )
        fitting = named
    if not fitting:
        return None
    wanted = forced.knobs if forced is not None else None
    return Choice(fitting[0], problem, fitting[0].knobs_for(problem, wanted))
