"""What happened on a farm: counts, durations, the last errors, and a line for the chart."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TypeVar

from slipway.rpc.farm.clock import Clock
from slipway.rpc.farm.devices import FarmDevice, Request
from slipway.rpc.log import tell

_log = logging.getLogger("slipway.rpc.tracker")
SAMPLE_S = 5.0
_SAMPLES = 720  # an hour
_TROUBLES = 50
_JOBS = 50
_NEW_JOBS = 10_000
_MAX_KINDS = 1000  # of one count; later ones share the name "", so that nobody fills the memory
WAIT_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0)
SESSION_BOUNDS_S = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)


@dataclass
class Durations:
    """A histogram: how many durations were at most each bound, and their sum, in seconds."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)  # one for each bound, and one for the rest
    total_s: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total_s += seconds


@dataclass(frozen=True)
class Trouble:
    """Something that went wrong; `at` is Unix time, `device` and `session` may be empty."""

    at: float
    kind: str
    device: str
    session: str
    text: str


@dataclass(frozen=True)
class Sample:
    """The farm at one moment; `finished` counts the sessions since the sample before."""

    at: float
    total: int
    busy: int
    waiting: int
    finished: int


@dataclass(frozen=True)
class FinishedJob:
    """A session or an administrator's command that is over; `words` say why, or what it printed.

    `kind` is "session" or the command's name, `result` ok, failed, kicked, lost or timeout.
    """

    at: float
    length_s: float
    kind: str
    device: str
    session: str
    who: str
    result: str
    words: str


_Entry = TypeVar("_Entry", Trouble, Sample, FinishedJob)


