"""How trials are built and measured (classic), and what a callback is told of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from slipway.autotvm.errors import BUILD_ERRORS, MeasureErrorNo
from slipway.autotvm.own_parts import (
    Builder,
    BuildResult,
    OwnBench,
    Runner,
    give_inputs,
    libraries_of,
    measured,
    remove_built,
)
from slipway.errors import SlipwayError, TuningError
from slipway.meta_schedule.runner import RPCConfig
from slipway.meta_schedule.runner.own_bench import expect_checkable
from slipway.rpc.addresses import tracker_of_environment
from slipway.rpc.client import RPCSession
from slipway.rpc.tracker_client import connect_tracker
from slipway.target import Target
from slipway.tuning.builders import Builder as EngineBuilder
from slipway.tuning.builders import local_builder
from slipway.tuning.measure import Bench
from slipway.tuning.runner import LocalRunner as _Here
from slipway.tuning.runner import Runner as EngineRunner
from slipway.tuning.runner import TrackerRunner
from slipway.tuning.schedules.single import Measurements, Single


class MeasureInput(NamedTuple):
    """What was tried."""

    target: Target
    task: Any
    config: Any


class MeasureResult(NamedTuple):
    """What came of it: the seconds of a run in each round, or the error's text.

    `score` is the time over the default's; `verified` says that its results were held against the
    reference, as those are that become the best; of one that a script makes it is taken to be so.
    """

    costs: tuple[Any, ...]
    error_no: int
    all_cost: float
    timestamp: float
    score: float = float("inf")
    verified: bool = True


@dataclass(eq=False)
class LocalBuilder(Builder):
    """Compiles candidates here: in `n_parallel` processes, or in this one where that is None.

    `timeout` is that of a candidate (in this process: of LLVM for it); the other fields are classic
    TVM's, kept for scripts that read them.
    """

    timeout: float = 10.0
    n_parallel: int | None = None
    build_kwargs: dict[str, Any] | None = None
    build_func: str = "default"
    do_fork: bool = False
    runtime: Any = None

    @cached_property
    def builder(self) -> EngineBuilder:
        """It as the engine's; its processes end with this object."""
        return local_builder(self.n_parallel or 1, self.timeout)

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[BuildResult]:
        """Compile each input, here, into a library in a folder of its own, the caller's."""
        return libraries_of(measure_inputs, self.timeout)


class _Measuring(Runner):
    """What measures libraries that a script built.

    `ref_input` are values of the inputs, or of all arguments, where random ones mean nothing.
    """

    repeat: int
    ref_input: Sequence[Any] | None = None

    def runner(self) -> EngineRunner:
        """Return it as the engine's."""
        raise NotImplementedError

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]
    ) -> list[MeasureResult]:
        """Measure what was built, `repeat` times, and compare its results with the computation's.

        How often it runs each time follows from how long it takes.
        """
        measurements = Measurements(self.runner(), self.repeat, self.prepare)
        found = []
        for inp, made in zip(measure_inputs, build_results, strict=True):
            kind = next((k for k, no in BUILD_ERRORS.items() if no == made.error_no), "build")
            library = Single(
                made.filename, list(made.arg_info), kind if made.error else "", made.error or "",
                made.time_cost,
            )  # fmt: skip
            costs, number, text, spent = measured(measurements, inp.task, library)
            found.append(MeasureResult(tuple(costs) or (text,), number, spent, time.time()))
        return found

    def prepare(self, bench: Bench) -> None:
        """Let a bench run candidates with the values given."""
        if self.ref_input is not None:
            give_inputs(bench, self.ref_input)


@dataclass(eq=False)
class LocalRunner(_Measuring):
    """Measures on this machine, in a process of its own; `timeout` is that of one call.

    A trial runs in `repeat` rounds with the default choice, nine at least; how often in a round
    follows from its time.  With `enable_cpu_cache_flush` it finds its weights in no cache before
    each run.  The other fields are kept for scripts that read them.
    """

    timeout: float = 10.0
    number: int = 4
    repeat: int = 3
    min_repeat_ms: int = 0
    cooldown_interval: float = 0.1
    enable_cpu_cache_flush: bool = False
    module_loader: Any = None

    def runner(self) -> EngineRunner:
        """Return it as the engine's."""
        return _Here(self.timeout, self.enable_cpu_cache_flush)


