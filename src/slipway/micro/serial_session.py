"""`SerialSession`: a device server at the other end of a serial line."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from slipway.errors import RPCError
from slipway.micro.serial_link import SerialLink
from slipway.micro.serial_port import SerialPort
from slipway.rpc.client import Output, RPCSession, greeted


class SerialSession(RPCSession):
    """A session with ``slipway-server --serial /dev/ttyS0`` (or the Python server's ``--serial``).

    `port` is this end of the line.  What the line damages or drops is sent again.  `timeout` bounds
    each step of connecting; `session_timeout`, `token` and `output` are those of `rpc.connect`.
    Raises RPCTimeoutError when nobody answers, RPCConnectionError when there is no such port.
    """

    def __init__(
        self,
        port: str | Path | SerialPort,
        baudrate: int = 115200,
        session_timeout: float = 0,
        *,
        timeout: float = 10.0,
        token: str | None = None,
        output: bool | Output = False,
    ) -> None:
        self._port = port if isinstance(port, SerialPort) else SerialPort(port, baudrate)
        self._line: SerialLink | None = None
        self._port.open()
        name = f"the serial line {os.fspath(self._port.path)}"
        try:
            self._line = SerialLink(self._port, name, timeout)
            self._line.socket.settimeout(timeout)
            link = self._line.socket
            wants_proof = bool(token)  # whoever holds the cable needs none, unless one is named
            super().__init__(
                *greeted(link, name, "", session_timeout, token, output, wants_proof=wants_proof)
            )
        except BaseException as error:
            fault = self._hang_up()
            if fault and isinstance(error, RPCError):
                error.add_note(f"{name}: {fault}")
            raise

    def close(self) -> None:
        """End the session; the line is free for the next one."""
        super().close()
        self._hang_up()

    def _hang_up(self) -> str:
        """Close the line; return what was wrong with it, if anything."""
        fault = ""
        if self._line is not None:
            line, self._line = self._line, None
            line.close()
            fault = line.fault
        self._port.close()
        return fault

    def __del__(self) -> None:
        if getattr(self, "_line", None) is not None:
            with contextlib.suppress(Exception):
                self.close()