class Journal:
    """Counts since the tracker's start; keys are (kind of device, result)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        clock.follow(self._clock_was_set)
        self.started = clock.now()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.sessions: Counter[tuple[str, str]] = Counter()
        self.registrations: Counter[tuple[str, str]] = Counter()
        self.refused_peers = 0
        self.waits = Durations(WAIT_BOUNDS_S)
        self.lengths = Durations(SESSION_BOUNDS_S)
        self.troubles: deque[Trouble] = deque(maxlen=_TROUBLES)
        self.samples: deque[Sample] = deque(maxlen=_SAMPLES)
        self.jobs: deque[FinishedJob] = deque(maxlen=_JOBS)
        self._finished = 0
        # What no store has taken yet; a tracker without one forgets the oldest.
        self._new_samples: deque[Sample] = deque(maxlen=_SAMPLES)
        self._new_jobs: deque[FinishedJob] = deque(maxlen=_NEW_JOBS)

    def _clock_was_set(self, moved_s: float) -> None:
        self.started += moved_s
        _move(self.troubles, moved_s)
        for samples in (self.samples, self._new_samples):
            _move(samples, moved_s)
        for jobs in (self.jobs, self._new_jobs):
            _move(jobs, moved_s)

    def take_new(self) -> tuple[list[Sample], list[FinishedJob]]:
        """Return samples and jobs since the last call."""
        found = list(self._new_samples), list(self._new_jobs)
        self._new_samples.clear()
        self._new_jobs.clear()
        return found

    def registered(self, device: FarmDevice, returns: bool) -> None:
        """A device came, or came back."""
        _count(self.registrations, device.key, "returned" if returns else "new")
        tell(_log, "registered", f"{device.name} registered", **_names(device))

    def lost(self, device: FarmDevice, reason: str, had_session: bool) -> None:
        """A device's connection is over, and with it its session if it had one."""
        _count(self.registrations, device.key, "lost")
        tell(_log, "lost", f"{device.name} is gone: {reason}", **_names(device), reason=reason)
        if had_session:
            self.session_ended(device, "lost", reason)
        else:
            device.last_error = reason
            self._trouble("offline", device.name, device.session, reason)

    def granted(self, request: Request, device: FarmDevice) -> None:
        """A request got its device."""
        waited_s = max(0.0, self._clock.now() - request.since)
        _count(self.requests, request.key, "granted")
        self.waits.add(waited_s)
        tell(
            _log, "granted", f"{device.name} goes to {request.holder} as session {device.session}",
            **_names(device), priority=request.priority, waited_s=round(waited_s, 4),
        )  # fmt: skip

    def request_ended(self, request: Request, result: str, is_known: bool) -> None:
        """Count a request without a device: timeout or withdrawn.

        Kinds that no device has share one name, so that they stay few.
        """
        _count(self.requests, request.key if is_known else "", result)
        if result == "timeout":
            text = f"{request.holder} got no {request.key!r} in time"
            self._trouble("timeout", "", "", text)
            tell(_log, "timeout", text, key=request.key, holder=request.holder)

    def session_ended(self, device: FarmDevice, result: str, reason: str) -> None:
        """Count a session; `result` is ok, failed, kicked or lost."""
        length_s = max(0.0, self._clock.now() - device.since)
        _count(self.sessions, device.key, result)
        self.lengths.add(length_s)
        self._finished += 1
        if result != "ok":
            device.failures += 1
            device.last_error = reason
            self._trouble(result, device.name, device.session, reason)
        self._job("session", length_s, device, result, reason)
        text = f"session {device.session} on {device.name} ended: {reason or result}"
        tell(
            _log, "ended", text,
            **_names(device), result=result, reason=reason, length_s=round(length_s, 4),
        )  # fmt: skip

    def refused(self, device: FarmDevice, reason: str) -> None:
        """A device did not take a lease."""
        self._trouble("refused", device.name, device.session, reason)
        tell(_log, "refused", f"{device.name}: {reason}", **_names(device), reason=reason)

    def peer_refused(self, peer: str, reason: str) -> None:
        """A peer was turned away."""
        self.refused_peers += 1
        self._trouble("peer", peer, "", reason)
        tell(_log, "peer_refused", f"refused {peer}: {reason}", peer=peer, reason=reason)

    def administered(self, device: FarmDevice, act: str) -> None:
        """An administrator did something to a device."""
        tell(_log, act, f"an administrator: {act} {device.name}", **_names(device))

    def command_ended(
        self, name: str, device: FarmDevice | None, length_s: float, result: str, words: str
    ) -> None:
        """A command that an administrator started is over."""
        self._job(name, length_s, device, result, words, "administrator")
        where = f" for {device.name}" if device is not None else ""
        names = _names(device) if device is not None else {}
        tell(_log, "command", f"{name}{where}: {result}. {words}".strip(), **names, result=result)

    def _job(
        self, kind: str, length_s: float, device: FarmDevice | None, result: str, words: str,
        who: str = "",
    ) -> None:  # fmt: skip
        name, session = (device.name, device.session) if device is not None else ("", "")
        who = who or (device.holder if device is not None else "")
        at = self._clock.now()
        job = FinishedJob(at, round(length_s, 3), kind, name, session, who, result, words)
        self.jobs.append(job)
        self._new_jobs.append(job)

    def _trouble(self, kind: str, device: str, session: str, text: str) -> None:
        self.troubles.append(Trouble(self._clock.now(), kind, device, session, text))

    def sample(self, total: int, busy: int, waiting: int) -> Sample:
        """Add a point to the chart; call it every `SAMPLE_S` seconds."""
        finished, self._finished = self._finished, 0
        self.samples.append(Sample(self._clock.now(), total, busy, waiting, finished))
        self._new_samples.append(self.samples[-1])
        return self.samples[-1]


def _move(noted: deque[_Entry], moved_s: float) -> None:
    moved = [replace(entry, at=entry.at + moved_s) for entry in noted]
    noted.clear()
    noted.extend(moved)


def _count(counts: Counter[tuple[str, str]], key: str, result: str) -> None:
    counts[(key if (key, result) in counts or len(counts) < _MAX_KINDS else ""), result] += 1


def _names(device: FarmDevice) -> dict[str, str | int]:
    return {
        "key": device.key,
        "device": f"{device.address}:{device.port}",
        "session": device.session,
        "holder": device.holder,
    }
