"""A farm's devices, what they are asked for, and who asks: what `state.py` keeps in order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from slipway.rpc.farm.remarks import NO_REMARKS, Remarks

FREE, ASSIGNED, BUSY, OFFLINE = "free", "assigned", "busy", "offline"
# By what a device is known again: kind, address, port, which.
DeviceIdentity = tuple[str, str, int, str]


class DeviceLink(Protocol):
    """How the farm reaches a device."""

    def assign(self, lease: str) -> None:
        """Tell the device of a lease; `Farm.answered` is called with its answer."""

    def release(self, lease: str, reason: str) -> None:
        """Ask the device to end the session of a lease; `Farm.idle` follows."""

    def close(self) -> None:
        """Drop the connection; `Farm.remove` follows."""


@dataclass(frozen=True)
class Grant:
    """What a request gets: a lease of a device, as it was when it was handed out.

    The device may have gone to somebody else by the time that anybody looks at it again.
    """

    device: FarmDevice
    lease: str
    address: str
    port: int


@dataclass(eq=False)
class Request:
    """Somebody who waits for a device of a kind."""

    key: str
    priority: int
    number: int
    holder: str
    grant: Callable[[Grant], None]
    is_there: Callable[[], bool]
    since: float
    is_over: bool = False  # granted, withdrawn or timed out


@dataclass(eq=False)
class FarmDevice:
    """One registered device; `session` is the public name of its `lease`, which is a secret."""

    number: int
    key: str
    address: str
    port: int
    description: str
    link: DeviceLink | None
    since: float  # Unix time of the state
    behind: str = ""  # which one it is behind the proxy at its address
    state: str = FREE
    remarks: Remarks = NO_REMARKS
    lease: str = ""
    holder: str = ""
    sessions: int = 0
    failures: int = 0
    last_error: str = ""
    request: Request | None = None  # that it was assigned for
    kicked: str = ""  # the lease whose session an administrator ended
    view: dict[str, Any] | None = None  # what `farm.view` shows of it; None when it has changed

    @property
    def session(self) -> str:
        """Name of the session in logs and on the page, "" without one."""
        return session_name(self.lease)

    @property
    def is_drained(self) -> bool:
        """Whether it finishes its session and gets no other."""
        return self.remarks.is_drained

    @property
    def identity(self) -> DeviceIdentity:
        """By what it is known again when it comes back."""
        return self.key, self.address, self.port, self.behind

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.key} at {self.address}:{self.port}"


def session_name(lease: str) -> str:
    """Return the public name of a lease: the same in the tracker's and in the device's log."""
    return hashlib.sha256(lease.encode()).hexdigest()[:12] if lease else ""
