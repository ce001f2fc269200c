"""Times of candidates on a device, interleaved, and whether they compute the right thing.

Every batch has the task's default choice among its candidates.  All are interleaved, so that
whatever slows the device down slows all of them, and a score is the median of a candidate's time
over the default's in the same round: it holds from batch to batch and day to day.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from slipway.errors import RPCError, SlipwayError, TuningError, reason_of
from slipway.inspect.bisect import kernel_reference
from slipway.inspect.difference import difference
from slipway.ir.function import IRModule
from slipway.relay.open_dims import usual_type
from slipway.relay.types import TensorType, flatten
from slipway.rpc.client import RPCSession
from slipway.runtime.devices import Device
from slipway.target import Target
from slipway.tuning.build import KernelJob, kernel_job
from slipway.tuning.builders import Buildable, Builder, BuiltBatch, InLibrary
from slipway.tuning.drift import Condition
from slipway.tuning.runner import Runner
from slipway.tuning.session import Array, MeasuringSession, opened, twice
from slipway.tuning.space import Candidate, Choices
from slipway.tuning.task import TuningTask

TOLERANCES = {"float16": 1e-2, "bfloat16": 4e-2}  # of the largest value; else that of float32
TOLERANCE = 1e-4


@dataclass
class Measured:
    """What a candidate did: its times a run, one a round, or the error that it ended in.

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


class Subject(Buildable, Protocol):
    """What a bench needs to measure the candidates of a task."""

    @property
    def target(self) -> Target:
        """What the functions are compiled for."""

    @property
    def suffix(self) -> str:
        """The ending of a library that the device loads."""

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

    @property
    def target(self) -> Target:
        """The task's."""
        return self.task.target

    @property
    def suffix(self) -> str:
        """The ending of a library of the task's target."""
        return self.task.target.upload_suffix

    @property
    def is_portable(self) -> bool:
        """Whether all strategies are Slipway's: those of a script are in this process alone."""
        homes = (entry.home for entry in self.task.space.strategies.values())
        return all(home.partition(".")[0] == "slipway" for home in homes)

    def job(self, candidates: Sequence[Candidate]) -> KernelJob:
        """Return what compiles candidates into one library."""
        return kernel_job(self.task, candidates)

    def module(self, candidate: Candidate) -> IRModule:
        """Return a candidate's loops as a module with the function "main"."""
        loops = self.job([candidate]).lowered(candidate, "main")
        return IRModule.from_functions({"main": loops})

    def loops(self, candidate: Candidate) -> str:
        """Return what a candidate's loops are known by; SlipwayError where it is refused."""
        loops = self.job([candidate]).lowered(candidate, "main")
        return hashlib.sha256(str(loops).encode()).hexdigest()

    def inputs(self) -> list[TensorType]:
        """Return the types of the kernel's arguments."""
        params = self.task.function.params
        return [t for p in params for t in flatten(usual_type(p.checked_type))]

    def outputs(self) -> list[TensorType]:
        """Return the types of the kernel's results."""
        return flatten(usual_type(self.task.function.body.checked_type))

    def reference(self, inputs: Sequence[Array]) -> list[Array]:
        """Return what the operators are defined to compute."""
        return kernel_reference(self.task.function, inputs)


@dataclass(frozen=True)
class SharedWork:
    """Candidates that one device measures."""

    session: MeasuringSession
    candidates: list[Candidate]


