"""RPC over loopback beside a raw TCP ping and a raw TCP copy of the same run.

    python benchmarks/rpc.py [--server python|static] [--rounds N] [--tvm [PYTHON]] [--json FILE]

Every row is measured in turn in each round, so that all rows see the same machine; the table shows
the median of the rounds, the best, and the ratio to the raw figure beside it.  ``--tvm`` measures
apache-tvm in the same rounds, with a Python that has it (one is made in the temporary folder where
none is named).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np

from slipway import nd, rpc

CALLS = 2000
BULK_BYTES = 64 << 20
PING_BYTES = 48  # what a call with one argument sends and receives


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
        for _ in range(CALLS):
            link.sendall(message)
            link.recv(PING_BYTES)
        return (time.perf_counter() - start) / CALLS * 1e6

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
        return megabytes(there), megabytes(time.perf_counter() - start)

    def close(self) -> None:
        self.link.close()
        os.kill(self.pid, 15)
        os.waitpid(self.pid, 0)


def megabytes(seconds: float) -> float:
    return BULK_BYTES / seconds / 1e6


def per_call(function: Callable[[], object], count: int = CALLS) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count * 1e6


def once(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


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


def kernel(session: rpc.RPCSession) -> rpc.RemoteFunction:
    """A compiled function of two integers, so that the call costs nothing itself."""
    import tempfile

    from slipway.toolchain import native, zig
    from slipway.toolchain.link import link_shared

    source = Path(__file__).resolve().parent.parent / "tests" / "rpc" / "kernels.c"
    triple = f"{platform.machine()}-linux-gnu"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernels.o"
        flags = ["-O2", "-ffreestanding", "-fno-sanitize=all", "-fPIC", "-fvisibility=hidden", "-c"]
        include = ["-I", str(native.include_path()), f'-DTRIPLE="{triple}"', '-DISA=""']
        target = zig.musl_target(triple)
        files = ["-o", str(out), str(source)]
        zig.run_zig(["cc", "-target", target, *flags, *include, *files], purpose="a kernel")
        session.upload(link_shared([out], triple, Path(folder) / "kernels.so"))
    return session.load_module("kernels.so")["add_ints"]


def measure(server_kind: str, rounds: int, peer: Peer | None) -> dict[str, list[float]]:
    raw = Raw()
    server = Static() if server_kind == "static" else rpc.Server(port=0, silent=True)
    rows: dict[str, list[float]] = {}

    def note(name: str, figure: float) -> None:
        rows.setdefault(name, []).append(figure)

    tracker = rpc.Tracker("127.0.0.1", 0, silent=True)
    address = ("127.0.0.1", tracker.port)
    device = rpc.Server("127.0.0.1", 0, key="k", tracker_addr=address, silent=True)
    try:
        session = rpc.connect("127.0.0.1", server.port)
        client = rpc.connect_tracker(*address)
        while not client.summary()["server_info"]:
            time.sleep(0.05)
        add = kernel(session)
        small = np.zeros(1, "float32")
        remote_small = nd.array(small, session.cpu(0))
        large = np.ones(BULK_BYTES // 4, "float32")
        remote_large = nd.array(large, session.cpu(0))
        content = large.tobytes()
        for _ in range(rounds):
            note("raw ping", raw.ping())
            note("call", per_call(lambda: add(1, 2)))
            note("raw ping", raw.ping())
            note("pipelined call", pipelined(session, add))
            note("4-byte copy there", per_call(lambda: remote_small.copyfrom(small)))
            note("4-byte copy back", per_call(lambda: remote_small.copyto(small)))
            there, back = raw.copy()
            note("raw copy there", there)
            note("raw copy back", back)
            note("copy there", megabytes(once(lambda: remote_large.copyfrom(large))))
            note("copy back", megabytes(once(lambda: remote_large.copyto(large))))
            note("upload", megabytes(once(lambda: session.upload(content, "f"))))
            note("download", megabytes(once(lambda: session.download("f"))))
            note("connect", connect(server.port))
            note("tracker request", request(client))
            note("tracker summary", per_call(client.summary, 20) / 1e3)
            for name, figure in peer.measure().items() if peer is not None else ():
                note(f"tvm: {name}", figure)
        session.close()
    finally:
        device.terminate()
        tracker.terminate()
        server.terminate()
        raw.close()
    return rows


def request(client: rpc.TrackerSession) -> float:
    """Milliseconds from the request to the session, on a device that is free."""
    while not client.summary()["queue_info"]["k"]["free"]:
        time.sleep(0.02)
    start = time.perf_counter()
    session = client.request("k")
    taken = time.perf_counter() - start
    session.close()
    return taken * 1e3


class Peer:
    """apache-tvm in an environment of its own."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("rpc_tvm.py")
        self.process = subprocess.Popen(
            [python or make_environment(), script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )  # fmt: skip
        self.line("ready")

    def line(self, wanted: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(wanted):
                return line
        raise RuntimeError(
            "apache-tvm's part ended; run benchmarks/rpc_tvm.py by itself to see why"
        )

    def measure(self) -> dict[str, float]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        rows: dict[str, float] = json.loads(self.line("{"))
        return rows

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


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


def pipelined(session: rpc.RPCSession, function: rpc.RemoteFunction) -> float:
    calls = [(1, 2)] * CALLS
    return once(lambda: session.call_many(function, calls)) / CALLS * 1e6


def connect(port: int) -> float:
    start = time.perf_counter()
    session = rpc.connect("127.0.0.1", port)
    taken = time.perf_counter() - start
    session.close()
    return taken * 1e3


# row, unit, raw row to compare with, goal in words, goal
GOALS: list[tuple[str, str, str, str, Callable[[float, float], bool]]] = [
    ("raw ping", "us", "", "", lambda _, __: True),
    ("call", "us", "raw ping", "<= 1.3 x raw", lambda x, raw: x <= 1.3 * raw),
    ("pipelined call", "us", "raw ping", "<= 0.13 x raw", lambda x, raw: x <= 0.13 * raw),
    ("4-byte copy there", "us", "raw ping", "< 30 us", lambda x, _: x < 30),
    ("4-byte copy back", "us", "raw ping", "< 30 us", lambda x, _: x < 30),
    ("raw copy there", "MB/s", "", "", lambda _, __: True),
    ("raw copy back", "MB/s", "", "", lambda _, __: True),
    ("copy there", "MB/s", "raw copy there", ">= 1000 MB/s", lambda x, _: x >= 1000),
    ("copy back", "MB/s", "raw copy back", ">= 1000 MB/s", lambda x, _: x >= 1000),
    ("upload", "MB/s", "raw copy there", ">= 1000 MB/s", lambda x, _: x >= 1000),
    ("download", "MB/s", "raw copy back", "", lambda _, __: True),
    ("connect", "ms", "", "< 5 ms", lambda x, _: x < 5),
    ("tracker request", "ms", "", "< 5 ms", lambda x, _: x < 5),
    ("tracker summary", "ms", "", "", lambda _, __: True),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=["python", "static"], default="python")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--tvm", nargs="?", const="", help="beside apache-tvm, with this Python or one it makes"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    peer = None if arguments.tvm is None else Peer(arguments.tvm)
    try:
        rows = measure(arguments.server, arguments.rounds, peer)
    finally:
        if peer is not None:
            peer.close()
    print(f"{arguments.server} server, {arguments.rounds} rounds, {platform.machine()}")
    print(f"{'':<20}{'median':>10}{'best':>10} {'':<5}{'x raw':>8}{'tvm':>10}  goal")
    report = {}
    for name, unit, beside, words, reached in GOALS:
        figures = rows[name]
        median = statistics.median(figures)
        best = max(figures) if unit == "MB/s" else min(figures)
        raw = statistics.median(rows[beside]) if beside else 0.0
        ratio = median / raw if raw else None
        verdict = ("reached: " if reached(median, raw) else "MISSED: ") + words if words else ""
        shown = f"{ratio:8.2f}" if ratio is not None else " " * 8
        theirs = rows.get(f"tvm: {name}", [])
        other = f"{statistics.median(theirs):>10.2f}" if theirs else " " * 10
        print(f"{name:<20}{median:>10.2f}{best:>10.2f} {unit:<5}{shown}{other}  {verdict}")
        report[name] = {
            "unit": unit, "median": median, "best": best, "all": figures, "ratio_to_raw": ratio,
            "apache_tvm": theirs,
        }  # fmt: skip
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"server": arguments.server, "rows": report}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
