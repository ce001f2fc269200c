"""Processes that compile candidates: one that dies or hangs costs its candidates, and no more.

`answer` is what executors run, in a thread here or on another machine.  It takes and returns plain
values, so that two versions of Slipway understand each other well enough to say that they are two.
"""

from __future__ import annotations

import json
import os
import pickle
import platform
import queue
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from slipway.codegen.llvm.worker import ANSWER, REQUEST
from slipway.codegen.llvm.workers import EndedError, ProcessStock, WorkerProcess
from slipway.errors import SlipwayError
from slipway.toolchain.tempdir import tempdir
from slipway.transform.context import PassContext
from slipway.tuning.build import BuildJob, Built
from slipway.version import VERSION

DONE, UNREADABLE, FAILED = range(3)  # the status of an answer
START_S = 60.0  # more for a process that has yet to import Slipway
IDLE_S = 120.0  # without work, after which a process ends

_START = """
import sys
sys.path[:] = {path!r}
from slipway.tuning.build_processes import work
work()
"""


def _module_path() -> list[str]:
    return [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100


class BuildProcess(WorkerProcess):
    """A fresh Python with the modules of this one; no script of the caller's runs in it."""

    def __init__(self) -> None:
        start = _START.format(path=_module_path())
        super().__init__([sys.executable, "-P", "-c", start], "Compilation")


def message_of(job: BuildJob, suffix: str) -> bytes:
    """Return a job as it travels.  Raises what pickle raises where a part of it cannot."""
    context = PassContext.current()
    options = {
        "opt_level": context.opt_level,
        "required_pass": list(context.required_pass),
        "disabled_pass": list(context.disabled_pass),
        "config": dict(context.config),
    }
    return pickle.dumps((job, options, suffix))


def built_of(result: bytes, path: Path) -> Built:
    """Return what a process built, its library being written to `path`."""
    built, content = pickle.loads(result)
    assert isinstance(built, Built)
    if built.path is not None:
        path.write_bytes(content)
        built.path = path
    return built


class BuildProcesses:
    """Processes that compile, as many as are asked at once; they end with this object.

    They end with this program, too, however it ends: each watches the line that it is asked by.
    """

    def __init__(self) -> None:
        self._stock = ProcessStock(BuildProcess)
        self._end = weakref.finalize(self, self._stock.end_all)
        _made.add(self)

    def answer(self, version: str, message: bytes, limit_s: float) -> dict[str, Any]:
        """Have a process compile what `message_of` gave, in `limit_s` seconds at most.

        Returns {"built": bytes}, {"lost": why the process gave no answer}, {"unreadable": what it
        knows nothing of}, or {"other": which version of Slipway is here}.
        """
        if version != VERSION:
            return {"other": f"{platform.node()} has slipway {VERSION}"}
        while True:
            process = self._stock.take()
            was_fresh = process.is_fresh
            try:
                head = json.dumps({"path": _module_path()}).encode()
                status, result = process.request(head, message, limit_s + START_S * was_fresh)
            except EndedError as ended:
                self._stock.drop(process)
                if ended.status == 0 and not was_fresh:
                    continue  # it had waited long enough
                return {"lost": _why(ended, limit_s)}
            except BaseException:
                self._stock.drop(process)
                process.end(kill=True)
                raise
            self._stock.put_back(process)
            if status == DONE:
                return {"built": result}
            return {"unreadable" if status == UNREADABLE else "lost": result.decode()}

    def kill_busy(self) -> None:
        """End the processes that are at work: nobody waits for what they make."""
        with self._stock.lock:
            busy = [process for process in self._stock.all if process not in self._stock.idle]
        for process in busy:
            process.process.kill()

    def close(self) -> None:
        """End the processes."""
        self.kill_busy()
        with self._stock.lock:
            idle, self._stock.idle = self._stock.idle, []
            self._stock.all.difference_update(idle)
        for process in idle:
            process.end()

    def forget_all(self) -> None:
        """Leave the processes to the parent of a fork."""
        self._stock.forget_all()


_made: weakref.WeakSet[BuildProcesses] = weakref.WeakSet()


def _forget_all() -> None:
    for processes in _made:
        processes.forget_all()


os.register_at_fork(after_in_child=_forget_all)


@cache
def _of_this_program() -> BuildProcesses:
    return BuildProcesses()


def answer(version: str, message: bytes, limit_s: float) -> dict[str, Any]:
    """Answer as a worker of a cluster, which keeps its processes for the next time."""
    return _of_this_program().answer(version, message, limit_s)


def _why(ended: EndedError, limit_s: float) -> str:
    if ended.status is None:
        return f"the compilation took more than {limit_s:g} s and was ended"
    if ended.status < 0:
        name = signal.Signals(-ended.status).name
        perhaps = ", perhaps for want of memory" if ended.status == -signal.SIGKILL else ""
        return f"the process that compiled it was ended by {name}{perhaps}"
    said = " ".join(ended.message.split())[-300:]
    return f"the process that compiled it ended with status {ended.status}: {said}"


# In the process.


def work() -> None:
    """Answer requests until there are no more; what is printed goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.Queue[tuple[bytes, bytes]] = queue.Queue()
    threading.Thread(target=_read, args=(requests.put,), daemon=True).start()
    while True:
        try:
            head, message = requests.get(timeout=IDLE_S)
        except queue.Empty:
            break
        sys.path[:] = json.loads(head)["path"]
        status, result = _worked(message)
        try:
            answers.write(ANSWER.pack(status, len(result)) + result)
            answers.flush()
        except OSError:
            break


def _read(put: Callable[[tuple[bytes, bytes]], None]) -> None:
    """Pass on messages; end the process with its input, even while it compiles."""
    source = os.fdopen(0, "rb")
    while len(sizes := source.read(REQUEST.size)) == REQUEST.size:
        head_bytes, body_bytes = REQUEST.unpack(sizes)
        head, body = source.read(head_bytes), source.read(body_bytes)
        if len(body) < body_bytes:
            break
        put((head, body))
    os._exit(0)


def _worked(message: bytes) -> tuple[int, bytes]:
    try:
        job, options, suffix = pickle.loads(message)
    except Exception as error:
        return UNREADABLE, f"{type(error).__name__}: {error}".encode()
    try:
        with tempdir() as folder, PassContext(**options):
            path = Path(folder.path) / f"library{suffix}"
            built = job.run(path)
            content = b"" if built.path is None else path.read_bytes()
            return DONE, pickle.dumps((built, content))
    except SlipwayError as error:
        return FAILED, f"{type(error).__name__}: {error}".encode()
    except Exception as error:
        where = traceback.format_exc(limit=-3)
        return FAILED, f"{type(error).__name__}: {error}\n{where}".encode()