class Bench:
    """Measures candidates of one task on a runner's devices; a context that ends the sessions.

    The candidates of a batch are shared among the devices that are free, and each device measures
    the default beside its share: a score says nothing about the device.
    """

    def __init__(
        self,
        task: Decision,
        subject: Subject,
        runner: Runner,
        folder: Path,
        rounds: int = 9,
        builder: Builder | None = None,
    ) -> None:
        self.task, self.subject, self.runner = task, subject, runner
        self.builder = builder or Builder()
        self.folder, self.rounds = folder, rounds
        self.inputs = [random_array(t, i) for i, t in enumerate(subject.inputs())]
        self._sessions: list[MeasuringSession] = []
        self._wanted: list[Array] | None = None
        self._reference: InLibrary | None = None
        self._number = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exception: object) -> None:
        while self._sessions:
            self._sessions.pop().close()

    def measure(
        self, candidates: Sequence[Candidate], rounds: int = 0, together: bool = False
    ) -> list[Measured]:
        """Measure candidates beside the default, which need not be among them.

        `together`: all on one device, in the same rounds, so that they can be compared.
        Where a device does not survive its share, each of it is tried alone; the one at fault is
        told by that.  Raises TuningError when no session can be had, SlipwayError where the default
        itself cannot be built: nothing can be compared then.
        """
        default = self._default
        batch = [default, *(c for c in candidates if c != default)]
        built = self._built(batch, together)
        if default not in built.functions:  # the seconds for a candidate may be too few here
            found_late = Builder(math.inf).build(self.subject, [default], self._path(), True)
            built.functions |= found_late.functions
        if default not in built.functions:
            raise SlipwayError(f"the default choice of {self.task}: {built.errors[default]}")
        self._reference = built.functions[default]
        errors = {c: text for c, text in built.errors.items() if c not in built.functions}
        found = [Measured(c, kind="build", error=text) for c, text in errors.items()]
        shares = self._shares([c for c in built.functions if c != default], together)
        with ThreadPoolExecutor(len(shares)) as pool:
            measured = list(
                pool.map(lambda share: self._share(built, share, rounds or self.rounds), shares)
            )
        lost: list[tuple[SharedWork, RPCError]] = []
        for share, outcome in zip(shares, measured, strict=True):
            if isinstance(outcome, RPCError):
                lost.append((share, outcome))
                self._lose(share.session)
            else:
                _add(found, outcome)
        for share, error in lost:
            _add(found, self._alone(built, share.candidates or [default], error, rounds))
        return found

    def loops(self, candidate: Candidate) -> str:
        """Return what a candidate's loops are known by; "" where only its library would tell."""
        try:
            return self.subject.loops(candidate) if isinstance(self.subject, KernelSubject) else ""
        except SlipwayError:
            return ""

    @property
    def _default(self) -> Candidate:
        default = self.task.space.default
        assert default is not None
        return default

    def _built(self, candidates: Sequence[Candidate], together: bool) -> BuiltBatch:
        try:
            return self.builder.build(self.subject, candidates, self._path(), together)
        except OSError as error:  # no candidate's fault: the next one would meet it too
            where = error.filename or self.folder
            raise TuningError(
                f"candidates cannot be compiled: {where}: {reason_of(error)}. Temporary files lie "
                "in the folder that TMPDIR names"
            ) from error

    def _path(self) -> Path:
        self._number += 1
        return self.folder / f"{self.task.key}_{self._number}{self.subject.suffix}"

    def _shares(self, candidates: Sequence[Candidate], together: bool) -> list[SharedWork]:
        """Share candidates among the sessions that there are, and those that are free."""
        self._open()  # that there is no device is no candidate's fault
        held = len(self._sessions)
        if not together and len(candidates) > held:
            more = self.runner.open_more(len(candidates) - held, held)
            self._sessions += map(self._begun, more)
        count = 1 if together else max(1, min(len(self._sessions), len(candidates)))
        return [SharedWork(self._sessions[i], list(candidates[i::count])) for i in range(count)]

    def _share(
        self, built: BuiltBatch, share: SharedWork, rounds: int
    ) -> list[Measured] | RPCError:
        """Return what one device measured, or how it was lost."""
        functions = {c: built.functions[c] for c in (self._default, *share.candidates)}
        try:
            times = share.session.times(functions, rounds)
        except RPCError as error:
            return error
        return [scored(c, times[c], times[self._default]) for c in functions]

    def _alone(
        self, built: BuiltBatch, candidates: Sequence[Candidate], error: RPCError, rounds: int
    ) -> list[Measured]:
        """Return what the candidates of a device that was lost do, each by itself.

        One alone has another try, too: devices are lost for reasons of their own.
        """
        found: list[Measured] = []
        for candidate in candidates:
            share = SharedWork(self._open(), [] if candidate == self._default else [candidate])
            outcome = self._share(built, share, rounds or self.rounds)
            if isinstance(outcome, RPCError):
                self._lose(share.session)
                outcome = [Measured(candidate, kind="run", error=error_text(outcome))]
            _add(found, outcome)
        if all(m.kind == "run" for m in found) and not self._add_default(built, found):
            found[0].error = error_text(error)  # no candidate is at fault; the first says why
        return found

    def _add_default(self, built: BuiltBatch, found: list[Measured]) -> bool:
        """Add what the default does by itself, whatever others did; return whether it does it."""
        if any(m.candidate == self._default for m in found):
            return False
        share = SharedWork(self._open(), [])
        outcome = self._share(built, share, self.rounds)
        if isinstance(outcome, RPCError):
            self._lose(share.session)
            return False
        _add(found, outcome)
        return True

    def verify(self, candidate: Candidate) -> str:
        """Return how a candidate's results on the device differ from the reference's; "" if not.

        Raises RPCError when the device is lost twice, TuningError when it contradicts itself: the
        default's results are right in one run and wrong in another.
        """
        built = self._built(list(dict.fromkeys([self._default, candidate])), together=True)
        if candidate in built.errors:
            return built.errors[candidate]
        run, default = built.functions[candidate], built.functions.get(self._default)
        wrong = twice(lambda: next(filter(None, self._differences(run)), ""))
        if wrong and default is not None:
            said = twice(lambda: list(self._differences(default)))
            if any(said) and not all(said):
                raise TuningError(
                    f"{self.runner.device} computes wrong numbers now and then: the default choice "
                    f"of {self.task} was right in {said.count('')} of {len(said)} runs, and else "
                    f"{next(filter(None, said))}. Look at its memory, power and heat; nothing "
                    "that is measured there would hold"
                )
        return wrong

    def _differences(self, function: InLibrary) -> Iterator[str]:
        """Yield how the results of one run after another differ from the reference's."""
        if self._wanted is None:
            self._wanted = self.subject.reference(self.inputs)
        session = self._open()
        try:
            yield from differences(session.results(function), self._wanted)
        except RPCError:
            self._lose(session)
            raise

    def condition(self) -> Condition:
        """Return what the first device says of its heat and clock, the default running.

        Nothing where it is lost, or nothing was measured.
        """
        if not self._sessions or self._reference is None:
            return Condition()
        try:
            return self._sessions[0].condition(self._reference)
        except RPCError:
            return Condition()

    def _open(self) -> MeasuringSession:
        """Return the first session; TuningError when there is none to be had."""
        if not self._sessions:
            self._sessions.append(opened(self.runner, self.task, self._begun))
        return self._sessions[0]

    def _lose(self, session: MeasuringSession) -> None:
        self._sessions.remove(session)
        session.close()

    def _begun(self, session: RPCSession) -> MeasuringSession:
        outputs = [np.zeros(t.shape, t.dtype) for t in self.subject.outputs()]
        kind = Device(self.subject.target.kind.device_type).type_name
        try:
            return MeasuringSession(
                session, self.inputs, outputs, kind, self.runner.is_cold, self._default
            )
        except SlipwayError:
            session.close()
            raise


