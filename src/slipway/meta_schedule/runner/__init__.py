"""Runners (classic): where candidates are measured.

A script may measure by itself: ``LocalRunner().run([RunnerInput(path, "cpu", args_info)])``.  A
runner of its own derives from `PyRunner`; a search then measures with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from slipway.arguments import COMMON, explain_all
from slipway.errors import ArgumentValueError
from slipway.meta_schedule.runner.artifact import (
    PyRunner,
    PyRunnerFuture,
    Runner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
    futures_of,
    run_on,
)
from slipway.meta_schedule.runner.config import EvaluatorConfig, RPCConfig
from slipway.meta_schedule.runner.local_runner import LocalSteps
from slipway.meta_schedule.runner.rpc_runner import RemoteSteps, Step
from slipway.rpc.client import RPCSession
from slipway.runtime.packed_func import replacing_functions
from slipway.tuning.runner import LocalRunner as _Here
from slipway.tuning.runner import TrackerRunner

__all__ = [
    "EvaluatorConfig", "LocalRunner", "PyRunner", "PyRunnerFuture", "RPCConfig", "RPCRunner",
    "Runner", "RunnerFuture", "RunnerInput", "RunnerResult", "create",
]  # fmt: skip


class _Initialized:
    """Calls a function of the script's when it is made."""

    initializer: Callable[[], object] | None

    def __post_init__(self) -> None:
        """Call the initializer."""
        if self.initializer is not None:
            with replacing_functions():
                self.initializer()


@dataclass(frozen=True)
class LocalRunner(_Initialized, Runner):
    """Measures on this machine, in a process that a candidate may crash.

    `initializer` is called once, here, and may register functions; `cooldown_sec` is kept for
    scripts that read it.  Functions in place of the steps of a run (`local_runner`) have it run in
    this process, and give times alone, as a `PyRunner` does.
    """

    timeout_sec: float = 30.0
    evaluator_config: EvaluatorConfig = field(default_factory=EvaluatorConfig)
    cooldown_sec: float = 0.0
    alloc_repeat: int = 1
    f_alloc_argument: Step | str | None = field(default=None, compare=False)
    f_run_evaluator: Step | str | None = field(default=None, compare=False)
    f_cleanup: Step | str | None = field(default=None, compare=False)
    initializer: Callable[[], object] | None = field(default=None, compare=False)

    def _here(self) -> _Here:
        return _Here(self.timeout_sec, self.is_cold)

    @property
    def is_cold(self) -> bool:
        """Whether the evaluator's configuration says so."""
        return self.evaluator_config.enable_cpu_cache_flush

    @property
    def device(self) -> str:
        """What the device is called in a database."""
        return self._here().device

    def open(self) -> RPCSession:
        """Start a process of this session's own."""
        return self._here().open()

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """There is one device."""
        return self._here().open_more(most, held)

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Measure libraries, each when its result is wanted."""
        steps = self.steps
        if not steps:
            return run_on(self.open, runner_inputs, self.evaluator_config, "LocalRunner")

        def seconds(one: RunnerInput) -> list[float]:
            config, repeats = self.evaluator_config, self.alloc_repeat
            return steps.seconds(one, config, repeats, self.timeout_sec)

        return futures_of(seconds, runner_inputs, "LocalRunner")

    @property
    def steps(self) -> LocalSteps:
        """The script's functions."""
        return LocalSteps(self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup)


@dataclass(frozen=True)
class RPCRunner(_Initialized, Runner):
    """Measures on devices that a tracker hands out: `max_workers` at once, None: all free ones.

    `initializer` is called once, here; `cooldown_sec` is kept for scripts.  With functions in place
    of the steps of a run (`rpc_runner`) it gives times alone, as a `PyRunner` does.
    """

    rpc_config: RPCConfig = field(default_factory=RPCConfig)
    evaluator_config: EvaluatorConfig = field(default_factory=EvaluatorConfig)
    max_workers: int | None = None
    cooldown_sec: float = 0.0
    alloc_repeat: int = 1
    f_create_session: Step | str | None = field(default=None, compare=False)
    f_upload_module: Step | str | None = field(default=None, compare=False)
    f_alloc_argument: Step | str | None = field(default=None, compare=False)
    f_run_evaluator: Step | str | None = field(default=None, compare=False)
    f_cleanup: Step | str | None = field(default=None, compare=False)
    initializer: Callable[[], object] | None = field(default=None, compare=False)

    def _tracker(self) -> TrackerRunner:
        config = self.rpc_config.checked()
        assert config.tracker_host is not None
        assert config.tracker_port is not None
        assert config.tracker_key is not None
        return TrackerRunner(
            config.tracker_host, config.tracker_port, config.tracker_key,
            config.session_timeout_sec, config.session_priority, self.max_workers or 0,
            is_cold=self.is_cold,
        )  # fmt: skip

    @property
    def is_cold(self) -> bool:
        """Whether the evaluator's configuration says so."""
        return self.evaluator_config.enable_cpu_cache_flush

    @property
    def device(self) -> str:
        """The kind of device."""
        return self._tracker().device

    def open(self) -> RPCSession:
        """Wait for a device."""
        return self._tracker().open()

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """Take devices that nobody waits for."""
        return self._tracker().open_more(most, held)

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Measure libraries, each when its result is wanted."""
        steps = self.steps
        if not steps:
            return run_on(self.open, runner_inputs, self.evaluator_config, "RPCRunner")

        def seconds(one: RunnerInput) -> list[float]:
            return steps.seconds(one, self.rpc_config, self.evaluator_config, self.alloc_repeat)

        return futures_of(seconds, runner_inputs, "RPCRunner")

    @property
    def steps(self) -> RemoteSteps:
        """The script's functions."""
        return RemoteSteps(
            self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup,
            self.f_create_session, self.f_upload_module,
        )  # fmt: skip


def gives_times_alone(runner: object) -> TypeGuard[Runner]:
    """Return whether a runner measures by itself, and has no session with results."""
    return isinstance(runner, PyRunner) or bool(getattr(runner, "steps", None))


def create(kind: object = "local", *args: Any, **kwargs: Any) -> Runner:
    """Return a runner: itself, "local" or "rpc"."""
    if isinstance(kind, Runner):
        return kind
    kinds = {"local": LocalRunner, "rpc": RPCRunner}
    if kind not in kinds:
        raise ArgumentValueError(f"there is no runner {kind!r}; it is 'local' or 'rpc'")
    if kind == "local":
        kwargs.pop("max_workers", None)
    made: Runner = kinds[str(kind)](*args, **kwargs)
    return made


explain_all(globals(), __all__, COMMON)
