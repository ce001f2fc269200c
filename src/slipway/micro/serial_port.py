"""A board's serial port as a transport: the operating system's terminal interface, no package."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from slipway.errors import RPCConnectionError
from slipway.micro.project_api.server import (
    IoTimeoutError,
    TransportClosedError,
    read_with_timeout,
    write_with_timeout,
)

try:
    import termios
    import tty
except ImportError:  # not a POSIX system
    termios = None  # type: ignore[assignment]

_START_TIMEOUT_S = 10.0


class SerialPort:
    """An open line to a board: ``micro.Session(SerialPort("/dev/ttyACM0", 115200))``.

    The line is raw: eight bits, no parity, one stop bit, no flow control, `baudrate` bits per
    second.  A context manager; it is opened on entry.
    """

    def __init__(self, path: str | Path, baudrate: int = 115200) -> None:
        self.path = Path(path)
        self.baudrate = baudrate
        self._fd = -1

    def open(self) -> None:
        """Open the port; RPCConnectionError says what stands in the way."""
        if termios is None:
            raise RPCConnectionError(
                "this system has no POSIX serial ports; give micro.Session an object of your own "
                "with read(n, timeout) and write(data, timeout), from pyserial for example"
            )
        rate = getattr(termios, f"B{self.baudrate}", None)
        if rate is None:
            raise RPCConnectionError(f"{self.baudrate} baud is no rate that this system knows")
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            ports = sorted(str(p) for n in ("ttyACM*", "ttyUSB*") for p in Path("/dev").glob(n))
            raise RPCConnectionError(
                f"cannot open the serial port {self.path}: {error.strerror}. "
                + (f"The ports here are {', '.join(ports)}" if ports else "No port is plugged in")
                + "; opening one needs the rights of its group, often 'dialout'"
            ) from error
        try:
            tty.setraw(fd)
            settings = termios.tcgetattr(fd)
            settings[2] |= termios.CLOCAL | termios.CREAD
            settings[4] = settings[5] = rate
            termios.tcsetattr(fd, termios.TCSANOW, settings)
            termios.tcflush(fd, termios.TCIOFLUSH)
        except termios.error as error:
            os.close(fd)
            raise RPCConnectionError(f"{self.path} is no serial port: {error.args[-1]}") from error
        self._fd = fd

    def timeouts(self) -> dict[str, float]:
        """Return how long a session waits for the firmware to answer, in seconds."""
        return {"session_start_timeout_sec": _START_TIMEOUT_S}

    def read(self, n: int, timeout_sec: float | None) -> bytes:
        """Read 1 to `n` bytes; raises IoTimeoutError when none came in time."""
        if self._fd < 0:
            raise TransportClosedError()
        try:
            return read_with_timeout(self._fd, n, timeout_sec)
        except TransportClosedError:
            self._fd = -1
            raise
        except OSError as error:  # a pulled plug is an input/output error
            raise RPCConnectionError(f"{self.path}: {error.strerror}; is it unplugged?") from error

    def write(self, data: bytes, timeout_sec: float | None) -> None:
        """Write all of `data`; raises IoTimeoutError when the line does not take it in time."""
        if self._fd < 0:
            raise TransportClosedError()
        try:
            if write_with_timeout(self._fd, data, timeout_sec) < len(data):
                raise IoTimeoutError()
        except OSError as error:
            raise RPCConnectionError(f"{self.path}: {error.strerror}; is it unplugged?") from error

    def close(self) -> None:
        """Close the port; nothing happens when it is closed."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> SerialPort:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
