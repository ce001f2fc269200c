"""A device at the other end of a serial line."""

from __future__ import annotations

import os
from pathlib import Path

from slipway.doctor.device import examine_session, refusal
from slipway.doctor.finding import Findings, ok, wrong
from slipway.errors import RPCConnectionError, RPCError
from slipway.micro.serial_port import SerialPort
from slipway.micro.serial_session import SerialSession

PATTERNS = ("ttyACM*", "ttyUSB*", "ttyAMA*", "serial/by-id/*", "cu.usb*")
ANSWER_S = 5.0


def serial_ports() -> list[str]:
    """Return the serial ports of this machine."""
    return sorted(str(path) for pattern in PATTERNS for path in Path("/dev").glob(pattern))


def examine_serial(port: str, baudrate: int = 115200, token: str | None = None) -> Findings:
    """Yield what there is to say of a serial port and who answers there."""
    if not Path(port).exists():
        here = ", ".join(serial_ports()) or "none"
        yield wrong(
            "port",
            f"there is no {port}; ports here: {here}",
            "plug the board in; a cable for charging only has no data lines",
        )
        return
    if not os.access(port, os.R_OK | os.W_OK):
        yield wrong(
            "rights",
            f"{port} may not be opened by this user",
            "sudo usermod -aG dialout $USER, and sign in again",
        )
        return
    line = SerialPort(port, baudrate)
    try:
        line.open()
        line.close()
    except RPCConnectionError as error:
        yield wrong("port", str(error), "close what else has the port open: a terminal, an IDE")
        return
    yield ok("port", f"{port} opens at {baudrate} baud")
    try:
        session = SerialSession(port, baudrate, timeout=ANSWER_S, token=token)
    except RPCError as error:
        if error.failure:
            yield refusal(error)
        else:
            yield wrong(
                "server",
                str(error),
                f"is the board on, and was it flashed with a server? Does it speak {baudrate} baud "
                "(--baud)? Press its reset button and try again",
            )
        return
    with session:
        yield from examine_session(session, f"the device at {port}")
