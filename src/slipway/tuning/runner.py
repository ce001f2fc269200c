"""Where candidates run: a process of its own on this machine, or devices over RPC."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from slipway.errors import RPCConnectionError, RPCError, ToolchainError, did_you_mean
from slipway.libinfo import find_js_path
from slipway.rpc.client import CONNECT_TIMEOUT_S, RPCSession, connect
from slipway.rpc.local import PopenSession
from slipway.rpc.modelled import ModelledSession
from slipway.rpc.tracker_client import REQUEST_TIMEOUT_S, TrackerSession, connect_tracker
from slipway.toolchain.web_runtime import web_device

FREE_S = 2.0  # how long a device that was free a moment ago is waited for
COMING_S = 15.0  # how long the first device of a kind that the tracker does not know
BACK_S = 120.0  # how long one that was there before, and perhaps starts again
PAUSE_S = 0.5  # between two looks


_AT_WORK: ContextVar[str] = ContextVar("what devices are asked for", default="")


@contextmanager
def at_work(on: str) -> Iterator[None]:
    """Let the tracker's page say what the devices that the block asks for are at work on."""
    token = _AT_WORK.set(on)
    try:
        yield
    finally:
        _AT_WORK.reset(token)


class Runner(Protocol):
    """Opens sessions on the device that is tuned for."""

    @property
    def device(self) -> str:
        """What the device is called in a database: trials of another one are not its own."""

    @property
    def is_cold(self) -> bool:
        """Whether a kernel finds its weights in no cache before each run."""

    def open(self) -> RPCSession:
        """Return a fresh session; RPCError when there is none to be had."""

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """Return sessions on other devices that are free now, `most` at most; `held` are open."""


@dataclass(frozen=True)
class LocalRunner:
    """A process of its own here, which a candidate may crash; `timeout_s` for one call."""

    timeout_s: float = 10.0
    is_cold: bool = False

    @property
    def device(self) -> str:
        """What stands for the machine, whichever it is."""
        return _named("local", self.is_cold)

    def open(self) -> RPCSession:
        """Start a server of this session's own."""
        return _limited(PopenSession(), self.timeout_s)

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """There is one device."""
        del most, held
        return []


@dataclass(frozen=True)
class ModelledRunner:
    """An AArch64 core that QEMU and a model of it play (`toolchain.core_clock`): no device."""

    core: str
    timeout_s: float = 300.0

    @property
    def is_cold(self) -> bool:
        """Nothing is flushed."""
        return False

    @property
    def device(self) -> str:
        """The core, which is none that anybody has."""
        return f"modelled {self.core}"

    @property
    def target(self) -> str:
        """What is compiled for the core."""
        return f"llvm -mtriple=aarch64-linux-gnu -mcpu={self.core}"

    def open(self) -> RPCSession:
        """Start an emulator."""
        return _limited(ModelledSession(self.core), self.timeout_s)

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """Start as many as there are processors here: the model's clock stands while one waits."""
        count = min(most, (os.cpu_count() or 1) - held)
        return [self.open() for _ in range(count)]


# Without V8's first compiler: its code is several times as slow, and runs until the second one is
# through, which on a busy machine lasts longer than a batch.
STEADY = "--no-liftoff"


@dataclass(frozen=True)
class NodeRunner:
    """WebAssembly in node on this machine: V8, the engine of Chromium, its optimised code."""

    timeout_s: float = 30.0

    @property
    def is_cold(self) -> bool:
        """Nothing is flushed."""
        return False

    @property
    def device(self) -> str:
        """The engine."""
        return "node"

    @property
    def target(self) -> str:
        """What is compiled for it."""
        return "web/wasm-simd"

    def open(self) -> RPCSession:
        """Start node.  Raises ToolchainError where it is missing."""
        node = shutil.which("node")
        if node is None:
            raise ToolchainError("node is not installed; on Debian: apt-get install nodejs")
        command = [node, STEADY, f"{find_js_path()[0]}/device/stdio.mjs", str(web_device())]
        return _limited(PopenSession(command, is_quiet=True), self.timeout_s)

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """There is one machine."""
        del most, held
        return []


