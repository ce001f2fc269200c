"""Many graphs, each in a forked child: what a child dies of is a finding like any other."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 120.0  # of processor time for one graph, its compilation included
PATIENCE = 10  # times as long by the clock, for one that waits; other work may share the machine
BATCH = 40  # graphs of one child, which ends then and gives its memory back


@dataclass(frozen=True)
class Finding:
    """What is wrong with the graph of a seed."""

    seed: int
    problem: str


def isolated(
    judge: Callable[[int], str], seeds: Iterable[int], limit_s: float = LIMIT_S
) -> Iterator[Finding]:
    """Yield a finding for each seed, in order; its problem is empty where all is well.

    `judge` gives the problem; it may raise, compute for longer than `limit_s` seconds (or wait for
    `PATIENCE` times as many), or end the process.
    """
    todo = list(seeds)
    while todo:
        batch, rest = todo[:BATCH], todo[BATCH:]
        done = 0
        for finding in _child(judge, batch, limit_s):
            done += 1
            yield finding
        todo = batch[done:] + rest


def _child(judge: Callable[[int], str], seeds: list[int], limit_s: float) -> Iterator[Finding]:
    """Run one child over `seeds`; ends early behind one that ended the child."""
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE):
            signal.signal(number, signal.SIG_DFL)  # a driver of this process may have taken them
        _work(judge, seeds, write)
    os.close(write)
    lines = _Lines(read)
    try:
        for seed in seeds:
            line = lines.next(child, limit_s)
            if line is None:
                problem = _end_of(child, lines.ended, limit_s)
                child = 0
                yield Finding(seed, problem)
                return
            yield Finding(seed, json.loads(line))
    finally:
        os.close(read)
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _work(judge: Callable[[int], str], seeds: list[int], write: int) -> None:
    """The child's life."""
    status = 1
    try:
        for seed in seeds:
            try:
                problem = judge(seed)
            except Exception as error:  # whatever it raises is found
                where = traceback.format_exc(limit=-1).splitlines()[1].strip()
                problem = f"{type(error).__name__}: {error} ({where})"
            os.write(write, (json.dumps(problem[:2000]) + "\n").encode())
        status = 0
    finally:
        with contextlib.suppress(OSError):
            os.close(write)
        os._exit(status)


def _end_of(child: int, ended: bool, limit_s: float) -> str:
    """Say what became of a child that gave no answer."""
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return f"no answer within {limit_s:.0f} s"
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"the process ended with {signal.Signals(os.WTERMSIG(status)).name}"
    return f"the process ended with status {os.waitstatus_to_exitcode(status)}"


class _Lines:
    """Lines from a pipe, with a deadline."""

    def __init__(self, file: int) -> None:
        self.file, self.buffer, self.ended = file, b"", False

    def next(self, child: int, limit_s: float) -> bytes | None:
        began, before = time.monotonic(), _processor_seconds(child)
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.file], [], [], min(limit_s / 10, 2.0))
            if not ready:
                waited = time.monotonic() - began
                if waited < limit_s:
                    continue
                spent = _processor_seconds(child) - before
                if spent >= limit_s or waited >= PATIENCE * limit_s:
                    return None
                continue
            data = os.read(self.file, 65536)
            if not data:
                self.ended = True
                return None
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line


def _processor_seconds(process: int) -> float:
    """Return what a process and its children, compilers and emulators, have computed so far."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = stat.parent.name, stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if process in (int(number), int(rest[1])):
            ticks += sum(map(int, rest[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
