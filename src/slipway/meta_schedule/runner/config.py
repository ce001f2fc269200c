"""What a runner is told (classic): how often candidates run, and the tracker of their devices."""

from __future__ import annotations

import os
from dataclasses import dataclass

from slipway.errors import TuningError
from slipway.rpc.client import RPCSession
from slipway.rpc.tracker_client import TrackerSession, connect_tracker


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

    def connect_tracker(self) -> TrackerSession:
        """Return a connection to the tracker."""
        known = self.checked()
        return connect_tracker(str(known.tracker_host), int(known.tracker_port or 0))

    def connect_server(self) -> RPCSession:
        """Return a session on a device of the key.  Raises RPCError where there is none."""
        known = self.checked()
        return known.connect_tracker().request(
            str(known.tracker_key), priority=known.session_priority,
            session_timeout=known.session_timeout_sec,
        )  # fmt: skip

    def count_num_servers(self, allow_missing: bool = False) -> int:
        """Return how many devices of the key the tracker knows.

        Raises TuningError for none, unless `allow_missing`.
        """
        known = self.checked()
        with known.connect_tracker() as tracker:
            servers = tracker.summary()["server_info"]
        keys = [str(one["key"]).removeprefix("server:") for one in servers]
        found = keys.count(str(known.tracker_key))
        if not found and not allow_missing:
            raise TuningError(
                f"the tracker at {known.tracker_host}:{known.tracker_port} knows no device "
                f"{known.tracker_key!r}; it has: {', '.join(sorted(set(keys))) or 'none'}"
            )
        return found

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
