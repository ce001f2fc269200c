"""How trials are built and measured (classic), and what a callback is told of one."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

from slipway.errors import SlipwayError, TuningError
from slipway.meta_schedule.runner import RPCConfig
from slipway.rpc.client import RPCSession
from slipway.rpc.tracker_client import connect_tracker
from slipway.target import Target
from slipway.tuning.builders import Builder, local_builder
from slipway.tuning.runner import LocalRunner as _Here
from slipway.tuning.runner import Runner, TrackerRunner


class MeasureErrorNo(IntEnum):
    """How a trial ended."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


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


@dataclass(frozen=True)
class LocalBuilder:
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
    def builder(self) -> Builder:
        """It as the engine's; its processes end with this object."""
        return local_builder(self.n_parallel or 1, self.timeout)


@dataclass(frozen=True)
class LocalRunner:
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

    def runner(self) -> Runner:
        """Return it as the engine's."""
        return _Here(self.timeout, self.enable_cpu_cache_flush)


@dataclass(frozen=True)
class RPCRunner:
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

    def runner(self) -> Runner:
        """Return it as the engine's; the environment says which tracker where nothing else does."""
        known = RPCConfig(self.host, self.port, self.key, self.priority, self.timeout).checked()
        return TrackerRunner(
            str(known.tracker_host), int(known.tracker_port or 0), self.key, self.timeout,
            self.priority, self.n_parallel or 0, is_cold=self.enable_cpu_cache_flush,
        )  # fmt: skip


@dataclass(frozen=True)
class MeasureOption:
    """A builder and a runner."""

    builder: LocalBuilder
    runner: LocalRunner | RPCRunner

    @property
    def rounds(self) -> int:
        """How many rounds the candidates of a batch run."""
        return max(9, self.runner.repeat)


def measure_option(
    builder: LocalBuilder | str = "local", runner: LocalRunner | RPCRunner | str = "local"
) -> MeasureOption:
    """Return how to measure; "local" stands for the builder and the runner of this machine."""
    return MeasureOption(
        LocalBuilder() if builder == "local" else _checked(builder, (LocalBuilder,), "builder"),
        LocalRunner()
        if runner == "local"
        else _checked(runner, (LocalRunner, RPCRunner), "runner"),
    )


def _checked(given: Any, kinds: Sequence[type], what: str) -> Any:
    if not isinstance(given, tuple(kinds)):
        raise TuningError(
            f"measure_option takes as {what} 'local' or one of "
            f"{', '.join('autotvm.' + k.__name__ for k in kinds)}, not {given!r}"
        )
    return given


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
    where = host or os.environ.get("TVM_TRACKER_HOST", "127.0.0.1")
    number = int(port or os.environ.get("TVM_TRACKER_PORT", "9190"))
    tracker = connect_tracker(where, number)
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
