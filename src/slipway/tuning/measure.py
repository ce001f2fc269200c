"""Times of candidates on a device, taken in turns, and whether they compute the right thing.

Every batch has the task's default choice among its candidates.  All take turns, so that whatever
slows the device down slows all of them, and a score is the median of a candidate's time over the
default's in the same turn: it holds from batch to batch and day to day.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from slipway.errors import RPCError, SlipwayError
from slipway.inspect.bisect import difference, kernel_reference
from slipway.relay.types import TensorType, flatten
from slipway.rpc.client import RPCSession
from slipway.tuning.build import Built, build_candidates
from slipway.tuning.runner import Runner
from slipway.tuning.space import Candidate, Choices
from slipway.tuning.task import TuningTask

Array = np.ndarray[Any, Any]
TURN_S = 0.004  # a candidate's share of a turn, in which it runs as often as it can
TOLERANCES = {"float16": 1e-2, "bfloat16": 4e-2}  # of the largest value; else that of float32
TOLERANCE = 1e-4


@dataclass
class Measured:
    """What a candidate did: its times a run, one a turn, or the error that it ended in.

    `score` is relative to the default's time; `kind` is the class of the error: "build", "run" or
    "wrong", or "" for none.
    """

    candidate: Candidate
    seconds: list[float] = field(default_factory=list)
    score: float = float("inf")
    kind: str = ""
    error: str = ""


class Decision(Protocol):
    """What a search decides about: a kernel of a model, or a template with its arguments."""

    @property
    def key(self) -> str:
        """What it is found by."""

    @property
    def space(self) -> Choices:
        """The candidates."""


class Subject(Protocol):
    """What a bench needs to measure the candidates of a task."""

    def build(self, candidates: Sequence[Candidate], path: Path) -> Built:
        """Compile candidates into the library `path`."""

    def inputs(self) -> list[TensorType]:
        """Return the types of the functions' first arguments."""

    def outputs(self) -> list[TensorType]:
        """Return the types of the arguments after them, which are written."""

    def reference(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the right results."""


@dataclass(frozen=True)
class KernelSubject:
    """A model's kernel as the subject; the reference are the operators' NumPy definitions."""

    task: TuningTask

    def build(self, candidates: Sequence[Candidate], path: Path) -> Built:
        """Compile candidates into one library."""
        return build_candidates(self.task, candidates, path)

    def inputs(self) -> list[TensorType]:
        """Return the types of the kernel's arguments."""
        return [t for param in self.task.function.params for t in flatten(param.checked_type)]

    def outputs(self) -> list[TensorType]:
        """Return the types of the kernel's results."""
        return flatten(self.task.function.body.checked_type)

    def reference(self, inputs: Sequence[Array]) -> list[Array]:
        """Return what the operators are defined to compute."""
        return kernel_reference(self.task.function, inputs)


class Bench:
    """Measures candidates of one task on a runner's device; a context that ends the session."""

    def __init__(
        self, task: Decision, subject: Subject, runner: Runner, folder: Path, turns: int = 9
    ) -> None:
        self.task, self.subject, self.runner = task, subject, runner
        self.folder, self.turns = folder, turns
        self.inputs = [random_array(t, i) for i, t in enumerate(subject.inputs())]
        self._session: RPCSession | None = None
        self._arguments: list[Any] = []
        self._wanted: list[Array] | None = None
        self._number = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exception: object) -> None:
        self._drop()

    # One batch.

    def measure(self, candidates: Sequence[Candidate], turns: int = 0) -> list[Measured]:
        """Measure candidates beside the default, which need not be among them.

        Where the device does not survive a batch, each is tried alone; the one at fault is told by
        that.  Raises RPCError when no session can be had, SlipwayError where the default itself
        cannot be built or run: nothing can be compared then.
        """
        default = self.task.space.default
        assert default is not None
        batch = [default, *(c for c in candidates if c != default)]
        self._number += 1
        name = f"{self.task.key}_{self._number}.tar"
        built = self.subject.build(batch, self.folder / name)
        if default not in built.functions:
            raise SlipwayError(f"the default choice of {self.task}: {built.errors[default]}")
        found = [Measured(c, kind="build", error=text) for c, text in built.errors.items()]
        assert built.path is not None
        self._open()  # that there is no device is no candidate's fault
        try:
            times = self._times(built.path, built.functions, turns or self.turns)
        except RPCError as error:
            self._drop()
            if len(built.functions) <= 2:
                bad = [c for c in built.functions if c != default] or [default]
                return [*found, *(Measured(c, kind="run", error=_text(error)) for c in bad)]
            for candidate in built.functions:
                if candidate != default:
                    found += [m for m in self.measure([candidate], turns) if m.candidate != default]
            return found
        found += [_scored(c, times[c], times[default]) for c in built.functions]
        return found

    def _times(
        self, path: Path, functions: Mapping[Candidate, str], turns: int
    ) -> dict[Candidate, list[float]]:
        """Return the times of a run of each candidate, one for each turn."""
        session = self._open()
        session.upload(str(path))
        library = session.load_module(path.name)
        device = session.cpu(0)
        # The first runs fill caches and tell how often a candidate runs in its share of a turn.
        numbers: dict[Candidate, int] = {}
        for candidate, name in functions.items():
            once = library.time_evaluator(name, device, number=1)(*self._arguments).mean
            numbers[candidate] = max(1, min(1000, round(TURN_S / max(once, 1e-7))))
        times: dict[Candidate, list[float]] = {c: [] for c in functions}
        for turn in range(turns):
            order = list(functions) if turn % 2 == 0 else list(functions)[::-1]
            for candidate in order:
                run = library.time_evaluator(
                    functions[candidate], device, number=numbers[candidate]
                )
                times[candidate].append(run(*self._arguments).mean)
        return times

    # Numbers.

    def verify(self, candidate: Candidate) -> str:
        """Return how a candidate's results on the device differ from the reference's; "" if not."""
        self._number += 1
        path = self.folder / f"{self.task.key}_{self._number}.tar"
        built = self.subject.build([candidate], path)
        if built.path is None:
            return built.errors[candidate]
        if self._wanted is None:
            self._wanted = self.subject.reference(self.inputs)
        try:
            session = self._open()
            session.upload(str(path))
            run = session.load_module(path.name).get_function(built.functions[candidate])
            run(*self._arguments)
            results = [a.numpy() for a in self._arguments[len(self.inputs) :]]
        except RPCError as error:
            self._drop()
            return _text(error)
        for number, (got, wanted) in enumerate(zip(results, self._wanted, strict=True)):
            allowed = TOLERANCES.get(str(wanted.dtype), TOLERANCE)
            found = difference(np.asarray(got), wanted, allowed)
            if found is not None:
                return (
                    f"output {number} is off by {found.error:.3g} at {list(found.index)}: "
                    f"{found.got:g}, and the reference has {found.wanted:g}"
                )
        return ""

    # The session.

    def _open(self) -> RPCSession:
        if self._session is None:
            session = self.runner.open()
            device = session.cpu(0)
            outputs = [np.zeros(t.shape, t.dtype) for t in self.subject.outputs()]
            self._arguments = [
                device.empty(array.shape, str(array.dtype)).copyfrom(array)
                for array in (*self.inputs, *outputs)
            ]
            self._session = session
        return self._session

    def _drop(self) -> None:
        session, self._session, self._arguments = self._session, None, []
        if session is not None:
            with contextlib.suppress(RPCError, OSError):
                session.close()


