"""Builders and runners of a script's own, as the engine's: a candidate is a library by itself."""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from slipway.errors import NotAvailableError, SlipwayError, TuningError
from slipway.ir.function import IRModule
from slipway.meta_schedule.arg_info import TensorInfo
from slipway.meta_schedule.builder import Builder, BuilderInput, BuilderResult, LocalBuilder
from slipway.meta_schedule.runner.artifact import ENTRY, Runner, RunnerInput, RunnerResult
from slipway.meta_schedule.utils import remove_build_dir
from slipway.relay.types import TensorType
from slipway.runtime.devices import Device
from slipway.target import Target
from slipway.target.triple import host_triple
from slipway.tuning.builders import Builder as EngineBuilder
from slipway.tuning.builders import BuiltBatch, InLibrary
from slipway.tuning.measure import Bench, Decision, Measured, Subject, error_text, scored
from slipway.tuning.runner import LocalRunner
from slipway.tuning.space import Candidate


class Modular(Subject, Protocol):
    """What has a module of each candidate: a function of loops that takes reads, then writes."""

    def module(self, candidate: Candidate) -> IRModule:
        """Return the module.  Raises SlipwayError for a candidate that is refused."""


def results_of(
    builder: Builder, subject: Any, candidates: Sequence[Candidate]
) -> dict[Candidate, BuilderResult]:
    """Return what a script's builder makes of candidates."""
    found: dict[Candidate, BuilderResult] = {}
    inputs: dict[Candidate, BuilderInput] = {}
    for candidate in candidates:
        try:
            inputs[candidate] = BuilderInput(subject.module(candidate), subject.target)
        except SlipwayError as error:
            found[candidate] = BuilderResult(None, error_text(error))
    if not inputs:
        return found
    results = builder.build(list(inputs.values()))
    if len(results) != len(inputs):
        raise TuningError(
            f"{type(builder).__name__}.build returned {len(results)} results for {len(inputs)} "
            "inputs: it returns a BuilderResult for each"
        )
    return found | dict(zip(inputs, results, strict=True))


class OwnBuilder(EngineBuilder):
    """A builder of a script's own, as the engine's; its libraries are taken over."""

    def __init__(self, builder: Builder) -> None:
        super().__init__()
        self.own = builder
        self._number = 0

    def build(
        self, subject: Any, candidates: Sequence[Candidate], path: Path, together: bool
    ) -> BuiltBatch:
        """Compile each candidate into a library of its own, whatever is `together`."""
        del together
        batch = BuiltBatch()
        for candidate, result in results_of(self.own, subject, candidates).items():
            made = Path(result.artifact_path or "")
            if result.error_msg is not None or result.artifact_path is None:
                batch.errors[candidate] = result.error_msg or "the builder made no library"
            elif not made.is_file():
                batch.errors[candidate] = f"the builder's library {str(made)!r} is not there"
            else:
                self._number += 1
                taken = path.with_name(f"own_{self._number}_{path.stem}{made.suffix}")
                shutil.copyfile(made, taken)
                remove_build_dir(str(made))
                batch.functions[candidate] = InLibrary(taken, ENTRY)
        return batch


@dataclass(frozen=True)
class _Checking(LocalRunner):
    """The machine here, for results; trials are kept by the name of the runner, which has times."""

    name: str = ""

    @property
    def device(self) -> str:
        """The runner's class."""
        return self.name


class TimedBench(Bench):
    """Measures with a script's runner, which gives times alone.

    A winner's results are compared here, from the same steps compiled for this machine
    (`checked`); where there is no such subject, nothing can win, and the bench is refused.
    """

    def __init__(
        self,
        task: Decision,
        subject: Modular,
        checked: Subject,
        runner: Runner,
        folder: Path,
        builder: Builder | None = None,
    ) -> None:
        super().__init__(task, checked, _Checking(name=type(runner).__name__), folder)
        self.timed, self.own, self.maker = subject, runner, builder or LocalBuilder()

    def measure(
        self, candidates: Sequence[Candidate], rounds: int = 0, together: bool = False
    ) -> list[Measured]:
        """Measure candidates and the default; how often each runs, the runner decides."""
        default = self._default
        batch = [default, *(c for c in candidates if c != default)]
        built = results_of(self.maker, self.timed, batch)
        if built[default].artifact_path is None:
            raise SlipwayError(f"the default choice of {self.task}: {built[default].error_msg}")
        found = [
            Measured(c, kind="build", error=r.error_msg or "the builder made no library")
            for c, r in built.items()
            if r.artifact_path is None
        ]
        ran = self._ran({c: r.artifact_path for c, r in built.items() if r.artifact_path})
        beside = ran[default]
        if isinstance(beside, str):
            every = [Measured(c, kind="run", error=beside) for c in ran]
            return [*found, *every]
        for candidate, seconds in ran.items():
            if isinstance(seconds, str):
                found.append(Measured(candidate, kind="run", error=seconds))
            else:
                ratio = statistics.median(seconds) / statistics.median(beside)
                one = scored(candidate, seconds, beside)
                one.score = ratio
                found.append(one)
        return found

    def _ran(self, libraries: dict[Candidate, str]) -> dict[Candidate, list[float] | str]:
        """Return the seconds of each candidate, or why there are none."""
        kind = Device(self.timed.target.kind.device_type).type_name
        args = [_info(t) for t in (*self.timed.inputs(), *self.timed.outputs())]
        inputs = [RunnerInput(path, kind, args) for path in libraries.values()]
        try:
            futures = self.own.run(inputs)
            if len(futures) != len(inputs):
                raise TuningError(
                    f"{type(self.own).__name__}.run returned {len(futures)} futures for "
                    f"{len(inputs)} inputs: it returns one for each"
                )
            return {
                c: _sensible(future.result()) for c, future in zip(libraries, futures, strict=True)
            }
        finally:
            for path in libraries.values():
                remove_build_dir(path)


def _info(type_: TensorType) -> TensorInfo:
    return TensorInfo(type_.dtype, tuple(int(n) for n in type_.shape))


def _sensible(result: RunnerResult) -> list[float] | str:
    """Return the seconds of a result, or what is wrong with it."""
    if result.error_msg is not None:
        return str(result.error_msg)
    seconds = [float(s) for s in result.run_secs or ()]
    if not seconds:
        return "the runner gave no times"
    if not all(0 < s < math.inf for s in seconds):
        return f"the runner says that a run took {min(seconds)} to {max(seconds)} seconds"
    return seconds


def expect_checkable(target: Target, task: object) -> None:
    """Raise NotAvailableError for a kernel whose results could not be compared here."""
    if not target.kind.is_cpu or target.parsed_triple.text != host_triple():
        raise NotAvailableError(
            f"{task} is for {target}, which does not run here, and a PyRunner gives times alone: "
            "the results of a winner could not be compared. A runner with open(), which returns "
            "an RPCSession, has both"
        )
