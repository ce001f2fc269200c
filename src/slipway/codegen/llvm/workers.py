"""The processes that hold LLVM: started when they are needed, and replaced when one ends.

`ask` may be called in many threads at once: each call has a process for itself.  Processes stay
for the next call, and end with this one, or after a minute without work.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from slipway.codegen.cache import key_of
from slipway.codegen.llvm.worker import ANSWER, NO_LLVM, REFUSED, REQUEST
from slipway.errors import CodegenError, ToolchainError
from slipway.toolchain.runtime_library import cache_dir
from slipway.version import install_line

LIMIT_S = 600.0  # of one request; SLIPWAY_COMPILE_LIMIT_S says otherwise
_LIMIT: ContextVar[float] = ContextVar("seconds of a request", default=float("inf"))
_INSTALL = f"compiling with target llvm needs llvmlite: {install_line('compile')}"
# What LLVM says before it gives up on code that it was right not to compile -> what to do.
_MISFIT = "features of the processor do not fit each other: change -mattr, or -mcpu"
_REFUSALS = {
    "is only supported for": _MISFIT,  # 'zclsd' is only supported for 'rv32'
    "is incompatible with": _MISFIT,
    "extensions are incompatible": _MISFIT,
    "to also be specified": _MISFIT,
    "Inline asm not supported": "inline assembler is compiled for this machine's own kind of "
    "processor only. Bring it as C (pragma import_c), which any target compiles",
    "Cannot select": "the processor has no instruction for this. Add the feature with -mattr, or "
    "do not call the intrinsic",
    "Do not know how to": "the processor has no instruction for this. Use another type or width",
}
_ASSERTION = re.compile(r"([\w.]+:\d+): .*(Assertion `.*' failed)")


class IncompleteModelError(CodegenError):
    """LLVM's timing of this processor's instructions has gaps, on which it ends."""


class EndedError(Exception):
    """The process ended before it answered; the status is None when it took too long."""

    def __init__(self, status: int | None, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class WorkerProcess:
    """The process that `command` starts; `what` it runs is named where it cannot be started."""

    def __init__(self, command: Sequence[str], what: str) -> None:
        self.errors_file = tempfile.TemporaryFile(prefix="slipway-worker-", mode="a+b")  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors_file,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is not for it
            )
        except OSError as error:
            self.errors_file.close()
            raise ToolchainError(
                f"{what} runs in a process of its own, and {sys.executable or 'Python'} cannot be "
                f"started for it: {error}"
            ) from error
        self.is_fresh = True

    def request(self, head: bytes, body: bytes, limit_s: float) -> tuple[int, bytes]:
        """Return status and result; `EndedError` if the process ends or takes too long."""
        deadline = time.monotonic() + limit_s
        assert self.process.stdin is not None
        os.ftruncate(self.errors_file.fileno(), 0)
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
        self.errors_file.seek(0)
        message = self.errors_file.read().decode("utf-8", "replace")
        self.end()
        return EndedError(self.process.returncode, message)

    def end(self, kill: bool = False) -> None:
        """End the process; without `kill` it ends by itself, with its input."""
        if kill:
            self.process.kill()
        self.forget()
        self.process.wait()

    def forget(self) -> None:
        """Close what leads to the process."""
        for file in (self.process.stdin, self.process.stdout, self.errors_file):
            assert file is not None
            with suppress(OSError):
                file.close()


class ProcessStock:
    """The processes of one kind that this program has, those at work and those that wait."""

    def __init__(self, start: Callable[[], WorkerProcess]) -> None:
        self._start = start
        self._begin()

    def _begin(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[WorkerProcess] = []
        self.all: set[WorkerProcess] = set()

    def take(self) -> WorkerProcess:
        """Return one that waits, or a new one."""
        with self.lock:
            if self.idle:
                return self.idle.pop()
        process = self._start()
        with self.lock:
            self.all.add(process)
        return process

    def put_back(self, process: WorkerProcess) -> None:
        """Let a process wait for the next request."""
        with self.lock:
            self.idle.append(process)

    def drop(self, process: WorkerProcess) -> None:
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


class _Worker(WorkerProcess):
    """One process with LLVM in it."""

    def __init__(self) -> None:
        spec = None
        with suppress(ImportError):
            spec = importlib.util.find_spec("llvmlite")
        if spec is None or spec.origin is None:
            raise ToolchainError(_INSTALL)
        script = Path(__file__).with_name("worker.py")
        packages = Path(spec.origin).parent.parent
        # Neither the environment nor what a site installs has a say in this process.
        super().__init__([sys.executable, "-I", "-S", str(script), str(packages)], "LLVM")


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let LLVM have so many seconds at most for each module whose compilation the block begins."""
    token = _LIMIT.set(seconds)
    try:
        yield
    finally:
        _LIMIT.reset(token)


class WorkerTask:
    """A request that may be given up, before it has begun or while LLVM is at it."""

    def __init__(self) -> None:
        self.limit_s = _LIMIT.get()  # of the thread that wants it; another may ask
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.is_given_up = False

    def give_up(self) -> None:
        """Have nothing asked, or end the process that was."""
        with self._lock:
            self.is_given_up = True
            if self._process is not None:
                self._process.kill()

    def begins(self, worker: WorkerProcess) -> bool:
        """Return whether `worker` is to be asked; it is ended when the task is given up."""
        with self._lock:
            if not self.is_given_up:
                self._process = worker.process
        return not self.is_given_up

    def ended(self) -> None:
        """Leave the process alone from now on: it may be at something else."""
        with self._lock:
            self._process = None


