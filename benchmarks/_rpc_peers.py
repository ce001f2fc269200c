"""What ``benchmarks/rpc.py`` compares with, and where on the machine the ends run."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

BULK_BYTES = 64 << 20
BATCH = 100  # calls, one after the other, that give one figure
PING_BYTES = 48  # what a call with one argument sends and receives
ROW_TIMEOUT_S = 30.0
START_TIMEOUT_S = 90.0


def descendants(of: int) -> list[int]:
    """Return the processes below a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            parents[int(entry.parent.name)] = int(fields[1])
    found: list[int] = []
    level = [of]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found


def pin(pids: Iterable[int], cores: set[int]) -> None:
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(task.name), cores)


class Cores:
    """Where a client and what it started run.

    On one core, a message wakes a process on a core that is awake.  On two, it may wake a core
    that sleeps, which takes many times what the message does, and varies: there the raw figure
    beside it is what to compare with.
    """

    def __init__(self) -> None:
        self.all = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self.can_pin = len(self.all) > 1 and sys.platform == "linux"

    def one(self, client: int) -> None:
        """Put a client and its peers on one core."""
        self._place(client, {min(self.all)}, {min(self.all)})

    def two(self, client: int) -> None:
        """Put a client on one core, its peers on another."""
        self._place(client, {min(self.all)}, {max(self.all)})

    def free(self, client: int) -> None:
        """Let the system choose."""
        self._place(client, self.all, self.all)

    def _place(self, client: int, here: set[int], there: set[int]) -> None:
        if self.can_pin:
            pin([client], here)
            pin(descendants(client), there)


def raw_server(port_out: int) -> None:
    """Echo small messages; on the first byte 'B', take BULK_BYTES, answer, send them back."""
    listener = socket.create_server(("127.0.0.1", 0))
    os.write(port_out, b"%d\n" % listener.getsockname()[1])
    while True:
        link, _ = listener.accept()
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        memory = bytearray(BULK_BYTES)
        with link:
            while count := link.recv_into(memory, PING_BYTES):
                if memory[0] == ord("B"):
                    view = memoryview(memory)
                    while len(view):
                        view = view[link.recv_into(view) :]
                    link.sendall(b"x")
                    link.recv(1)
                    link.sendall(memory)
                else:
                    link.sendall(memoryview(memory)[:count])


class Raw:
    """The raw figures: what the kernel and Python's sockets take by themselves."""

    def __init__(self) -> None:
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                raw_server(write)
            finally:
                os._exit(0)
        self.port = int(os.read(read, 16))
        self.link = socket.create_connection(("127.0.0.1", self.port))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.message = b"x" * PING_BYTES
        self.bulk = bytearray(BULK_BYTES)

    def ping(self) -> float:
        link, message = self.link, self.message
        start = time.perf_counter()
        for _ in range(BATCH):
            link.sendall(message)
            link.recv(PING_BYTES)
        return (time.perf_counter() - start) / BATCH * 1e6

    def copy(self) -> tuple[float, float]:
        self.link.sendall(b"B" * PING_BYTES)
        time.sleep(0.01)
        start = time.perf_counter()
        self.link.sendall(self.bulk)
        self.link.recv(1)
        there = time.perf_counter() - start
        start = time.perf_counter()
        self.link.sendall(b"x")
        view = memoryview(self.bulk)
        while len(view):
            view = view[self.link.recv_into(view) :]
        back = time.perf_counter() - start
        return BULK_BYTES / there / 1e6, BULK_BYTES / back / 1e6

    def close(self) -> None:
        self.link.close()
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


class Static:
    """The static server for this machine."""

    def __init__(self) -> None:
        from slipway.toolchain import native

        server = native.build_device_server(f"{platform.machine()}-linux")
        self.process = subprocess.Popen(
            [server, "--port", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert self.process.stderr is not None
        self.port = int(self.process.stderr.readline().rsplit(b":", 1)[1])

    def terminate(self) -> None:
        self.process.terminate()
        self.process.communicate()


class Tvm:
    """apache-tvm in an environment of its own.

    A row that gives no figure in time is lost, with those of its figures that came before; the
    others go on in a new process.
    """

    def __init__(self, python: str) -> None:
        self._command = [
            python or make_environment(),
            str(Path(__file__).with_name("rpc_tvm_worker.py")),
        ]
        self.rows: list[str] = []
        self.lost: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._start()

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else os.getpid()

    def measure(self, row: str) -> float | None:
        """Return a figure for the row, None where it is lost."""
        if row not in self.rows or row in self.lost or self._process is None:
            return None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(row.encode() + b"\n")
            self._process.stdin.flush()
            figure: float = json.loads(self._line(ROW_TIMEOUT_S))
            return figure
        except (TimeoutError, OSError, ValueError) as error:
            self.lost[row] = str(error)
            print(f"apache-tvm, {row}: {error}; this row is lost", file=sys.stderr)
            self.close()
            self._start()
            return None

    def close(self) -> None:
        if self._process is None:
            return
        for pid in [*descendants(self.pid), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.communicate()
        self._process = None
        self._unread = b""

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )  # fmt: skip
        try:
            line = self._line(START_TIMEOUT_S)
            while not line.startswith(b"ready"):
                line = self._line(START_TIMEOUT_S)
            self.rows = json.loads(line.removeprefix(b"ready"))
        except (TimeoutError, OSError) as error:
            self.close()
            print(
                f"apache-tvm does not start: {error}; "
                "run benchmarks/rpc_tvm_worker.py by itself to see why",
                file=sys.stderr,
            )

    def _line(self, seconds: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError(f"no answer within {seconds:g} s")
            part = os.read(self._process.stdout.fileno(), 65536)
            if not part:
                raise OSError("its process ended")
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line


def make_environment() -> str:
    """Return the Python of an environment with apache-tvm; makes it the first time."""
    import tempfile
    import venv

    folder = Path(tempfile.gettempdir()) / "slipway-benchmark-tvm"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        packages = ["apache-tvm==0.27.*", "tornado", "psutil", "cloudpickle"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return str(python)