def kernel_bench(
    task: TuningTask, runner: Runner, folder: Path, rounds: int = 9, builder: Builder | None = None
) -> Bench:
    """Return the bench of a model's kernel."""
    return Bench(task, KernelSubject(task), runner, folder, rounds, builder)


def scored(candidate: Candidate, seconds: list[float], default: Sequence[float]) -> Measured:
    """Return a candidate's times with its score, the default having had `default`."""
    ratios = [mine / theirs for mine, theirs in zip(seconds, default, strict=False)]
    return Measured(candidate, seconds, statistics.median(ratios))


def is_faster(one: Measured, other: Measured) -> bool:
    """Return whether `one` is faster than `other` in a batch that had both, beyond their noise.

    That is: in the median of the rounds by a hundredth, and in three of four rounds.
    """
    ratios = sorted(a / b for a, b in zip(one.seconds, other.seconds, strict=False))
    if not ratios:
        return False
    return statistics.median(ratios) < 0.99 and ratios[len(ratios) * 3 // 4] < 1.0


def random_array(type_: TensorType, seed: int) -> Array:
    """Return values that every operator takes: normal ones, and 0 or 1 where they are integers."""
    rng = np.random.default_rng(seed)
    if type_.dtype.startswith("float") or type_.dtype == "bfloat16":
        return rng.standard_normal(type_.shape).astype(type_.dtype)
    return rng.integers(0, 2, type_.shape).astype(type_.dtype)


def differences(runs: Iterable[Sequence[Array]], wanted: Sequence[Array]) -> Iterator[str]:
    """Yield how the results of each run differ from the reference's, "" where they do not."""
    for number, results in enumerate(runs, start=1):
        found = numeric_difference(results, wanted)
        yield f"in run {number}, {found}" if found and number > 1 else found


def judge(winner: Measured, verify: Callable[[], str]) -> bool:
    """Return whether a winner's results are right; what is wrong is noted in it."""
    try:
        kind, error = "wrong", verify()
    except RPCError as lost:
        kind, error = "run", error_text(lost)
    if error:
        winner.kind, winner.error, winner.score = kind, error, float("inf")
    return not error


def _add(found: list[Measured], more: Iterable[Measured]) -> None:
    """Add what was measured; the default is one candidate, though each device measures it."""
    done = {m.candidate for m in found}
    found += [m for m in more if m.candidate not in done]


def numeric_difference(results: Sequence[Array], wanted: Sequence[Array]) -> str:
    """Return how results differ from the reference's, "" where they do not."""
    for number, (got, right) in enumerate(zip(results, wanted, strict=True)):
        allowed = TOLERANCES.get(str(right.dtype), TOLERANCE)
        found = difference(np.asarray(got), right, allowed)
        if found is not None:
            return (
                f"output {number} is off by {found.error:.3g} at {list(found.index)}: "
                f"{found.got:g}, and the reference has {found.wanted:g}"
            )
    return ""


def error_text(error: Exception) -> str:
    """Return an error as trials keep it."""
    return f"{type(error).__name__}: {error}"