@dataclass(frozen=True)
class DeviceRunner:
    """The device server at `host`:`port`."""

    host: str
    port: int = 9090
    key: str = ""
    timeout_s: float = 10.0
    connect_s: float = CONNECT_TIMEOUT_S
    is_cold: bool = False
    _met: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def device(self) -> str:
        """Its kind where it has a key, else its address."""
        return _named(self.key or f"{self.host}:{self.port}", self.is_cold)

    def open(self) -> RPCSession:
        """Connect to it; one that was there before is waited for, for it may be starting again."""
        end = time.monotonic() + (BACK_S if self._met else 0.0)
        while True:
            try:
                session = connect(self.host, self.port, key=self.key, timeout=self.connect_s)
            except RPCConnectionError:
                if time.monotonic() >= end:
                    raise
                time.sleep(PAUSE_S)
            else:
                self._met.add(self.host)
                return _limited(session, self.timeout_s)

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """There is one device."""
        del most, held
        return []


@dataclass(frozen=True)
class TrackerRunner:
    """Devices of kind `key` that a tracker hands out: `max_devices` at once, 0: all free ones."""

    host: str
    port: int
    key: str
    timeout_s: float = 10.0
    priority: int = 1
    max_devices: int = 0
    wait_s: float = REQUEST_TIMEOUT_S
    is_cold: bool = False
    _met: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def device(self) -> str:
        """The kind of device."""
        return _named(self.key, self.is_cold)

    def open(self) -> RPCSession:
        """Wait for a device; not long where the tracker has none of the kind, busy or free."""
        tracker = connect_tracker(self.host, self.port, purpose=_AT_WORK.get())
        if not self._met:
            self._expect_kind(tracker)
        session = tracker.request(self.key, priority=self.priority, timeout=self.wait_s)
        self._met.add(self.key)
        return _limited(session, self.timeout_s)

    def _expect_kind(self, tracker: TrackerSession) -> None:
        end = time.monotonic() + min(COMING_S, self.wait_s)
        while True:
            kinds = {kind: n["total"] for kind, n in tracker.summary()["queue_info"].items()}
            known = sorted(kind for kind, total in kinds.items() if total)
            if self.key in known:
                return
            if time.monotonic() >= end:
                raise RPCConnectionError(
                    f"the tracker at {self.host}:{self.port} has no device of kind {self.key!r}; "
                    f"it has {', '.join(known) or 'none'}.{did_you_mean(self.key, known)} A device "
                    f"takes part by: slipway rpc-server --tracker {self.host}:{self.port} --key "
                    f"{self.key}"
                )
            time.sleep(PAUSE_S)

    def open_more(self, most: int, held: int) -> list[RPCSession]:
        """Take the devices that nobody waits for; another client may be faster."""
        most = min(most, self.max_devices - held) if self.max_devices else most
        found: list[RPCSession] = []
        with connect_tracker(self.host, self.port, purpose=_AT_WORK.get()) as tracker:
            while len(found) < most and _free(tracker.summary(), self.key):
                try:
                    session = tracker.request(self.key, priority=self.priority, timeout=FREE_S)
                except RPCError:
                    break
                found.append(_limited(session, self.timeout_s))
        return found


def _named(device: str, is_cold: bool) -> str:
    """Return what a device is called: with cold caches other choices are the best."""
    return f"{device}, cold caches" if is_cold else device


def _limited(session: RPCSession, timeout_s: float) -> RPCSession:
    session.timeout = timeout_s
    return session


def _free(summary: dict[str, Any], key: str) -> bool:
    """Return whether a device of a kind is free and nobody waits for one."""
    queue = summary["queue_info"].get(key)
    return queue is not None and queue["free"] > 0 and not queue["pending"]
