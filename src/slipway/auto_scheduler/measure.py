"""How schedules are built and measured (classic), and what is known of one that was."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from slipway.auto_scheduler.loop_state import State, StateObject
from slipway.autotvm import measure as engine

MeasureErrorNo = engine.MeasureErrorNo


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


@dataclass(frozen=True)
class LocalRunner:
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
class RPCRunner:
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
    "LocalBuilder", "LocalRPCMeasureContext", "LocalRunner", "MeasureErrorNo", "MeasureInput",
]  # fmt: skip
