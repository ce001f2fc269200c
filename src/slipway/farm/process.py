"""A process that outlives the command that started it, and is ended by another one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

END_S = 5.0


@dataclass(frozen=True)
class Running:
    """A process of its own group: `started` is the system's clock tick of its start.

    A number of a process is used again after its end; with the tick it is not taken for another.
    """

    name: str
    pid: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.started != 0 and _start_of(self.pid) == self.started

    def end(self) -> None:
        """End it and what it started: politely, after some seconds not."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_alive:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sign)
            deadline = time.monotonic() + END_S
            while self.is_alive and time.monotonic() < deadline:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(self.pid, os.WNOHANG)  # where this process is its parent
                time.sleep(0.02)


def start(
    name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Running:
    """Start a process in `folder`, in a group of its own; its output goes to ``NAME.log`` there."""
    with (folder / f"{name}.log").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True, env=dict(environment),
        )  # fmt: skip
    process.returncode = 0  # it outlives this object and this process: nobody waits for it here
    return Running(name, process.pid, _start_of(process.pid))


def _start_of(pid: int) -> int:
    """Return when a process started, in ticks since boot; 0 when it is not there or has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
