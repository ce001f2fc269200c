"""The byte stream to a device: what a session reads and writes, and a logger of its traffic."""

from __future__ import annotations

import abc
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from slipway.micro.project_api.server import (
    IoTimeoutError,
    TransportClosedError,
    TransportTimeouts,
)

__all__ = [
    "IoTimeoutError",
    "Transport",
    "TransportClosedError",
    "TransportContextManager",
    "TransportLogger",
    "TransportTimeouts",
    "debug_transport_timeouts",
]

_LOG = logging.getLogger(__name__)
_ROW_BYTES = 16


def debug_transport_timeouts(session_start_retry_timeout_sec: float = 0) -> TransportTimeouts:
    """Return timeouts that wait for ever, for a device that somebody debugs."""
    return TransportTimeouts(session_start_retry_timeout_sec, 0, 0)


def start_timeout_s(timeouts: Any) -> float:
    """Return how long to wait for the device's first answer; 0 where nothing says so.

    `timeouts` is a `TransportTimeouts`, or a mapping of its fields.
    """
    if isinstance(timeouts, Mapping):
        return float(timeouts.get("session_start_timeout_sec") or 0)
    return float(getattr(timeouts, "session_start_timeout_sec", 0) or 0)


class Transport(abc.ABC):
    """A byte stream to a device, open inside of its `with` statement."""

    def __enter__(self) -> Transport:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abc.abstractmethod
    def timeouts(self) -> TransportTimeouts:
        """Return the waiting times, in seconds, that fit this stream."""

    @abc.abstractmethod
    def open(self) -> None:
        """Open the stream for one session."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the stream."""

    @abc.abstractmethod
    def read(self, n: int, timeout_sec: float | None) -> bytes:
        """Return 1 to `n` bytes; IoTimeoutError when none came, TransportClosedError at the end."""

    @abc.abstractmethod
    def write(self, data: bytes, timeout_sec: float | None) -> Any:
        """Write `data`; IoTimeoutError when that takes too long."""


TransportContextManager = AbstractContextManager[Transport]


class TransportLogger(Transport):
    """Passes everything on to another transport, and writes it to a logger as hexadecimal rows."""

    def __init__(
        self,
        name: str,
        child: Any,
        logger: logging.Logger | None = None,
        level: int = logging.INFO,
    ) -> None:
        self.name = name
        self.child = child
        self.logger = logger or _LOG
        self.level = level

    def timeouts(self) -> TransportTimeouts:
        """Return those of the other transport."""
        found: TransportTimeouts = self.child.timeouts()
        return found

    def open(self) -> None:
        """Open the other transport."""
        self._log("opening transport")
        self.child.open()

    def close(self) -> None:
        """Close the other transport."""
        self._log("closing transport")
        self.child.close()

    def read(self, n: int, timeout_sec: float | None) -> bytes:
        """Read from the other transport."""
        limit = _limit(timeout_sec)
        head = f"read {{{limit}}} {n:4d} B ->"
        with self._failures(head, f"[IoTimeoutError {limit}]"):
            data: bytes = self.child.read(n, timeout_sec)
        self._log(f"{head} {_dump(data)}")
        return data

    def write(self, data: bytes, timeout_sec: float | None) -> None:
        """Write to the other transport."""
        limit = _limit(timeout_sec)
        size = f"[{len(data):3d} B]:"
        with self._failures(f"write {{{limit}}}       <- {size}", f"[IoTimeoutError {limit}]"):
            self.child.write(data, timeout_sec)
        self._log(f"write {{{limit}}}        <- {_dump(data)}")

    def _log(self, text: str, error: BaseException | None = None) -> None:
        self.logger.log(self.level, "%s: %s", self.name, text, exc_info=error)

    @contextmanager
    def _failures(self, head: str, timeout: str) -> Iterator[None]:
        try:
            yield
        except IoTimeoutError:
            self._log(f"{head} {timeout}")
            raise
        except Exception as error:
            self._log(f"{head} [err: {type(error).__name__}]", error)
            raise


def _limit(timeout_sec: float | None) -> str:
    return " None " if timeout_sec is None else f"{timeout_sec:5.2f}s"


def _dump(data: bytes) -> str:
    """Return the size and the bytes: in the same line when they fill one row, else below it."""
    rows = []
    for at in range(0, len(data), _ROW_BYTES):
        row = data[at : at + _ROW_BYTES]
        text = "".join(chr(byte) if 0x21 <= byte < 0x7F else "." for byte in row)
        rows.append(f"{row.hex(' '):47}  {text}")
    head = f"[{len(data):3d} B]:"
    if len(rows) > 1:
        numbered = (f"{i * _ROW_BYTES:04x}  {row}" for i, row in enumerate(rows))
        return "\n".join([head, *numbered])
    return f"{head} {rows[0] if rows else ''}"
