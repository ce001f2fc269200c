"""RPC over loopback beside a raw TCP ping and a raw TCP copy of the same run.

    python benchmarks/rpc.py [--server python|static] [--rounds N] [--tvm [PYTHON]] [--json FILE]

Each row is measured in turn, in many short pieces, so that all rows see the same machine.  The
small ones are measured with both ends on one core, where a message takes what the two programs
and the kernel need, and on two, where it mostly takes what waking a core does; their figure is that
of the best tenth of the batches of 100, which other work on the machine does not change.  That of
the others is the median.  ``--tvm`` measures apache-tvm in the same rounds, with a Python that has
it (one is made in the temporary folder where none is named).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _rpc_peers import BATCH, BULK_BYTES, Cores, Raw, Static, Tvm

from slipway import nd, rpc

PIPELINED = 2000
BATCHES = 12  # of each small row in each round
TWO = ", two cores"


def per_call(function: Callable[[], object], count: int = BATCH) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count * 1e6


def megabytes(function: Callable[[], object]) -> float:
    return BULK_BYTES / once(function) / 1e6


def once(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


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


class Run:
    """The rows so far."""

    def __init__(self, peer: Tvm | None) -> None:
        self.rows: dict[str, list[float]] = {}
        self.peer = peer
        self.cores = Cores()

    def note(self, name: str, figure: float) -> None:
        self.rows.setdefault(name, []).append(figure)

    def beside(self, row: str, suffix: str = "") -> None:
        """Measure the row of apache-tvm."""
        figure = self.peer.measure(row) if self.peer is not None else None
        if figure is not None:
            self.note(f"tvm: {row}{suffix}", figure)

    def small(self, rows: dict[str, Callable[[], float]], suffix: str) -> None:
        """Measure short rows in turn, on one core (no suffix) or two."""
        put = self.cores.two if suffix else self.cores.one
        put(os.getpid())
        if self.peer is not None:
            put(self.peer.pid)
        for _ in range(BATCHES):
            for name, function in rows.items():
                self.note(name + suffix, function())
                self.beside(name, suffix)
        self.cores.free(os.getpid())


def measure(server_kind: str, rounds: int, peer: Tvm | None) -> dict[str, list[float]]:
    run = Run(peer)
    raw = Raw()
    server = Static() if server_kind == "static" else rpc.Server(port=0, silent=True)
    tracker = rpc.Tracker("127.0.0.1", 0, silent=True)
    address = ("127.0.0.1", tracker.port)
    device = rpc.Server("127.0.0.1", 0, key="k", tracker_addr=address, silent=True)
    try:
        session = rpc.connect("127.0.0.1", server.port)
        client = rpc.connect_tracker(*address)
        while not client.summary()["server_info"]:
            time.sleep(0.05)
        add = kernel(session)
        value = np.zeros(1, "float32")
        remote_value = nd.array(value, session.cpu(0))
        large = np.ones(BULK_BYTES // 4, "float32")
        remote_large = nd.array(large, session.cpu(0))
        content = large.tobytes()
        small = {
            "raw ping": raw.ping,
            "call": lambda: per_call(lambda: add(1, 2)),
            "4-byte copy there": lambda: per_call(lambda: remote_value.copyfrom(value)),
            "4-byte copy back": lambda: per_call(lambda: remote_value.copyto(value)),
            "pipelined call": lambda: pipelined(session, add),
        }
        large_rows: dict[str, Callable[[], float]] = {
            "copy there": lambda: megabytes(lambda: remote_large.copyfrom(large)),
            "copy back": lambda: megabytes(lambda: remote_large.copyto(large)),
            "upload": lambda: megabytes(lambda: session.upload(content, "f")),
            "download": lambda: megabytes(lambda: session.download("f")),
            "connect": lambda: connect(server.port),
            "tracker request": lambda: request(client),
            "tracker summary": lambda: once(client.summary) * 1e3,
        }
        for _ in range(rounds):
            run.small(small, "")
            if run.cores.can_pin:
                run.small(small, TWO)
            there, back = raw.copy()
            run.note("raw copy there", there)
            run.note("raw copy back", back)
            for name, function in large_rows.items():
                for _ in range(1 if "copy" in name or "load" in name else 5):
                    run.note(name, function())
                    run.beside(name)
        session.close()
    finally:
        device.terminate()
        tracker.terminate()
        server.terminate()
        raw.close()
    return run.rows


def request(client: rpc.TrackerSession) -> float:
    """Milliseconds from the request to the session, on a device that is free."""
    while not client.summary()["queue_info"]["k"]["free"]:
        time.sleep(0.02)
    start = time.perf_counter()
    session = client.request("k")
    taken = time.perf_counter() - start
    session.close()
    return taken * 1e3


def pipelined(session: rpc.RPCSession, function: rpc.RemoteFunction) -> float:
    calls = [(1, 2)] * PIPELINED
    return once(lambda: session.call_many(function, calls)) / PIPELINED * 1e6


def connect(port: int) -> float:
    start = time.perf_counter()
    session = rpc.connect("127.0.0.1", port)
    taken = time.perf_counter() - start
    session.close()
    return taken * 1e3


# row, unit, raw row to compare with, goal in words, goal
Goal = Callable[[float, float], bool]
SMALL: list[tuple[str, str, str, str, Goal]] = [
    ("raw ping", "us", "", "", lambda _, __: True),
    ("call", "us", "raw ping", "<= 1.3 x raw", lambda x, raw: x <= 1.3 * raw),
    ("pipelined call", "us", "raw ping", "<= 0.13 x raw", lambda x, raw: x <= 0.13 * raw),
    ("4-byte copy there", "us", "raw ping", "< 30 us", lambda x, _: x < 30),
    ("4-byte copy back", "us", "raw ping", "< 30 us", lambda x, _: x < 30),
]
LARGE: list[tuple[str, str, str, str, Goal]] = [
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
GOALS = [
    *SMALL,
    *(
        (row + TWO, unit, beside and beside + TWO, words if "raw" in words else "", goal)
        for row, unit, beside, words, goal in SMALL
    ),
    *LARGE,
]


def best_tenth(figures: list[float], unit: str) -> float:
    """The figure that a tenth of them are better than."""
    ordered = sorted(figures, reverse=unit == "MB/s")
    return ordered[len(ordered) // 10]


def figure_of(figures: list[float], unit: str) -> float:
    return best_tenth(figures, unit) if unit == "us" else statistics.median(figures)


def report(rows: dict[str, list[float]], lost: dict[str, str]) -> dict[str, object]:
    """Print the table; return it for the file."""
    print(
        f"{'':<28}{'best tenth':>11}{'median':>10} {'':<5}{'x raw':>8}{'tvm':>10}{'x tvm':>8}  goal"
    )
    written: dict[str, object] = {}
    for name, unit, beside, meaning, reached in GOALS:
        if name not in rows:
            continue
        figures, theirs = rows[name], rows.get(f"tvm: {name}", [])
        ours = figure_of(figures, unit)
        raw = figure_of(rows[beside], unit) if beside else 0.0
        peer = figure_of(theirs, unit) if theirs else 0.0
        ratio = ours / raw if raw else None
        verdict = ("reached: " if reached(ours, raw) else "MISSED: ") + meaning if meaning else ""
        shown = f"{ratio:8.2f}" if ratio is not None else " " * 8
        other = f"{peer:>10.2f}{ours / peer:>8.2f}" if theirs else f"{'':>18}"
        if name.removesuffix(TWO) in lost:
            other = f"{'lost':>10}{'':>8}"
        print(
            f"{name:<28}{best_tenth(figures, unit):>11.2f}{statistics.median(figures):>10.2f} "
            f"{unit:<5}{shown}{other}  {verdict}".rstrip()
        )
        written[name] = {
            "unit": unit, "figure": ours, "all": figures, "ratio_to_raw": ratio,
            "apache_tvm": theirs,
        }  # fmt: skip
    return written


def machine() -> str:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2] for line in info.read_text().splitlines() if "model name" in line
        ]
        model = names[0].strip() if names else model
    return f"{os.cpu_count()} cores ({model}), load {os.getloadavg()[0]:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", choices=["python", "static"], default="python")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--tvm", nargs="?", const="", help="beside apache-tvm, with this Python or one it makes"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    title = f"{arguments.server} server, {arguments.rounds} rounds, {machine()}"
    peer = None if arguments.tvm is None else Tvm(arguments.tvm)
    try:
        rows = measure(arguments.server, arguments.rounds, peer)
    finally:
        if peer is not None:
            peer.close()
    print(title)
    written = report(rows, peer.lost if peer is not None else {})
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"server": arguments.server, "rows": written}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
