"""One candidate built, and one library measured, by itself: what classic scripts do in loops.

A search does not come this way: it measures candidates beside each other.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TimedOut
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from slipway import te
from slipway.compiler.driver import build
from slipway.errors import SlipwayError
from slipway.runtime.devices import Device
from slipway.target import Target
from slipway.te.operation import PlaceholderOp
from slipway.tuning.builders import Builder, InLibrary
from slipway.tuning.measure import Bench, KernelSubject, differences, error_text
from slipway.tuning.runner import Runner
from slipway.tuning.session import MeasuringSession
from slipway.tuning.space import Candidate
from slipway.tuning.task import TuningTask

NAME = "main"
FOLDER = "slipway-single-"

# What makes a candidate's module, and the tensors or types of its function's arguments.
Making = Callable[[], tuple[Any, list[Any]]]


class Measurable(Protocol):
    """A task, as far as a measurement asks it."""

    @property
    def key(self) -> str:
        """What it is found by."""

    @property
    def target(self) -> Target:
        """What it is compiled for."""

    def bench(
        self, runner: Runner, folder: Path, rounds: int, builder: Builder | None = None
    ) -> Bench:
        """Return what measures its candidates."""


@dataclass(frozen=True)
class Single:
    """A library, the arguments of its function "main"; or why there is none.

    `kind` is "", "build" or "build time"; `seconds` is what it took.
    """

    path: str
    args: list[Any] = field(default_factory=list)
    kind: str = ""
    error: str = ""
    seconds: float = 0.0


def of_schedule(schedule: te.Schedule, args: list[Any], target: Target) -> tuple[Any, list[Any]]:
    """Return the module of a schedule, whose function takes what is read first."""
    ordered = sorted(args, key=lambda t: not isinstance(t.op, PlaceholderOp))
    return build(schedule, ordered, target=target, name=NAME), ordered


def of_kernel(task: TuningTask, candidate: Candidate) -> tuple[Any, list[Any]]:
    """Return the module of a choice for a kernel of a model."""
    subject = KernelSubject(task)
    args: list[Any] = [*subject.inputs(), *subject.outputs()]
    return build(subject.module(candidate), target=task.target), args


def built(making: Making, target: Target, timeout_s: float) -> Single:
    """Make a library in a folder of its own, which is the caller's, in so many seconds at most."""
    start = time.perf_counter()
    pool = ThreadPoolExecutor(1)  # a thread alone: what is registered here stays known

    def library() -> tuple[Path, list[Any]]:
        module, args = making()
        folder = Path(tempfile.mkdtemp(prefix=FOLDER))
        try:
            path = folder / f"{folder.name}{target.upload_suffix}"
            module.export_library(str(path))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return path, args

    def spent() -> float:
        return time.perf_counter() - start

    try:
        path, args = pool.submit(copy_context().run, library).result(timeout_s)
        return Single(str(path), args, seconds=spent())
    except TimedOut:
        said = f"it took longer than {timeout_s} seconds"
        return Single("", [], "build time", said, spent())
    except SlipwayError as error:
        return Single("", [], "build", error_text(error), spent())
    finally:
        pool.shutdown(wait=False)


class Measurements:
    """Measures libraries on a runner's devices, `rounds` times each.

    Results are compared with those of the computation without a schedule, which are made once for
    a task.  `prepare` may give a bench other values of the inputs.
    """

    def __init__(
        self, runner: Runner, rounds: int, prepare: Callable[[Bench], None] | None = None
    ) -> None:
        self._runner, self._rounds, self._prepare = runner, rounds, prepare
        self._wanted: dict[str, Any] = {}

    def seconds(self, task: Measurable, path: Path) -> tuple[list[float], str]:
        """Return the seconds of a run in each round, and how the results differ, "" if not.

        What computes something else has no seconds.  The library stays where it is.  Raises
        RPCError for a device that is lost.
        """
        with tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
            bench = task.bench(self._runner, Path(folder), self._rounds)
            if self._prepare is not None:
                self._prepare(bench)
            subject, inputs = bench.subject, bench.inputs
            if task.key not in self._wanted:
                self._wanted[task.key] = subject.reference(inputs)
            outputs = [np.zeros(t.shape, t.dtype) for t in subject.outputs()]
            kind = Device(task.target.kind.device_type).type_name
            function, one = InLibrary(path, NAME), Candidate("", ())
            session = MeasuringSession(
                self._runner.open(), inputs, outputs, kind, self._runner.is_cold
            )
            try:
                found = differences(session.results(function), self._wanted[task.key])
                wrong = next(filter(None, found), "")
                if wrong:
                    return [], wrong
                return session.times({one: function}, self._rounds)[one], ""
            finally:
                session.close()
