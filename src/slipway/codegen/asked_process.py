"""A process that answers requests through its standard streams, and may be ended at any time.

The messages are those of ``llvm/worker.py``: sizes, a head of JSON and a body; status and result.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from slipway.codegen.llvm.worker import ANSWER, REQUEST
from slipway.errors import ToolchainError


class EndedError(Exception):
    """The process ended before it answered; the status is None when it took too long."""

    def __init__(self, status: int | None, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class AskedProcess:
    """The process that `command` starts; `what` it runs is named where it cannot be started."""

    def __init__(self, command: Sequence[str], what: str) -> None:
        self.words = tempfile.TemporaryFile(prefix="slipway-asked-", mode="a+b")  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.words,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is not for it
            )
        except OSError as error:
            self.words.close()
            raise ToolchainError(
                f"{what} runs in a process of its own, and {sys.executable or 'Python'} cannot be "
                f"started for it: {error}"
            ) from error
        self.is_fresh = True

    def ask(self, head: bytes, body: bytes, limit_s: float) -> tuple[int, bytes]:
        """Return status and result; `EndedError` if the process ends or takes too long."""
        deadline = time.monotonic() + limit_s
        assert self.process.stdin is not None
        os.ftruncate(self.words.fileno(), 0)
        try:
            message = memoryview(REQUEST.pack(len(head), len(body)) + head + body)
            while message:
                message = message[self.process.stdin.write(message) :]
        except OSError as error:
            raise self._ended() from error
        status, size = ANSWER.unpack(self._read(ANSWER.size, deadline))
        result = self._read(size, deadline)
        self.is_fresh = False
        return status, result

    def _read(self, size: int, deadline: float) -> bytes:
        assert self.process.stdout is not None
        found = bytearray()
        waiting = select.poll()
        waiting.register(self.process.stdout, select.POLLIN)
        while len(found) < size:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                self.end(kill=True)
                raise EndedError(None, "")
            if not waiting.poll(left_s * 1000):
                continue
            data = os.read(self.process.stdout.fileno(), min(size - len(found), 1 << 20))
            if not data:
                raise self._ended()
            found += data
        return bytes(found)

    def _ended(self) -> EndedError:
        self.process.wait()
        self.words.seek(0)
        words = self.words.read().decode("utf-8", "replace")
        self.end()
        return EndedError(self.process.returncode, words)

    def end(self, kill: bool = False) -> None:
        """End the process; without `kill` it ends by itself, with its input."""
        if kill:
            self.process.kill()
        self.forget()
        self.process.wait()

    def forget(self) -> None:
        """Close what leads to the process."""
        for file in (self.process.stdin, self.process.stdout, self.words):
            assert file is not None
            with suppress(OSError):
                file.close()


class ProcessStock:
    """The processes of one kind that this program has, those at work and those that wait."""

    def __init__(self, start: Callable[[], AskedProcess]) -> None:
        self._start = start
        self._begin()

    def _begin(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[AskedProcess] = []
        self.all: set[AskedProcess] = set()

    def take(self) -> AskedProcess:
        """Return one that waits, or a new one."""
        with self.lock:
            if self.idle:
                return self.idle.pop()
        process = self._start()
        with self.lock:
            self.all.add(process)
        return process

    def put_back(self, process: AskedProcess) -> None:
        """Let a process wait for the next request."""
        with self.lock:
            self.idle.append(process)

    def drop(self, process: AskedProcess) -> None:
        """Forget a process that has ended, or will."""
        with self.lock:
            self.all.discard(process)

    def end_all(self) -> None:
        """End every process; one at work is killed."""
        for process in list(self.all):
            process.end(kill=process not in self.idle)

    def forget_all(self) -> None:
        """Leave the processes to the parent of a fork: here there are none yet."""
        for process in self.all:
            process.process.returncode = 0
            process.forget()
        self._begin()