@dataclass(eq=False)
class RPCRunner(_Measuring):
    """Measures on the devices of kind `key` that the tracker at `host`:`port` hands out.

    `n_parallel` of them at once; None: all that are free.
    """

    key: str
    host: str | None = None
    port: int | None = None
    priority: int = 1
    timeout: float = 10.0
    n_parallel: int | None = None
    number: int = 4
    repeat: int = 3
    min_repeat_ms: int = 0
    cooldown_interval: float = 0.1
    enable_cpu_cache_flush: bool = False
    module_loader: Any = None

    def runner(self) -> EngineRunner:
        """Return it as the engine's; the environment says which tracker where nothing else does."""
        known = RPCConfig(self.host, self.port, self.key, self.priority, self.timeout).checked()
        return TrackerRunner(
            str(known.tracker_host), int(known.tracker_port or 0), self.key, self.timeout,
            self.priority, self.n_parallel or 0, is_cold=self.enable_cpu_cache_flush,
        )  # fmt: skip


@dataclass(frozen=True)
class MeasureOption:
    """A builder and a runner."""

    builder: Builder
    runner: Runner

    @property
    def rounds(self) -> int:
        """How many rounds the candidates of a batch run."""
        return max(9, int(getattr(self.runner, "repeat", 1)))

    @property
    def engine_runner(self) -> EngineRunner:
        """The runner as the engine's; beside one of the script's, that of this machine."""
        ours = self.runner if isinstance(self.runner, _Measuring) else LocalRunner()
        return ours.runner()

    @property
    def is_own(self) -> bool:
        """Whether a builder or a runner of the script's takes part."""
        engines = isinstance(self.builder, LocalBuilder) and isinstance(self.runner, _Measuring)
        return not engines

    def bench(self, task: Any, folder: Path) -> Bench:
        """Return what measures candidates of a task, which are built in a folder."""
        builder, runner = self.builder, self.runner
        made = builder if isinstance(builder, LocalBuilder) else LocalBuilder()
        bench: Bench = task.bench(self.engine_runner, folder, self.rounds, made.builder)
        if isinstance(runner, _Measuring):
            runner.prepare(bench)
        if not self.is_own:
            return bench
        expect_checkable(task.target, task)
        return OwnBench(
            bench, builder, runner, lambda c: MeasureInput(task.target, task, task.config_of(c))
        )

    def __getitem__(self, name: str) -> Builder | Runner:
        """Return the builder or the runner by name, as of a dictionary."""
        parts: dict[str, Builder | Runner] = {"builder": self.builder, "runner": self.runner}
        return parts[name]


def measure_option(
    builder: Builder | str = "local", runner: Runner | str = "local"
) -> MeasureOption:
    """Return how to measure; "local" stands for the builder and the runner of this machine."""
    return MeasureOption(
        LocalBuilder() if builder == "local" else _checked(builder, Builder, "LocalBuilder"),
        LocalRunner() if runner == "local" else _checked(runner, Runner, "LocalRunner, RPCRunner"),
    )


def _checked(given: Any, kind: type, known: str) -> Any:
    if not isinstance(given, kind):
        raise TuningError(
            f"measure_option takes as {kind.__name__.lower()} 'local', {known} or what derives "
            f"from autotvm.measure.{kind.__name__}, not {given!r}"
        )
    return given


def create_measure_batch(
    task: Any, option: MeasureOption
) -> Callable[[Sequence[MeasureInput]], list[MeasureResult]]:
    """Return a function that builds and measures inputs of a task, each by itself."""
    builder, runner = option.builder, option.runner
    runner.set_task(task)
    builder.set_task(task, runner.get_build_kwargs())

    def measure_batch(measure_inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        built = builder.build(measure_inputs)
        try:
            return runner.run(measure_inputs, built)
        finally:
            for one in built:
                remove_built(getattr(one, "filename", ""))

    return measure_batch


def request_remote(
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 1,
    timeout: float = 60,
) -> RPCSession:
    """Return a session on a device of a tracker; the environment says which where it is left out.

    The variables are TVM_TRACKER_HOST and TVM_TRACKER_PORT.  Raises RPCError where none is free.
    """
    tracker = connect_tracker(*tracker_of_environment(host, port))
    return tracker.request(device_key, priority=priority, session_timeout=timeout)


def check_remote(
    target: Target | str,
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 100,
    timeout: float = 10,
) -> bool:
    """Return whether a tracker gives a device that `target` runs on within `timeout` seconds."""
    found: list[bool] = []

    def request() -> None:
        try:
            session = request_remote(device_key, host, port, priority)
            kind = Target(target).kind.name
            found.append(bool(session.device("cpu" if kind in ("llvm", "c") else kind, 0).exist))
            session.close()
        except SlipwayError:
            found.append(False)

    thread = threading.Thread(target=request, daemon=True)
    thread.start()
    thread.join(timeout)
    return bool(found and found[0])


__all__ = [
    "BuildResult", "Builder", "LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput",
    "MeasureOption", "MeasureResult", "RPCRunner", "Runner", "check_remote",
    "create_measure_batch", "measure_option", "request_remote",
]  # fmt: skip