_pool = ProcessStock(_Worker)


@atexit.register
def _end_all() -> None:
    _pool.end_all()


os.register_at_fork(after_in_child=_pool.forget_all)


def request(
    want: str, body: bytes, settings: Mapping[str, Any], what: str, task: WorkerTask | None = None
) -> bytes:
    """Return what LLVM makes of `body`; `want` and `settings` are the request of ``worker.py``.

    `what` is the body's name in errors: "the kernel add", say.  Raises CodegenError where LLVM
    refuses it, ends its process, or takes longer than `LIMIT_S` or the block of `limited` allows;
    ToolchainError without LLVM; CancelledError where the `task` is given up.
    """
    task = task or WorkerTask()
    usual_s = float(os.environ.get("SLIPWAY_COMPILE_LIMIT_S") or LIMIT_S)
    limit_s = min(usual_s, task.limit_s)
    head = json.dumps({"want": want, **settings}).encode()
    while True:
        if task.is_given_up:
            raise CancelledError
        worker = _pool.take()
        was_fresh = worker.is_fresh
        if not task.begins(worker):
            _pool.put_back(worker)
            continue
        try:
            status, result = worker.request(head, body, limit_s)
        except EndedError as ended:
            _pool.drop(worker)
            task.ended()
            if task.is_given_up or (ended.status == 0 and not was_fresh):
                continue  # it was ended for that, or had waited long enough
            raise _error_of(ended, body, settings, what, limit_s) from None
        except BaseException:  # Ctrl-C, between request and answer
            _pool.drop(worker)
            worker.end(kill=True)
            raise
        task.ended()
        if task.is_given_up:  # perhaps after the answer
            _pool.drop(worker)
            worker.end(kill=True)
            continue
        _pool.put_back(worker)
        if status == REFUSED:
            message = " ".join(result.decode("utf-8", "replace").split())
            raise CodegenError(f"LLVM refuses {what} for {_described(settings)}: {message}")
        return result


def _described(settings: Mapping[str, Any]) -> str:
    options = [settings.get("triple", "any target")]
    options += [f"-mcpu={settings['cpu']}"] if settings.get("cpu") else []
    return " ".join(options)


def _error_of(
    ended: EndedError, body: bytes, settings: Mapping[str, Any], what: str, limit_s: float
) -> CodegenError | ToolchainError:
    """Return what to raise for a process that ended while it had `body`."""
    if ended.status == NO_LLVM:
        return ToolchainError(f"LLVM cannot be loaded: {ended.message.strip()}. {_INSTALL}")
    where = f"{what} for {_described(settings)}"
    lines = [line.strip() for line in ended.message.splitlines() if line.strip()]
    refusals = [line for line in lines if "error:" in line.lower()]
    if ended.status == 1 and refusals:  # an inline assembler line, say
        return CodegenError(f"LLVM refuses {where}: {'; '.join(refusals[:3])}")
    if ended.status is None:
        return CodegenError(
            f"LLVM was still compiling {where} after {limit_s:g} s, and was ended. Make the kernel "
            "smaller (fewer unrolled loops), or give it more seconds: SLIPWAY_COMPILE_LIMIT_S, or "
            "the builder's timeout for a candidate"
        )
    if ended.status == -signal.SIGKILL:
        return CodegenError(
            f"LLVM was ended by the system while it compiled {where}, most likely because memory "
            "ran out. Make the kernel smaller (fewer unrolled loops), or give it more memory"
        )
    if any("incomplete machine model" in line for line in lines):
        return IncompleteModelError(f"LLVM has no timing of some instructions of {where}")
    said = _last_lines(lines)
    for cause, advice in _REFUSALS.items():
        if cause in said:
            return CodegenError(f"LLVM refuses {where}: {said}: {advice}")
    name = signal.Signals(-ended.status).name if ended.status < 0 else f"status {ended.status}"
    features = settings.get("asked")
    perhaps = (
        f"Perhaps -mattr={features} does not fit this processor: leave it out. " if features else ""
    )
    return CodegenError(
        f"LLVM ended with {name} while it compiled {where}{f' ({said})' if said else ''}. {perhaps}"
        "If the kernel calls an intrinsic, assembler or imported IR of yours, look there first; "
        f"otherwise it is a defect of Slipway: please report it{_kept(body)}"
    )


def _last_lines(lines: list[str]) -> str:
    for line in lines:
        found = _ASSERTION.search(line)
        if found:
            return f"{found[2]} in {found[1]}"
        if "LLVM ERROR" in line or "error:" in line:
            return line
    return "; ".join(lines[:2])[:300]


def _kept(body: bytes) -> str:
    """Keep what LLVM could not compile; return words that say where."""
    path = cache_dir() / "failed" / f"{key_of(body)[:16]}.ll"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    except OSError:
        return ""
    return f" with the file {path}"