def kernel_bench(task: TuningTask, runner: Runner, folder: Path, turns: int = 9) -> Bench:
    """Return the bench of a model's kernel."""
    return Bench(task, KernelSubject(task), runner, folder, turns)


def _scored(candidate: Candidate, seconds: list[float], default: Sequence[float]) -> Measured:
    ratios = [mine / theirs for mine, theirs in zip(seconds, default, strict=True)]
    return Measured(candidate, seconds, statistics.median(ratios))


def is_faster(one: Measured, other: Measured) -> bool:
    """Return whether `one` is faster than `other` in a batch that had both, beyond their noise.

    That is: in the median of the turns by a hundredth, and in three of four turns.
    """
    ratios = sorted(a / b for a, b in zip(one.seconds, other.seconds, strict=True))
    if not ratios:
        return False
    return statistics.median(ratios) < 0.99 and ratios[len(ratios) * 3 // 4] < 1.0


def random_array(type_: TensorType, seed: int) -> Array:
    """Return values that every operator takes: normal ones, and 0 or 1 where they are integers."""
    rng = np.random.default_rng(seed)
    if type_.dtype.startswith("float") or type_.dtype == "bfloat16":
        return rng.standard_normal(type_.shape).astype(type_.dtype)
    return rng.integers(0, 2, type_.shape).astype(type_.dtype)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
