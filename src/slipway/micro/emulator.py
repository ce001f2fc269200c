"""An emulated board as a process: its serial line is a pair of pipes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from slipway.errors import SlipwayError
from slipway.micro.board import Board
from slipway.micro.project_api.server import (
    TransportClosedError,
    read_with_timeout,
    write_with_timeout,
)
from slipway.micro.toolchain import find_tool

_GRACE_S = 5.0


def emulator_command(board: Board, elf: Path) -> list[str]:
    """Return the command that runs an image: one instruction takes one nanosecond there."""
    if board.emulator is None:
        raise SlipwayError(f"{board.title}: there is no emulator for this board")
    command = [find_tool(board.emulator.program), *board.emulator.args]
    command += ["-display", "none", "-monitor", "none", "-serial", "stdio", "-icount", "shift=0"]
    if board.exit == "semihosting":
        command += ["-semihosting-config", "enable=on,target=native"]
    return [*command, "-kernel", str(elf)]


def _load_prctl() -> Callable[..., int] | None:
    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None  # not Linux


_PRCTL = _load_prctl()  # looked up here: a child between fork and exec must not load anything
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Let the kernel end the emulator when whoever started it is gone, however that happened.

    Closing its serial line does not: firmware that polls it would keep a processor busy for ever.
    """
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)


class SerialProcess:
    """A running device; `read` and `write` are its serial line: standard output and input."""

    def __init__(self, command: list[str]) -> None:
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            bufsize=0,
            preexec_fn=_end_with_parent,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = os.dup(self._process.stdin.fileno())
        self._from = os.dup(self._process.stdout.fileno())
        self._process.stdin.close()
        self._process.stdout.close()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    def read(self, n: int, timeout_s: float | None) -> bytes:
        """Read 1 to `n` bytes; raises TransportClosedError with the emulator's words at its end."""
        if self._from < 0:
            raise TransportClosedError()
        try:
            return read_with_timeout(self._from, n, timeout_s)
        except TransportClosedError:
            self._from = -1
            raise TransportClosedError(data={"emulator": self.messages()}) from None

    def write(self, data: bytes, timeout_s: float | None) -> None:
        """Write all of `data`."""
        if write_with_timeout(self._to, data, timeout_s) < len(data):
            raise TransportClosedError(data={"emulator": "it stopped reading its serial line"})

    def messages(self) -> str:
        """Return the end of what the emulator itself printed."""
        self._messages.seek(0)
        return self._messages.read().decode(errors="replace")[-2000:]

    def wait(self, timeout_s: float) -> int:
        """Return the firmware's exit status; raises subprocess.TimeoutExpired."""
        return self._process.wait(timeout_s)

    def close(self) -> None:
        """End the emulator; nothing happens when it has ended."""
        for fd in (self._to, self._from):
            if fd >= 0:
                os.close(fd)
        self._to = self._from = -1
        self._process.terminate()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._messages.close()


class EmulatorProcess(SerialProcess):
    """A board in its emulator."""

    def __init__(self, board: Board, elf: Path) -> None:
        super().__init__(emulator_command(board, elf))


def run_image(board: Board, elf: Path, timeout_s: float = 60.0) -> tuple[int, str]:
    """Run firmware to its exit and return its status and what it printed on the serial line.

    Raises SlipwayError when it has not ended after `timeout_s`.
    """
    try:
        done = subprocess.run(
            emulator_command(board, elf),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")[-500:]
        raise SlipwayError(
            f"the firmware on {board.name} did not end within {timeout_s:g} s; it printed: {said!r}"
        ) from None
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")
