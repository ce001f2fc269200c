"""Runners (classic): where candidates are measured."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from slipway.errors import TuningError
from slipway.rpc.client import RPCSession
from slipway.tuning.runner import LocalRunner as _Here
from slipway.tuning.runner import TrackerRunner


@dataclass(frozen=True)
class EvaluatorConfig:
    """How often a candidate runs (classic); here rounds are measured until they are told apart.

    With `enable_cpu_cache_flush` a kernel finds its weights in no cache before each run.  The other
    values are kept for scripts that read them.
    """

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False


@dataclass(frozen=True)
class RPCConfig:
    """A tracker, and the key of the devices to measure on; the environment fills what is left out.

    `session_timeout_sec` is how long one call on the device may take.
    """

    tracker_host: str | None = None
    tracker_port: int | None = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: float = 10.0

    def checked(self) -> RPCConfig:
        """Return it with TVM_TRACKER_HOST, _PORT and _KEY in place of what was left out.

        Raises TuningError when one is missing there too.
        """
        found = {
            "tracker_host": self.tracker_host or os.environ.get("TVM_TRACKER_HOST"),
            "tracker_port": self.tracker_port or os.environ.get("TVM_TRACKER_PORT"),
            "tracker_key": self.tracker_key or os.environ.get("TVM_TRACKER_KEY"),
        }
        for name, value in found.items():
            if not value:
                raise TuningError(f"RPCConfig needs {name}, or TVM_{name.upper()} set")
        return RPCConfig(
            str(found["tracker_host"]), int(str(found["tracker_port"])), str(found["tracker_key"]),
            self.session_priority, self.session_timeout_sec,
        )  # fmt: skip


@dataclass(frozen=True)
class LocalRunner:
    """Measures on this machine, in a process that a candidate may crash."""

    timeout_sec: float = 30.0
    evaluator_config: EvaluatorConfig = field(default_factory=EvaluatorConfig)

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


@dataclass(frozen=True)
class RPCRunner:
    """Measures on devices that a tracker hands out: `max_workers` at once, None: all free ones."""

    rpc_config: RPCConfig = field(default_factory=RPCConfig)
    evaluator_config: EvaluatorConfig = field(default_factory=EvaluatorConfig)
    max_workers: int | None = None

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
