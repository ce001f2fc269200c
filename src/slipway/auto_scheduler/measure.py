"""How schedules are built and measured (classic), and what is known of one that was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from slipway.auto_scheduler.loop_state import State, StateObject
from slipway.autotvm import measure as engine
from slipway.autotvm.errors import BUILD_ERRORS, MeasureErrorNo
from slipway.autotvm.own_parts import measured
from slipway.classic.placeholders import TUNING, placeholder_of
from slipway.errors import NotAvailableError
from slipway.tuning.records import RunSeconds
from slipway.tuning.schedules.single import (
    Making,
    Measurements,
    Single,
    built,
    of_kernel,
    of_schedule,
)


class MeasureInput:
    """A task and a state of its schedule."""

    def __init__(self, task: Any, state: State | StateObject) -> None:
        self.task = task
        self.state = state.state_object if isinstance(state, State) else state


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """Return the input of a log's line with its computation, which has to be registered.

    With `rebuild_state` its state has the loops with their lengths.  Raises TuningError.
    """
    dag = inp.task.compute_dag
    state = StateObject(dag, tuple(inp.state.transform_steps))
    return MeasureInput(inp.task, dag.infer_bound_from_state(state) if rebuild_state else state)


class MeasureResult(NamedTuple):
    """What came of it: seconds of a run in each round, or the error.

    `score` is the time over that of the schedule that needs no search; `verified` says that the
    results were held against the computation without a schedule; of a result that a script makes
    it is taken to be so.
    """

    costs: list[float]
    error_no: int
    error_msg: str
    all_cost: float
    timestamp: float
    score: float = float("inf")
    verified: bool = True

    def __str__(self) -> str:
        costs = ", ".join(f"{cost:.4g}" for cost in self.costs)
        return (
            f"MeasureResult(cost:[{costs}], error_no:{int(self.error_no)}, "
            f"all_cost:{self.all_cost:.4g}, Tstamp:{self.timestamp:.2f})"
        )


def _result(found: Sequence[Any]) -> MeasureResult:
    costs, error_no, error_msg, all_cost = found
    seconds: list[float] = [RunSeconds(c) for c in costs]
    return MeasureResult(seconds, error_no, error_msg, all_cost, time.time())


@dataclass(frozen=True)
class BuildResult:
    """A library and the tensors of its function; or, with `error_no`, why there is none."""

    filename: str
    args: list[Any] = field(default_factory=list)
    error_no: int = 0
    error_msg: str = ""
    time_cost: float = 0.0


class MeasureCallback:
    """What is told of each batch of a search; a script's own derives from it."""

    def callback(
        self, policy: Any, inputs: list[MeasureInput], results: list[MeasureResult]
    ) -> None:
        """Be told of a batch of a policy's search."""
        raise NotAvailableError(f"{type(self).__name__} has no callback(policy, inputs, results)")


PythonBasedMeasureCallback = MeasureCallback


@dataclass(frozen=True)
class LocalBuilder:
    """Compiles schedules here: in `n_parallel` processes, or in this one where that is None.

    `timeout` is that of a schedule, in a process of its own; `build_func` is kept for scripts that
    read it.
    """

    timeout: float = 15
    n_parallel: int | None = None
    build_func: str = "default"

    @cached_property
    def option(self) -> engine.LocalBuilder:
        """It as the engine's."""
        return engine.LocalBuilder(self.timeout, self.n_parallel)

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """Compile the state of each input, here, into a library that is the caller's."""
        del verbose
        found = []
        for inp in measure_inputs:
            one = built(_making(inp), inp.task.target, self.timeout)
            number = int(BUILD_ERRORS[one.kind])
            found.append(BuildResult(one.path, one.args, number, one.error, one.seconds))
        return found


def _library(made: BuildResult) -> Single:
    """Return what was built as the engine has it."""
    kind = next((k for k, no in BUILD_ERRORS.items() if no == made.error_no), "build")
    return Single(made.filename, made.args, kind, made.error_msg, made.time_cost)


def _making(inp: MeasureInput) -> Making:
    """Return what makes the module of an input."""

    def of_state() -> tuple[Any, list[Any]]:
        schedule, args = inp.task.compute_dag.apply_steps_from_state(inp.state)
        return of_schedule(schedule, args, inp.task.target)

    chosen = inp.state.candidate
    if inp.task.kernel is None or chosen is None:
        return of_state
    return partial(of_kernel, inp.task.kernel.kernel, chosen)


class _Measuring:
    """What measures libraries that a script built."""

    repeat: int

    def option(self, builder: LocalBuilder) -> engine.MeasureOption:
        """Return it, and a builder, as the engine's."""
        raise NotImplementedError

    def run(
        self,
        measure_inputs: Sequence[MeasureInput],
        build_results: Sequence[BuildResult],
        verbose: int = 1,
    ) -> list[MeasureResult]:
        """Measure what was built, `repeat` times, and compare its results with the computation's.

        How often it runs each time follows from how long it takes.
        """
        del verbose
        measurements = Measurements(self.option(LocalBuilder()).engine_runner, self.repeat)
        return [
            _result(measured(measurements, inp.task, _library(made)))
            for inp, made in zip(measure_inputs, build_results, strict=True)
        ]


@dataclass(frozen=True)
class LocalRunner(_Measuring):
    """Measures here, in a process of its own; `timeout` is that of one call.

    A schedule is measured in rounds with the one that needs no search; how often one runs follows
    from its time.  With `enable_cpu_cache_flush` it finds its weights in no cache before each run.
    The other fields are kept for scripts that read them.
    """

    timeout: float = 10
    number: int = 3
    repeat: int = 1
    min_repeat_ms: float = 100
    cooldown_interval: float = 0.0
    enable_cpu_cache_flush: bool = False
    device: int = 0

    def option(self, builder: LocalBuilder) -> engine.MeasureOption:
        """Return it, and a builder, as the engine's."""
        runner = engine.LocalRunner(
            self.timeout, repeat=self.repeat, enable_cpu_cache_flush=self.enable_cpu_cache_flush
        )
        return engine.measure_option(builder.option, runner)


@dataclass(frozen=True)
class RPCRunner(_Measuring):
    """Measures on `n_parallel` devices of kind `key` of the tracker at `host`:`port`."""

    key: str
    host: str
    port: int
    priority: int = 1
    n_parallel: int = 1
    timeout: float = 10
    number: int = 3
    repeat: int = 1
    min_repeat_ms: float = 100
    cooldown_interval: float = 0.0
    enable_cpu_cache_flush: bool = False
    device: int = 0

    def option(self, builder: LocalBuilder) -> engine.MeasureOption:
        """Return it, and a builder, as the engine's."""
        return engine.measure_option(
            builder.option,
            engine.RPCRunner(
                self.key,
                self.host,
                self.port,
                self.priority,
                self.timeout,
                self.n_parallel,
                repeat=self.repeat,
                enable_cpu_cache_flush=self.enable_cpu_cache_flush,
            ),
        )


class LocalRPCMeasureContext:
    """A runner on this machine whose candidates run in a process of their own.

    The arguments are those of `LocalRunner`, and a `priority` that says nothing here.
    """

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        del priority, n_parallel
        self.runner = LocalRunner(
            timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush,
            device,
        )  # fmt: skip


ProgramBuilder, ProgramRunner = LocalBuilder, LocalRunner | RPCRunner
__all__ = [
    "BuildResult", "LocalBuilder", "LocalRPCMeasureContext", "LocalRunner", "MeasureCallback",
    "MeasureErrorNo", "MeasureInput", "PythonBasedMeasureCallback",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
