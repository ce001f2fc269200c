"""One tracker under load: simulated devices and clients over loopback, with every hand-out checked.

    python -m benchmarks rpc_load [--devices 1000] [--clients 200] [--seconds 300] [--json FILE]

Each client asks for a device of one of ten kinds, holds it a while, lets it go, waits a while.
Some devices break their connection and come back.  Two readers follow the tracker's page, and its
metrics are read as Prometheus does.  The run fails where a request stays without its answer, a
device has two holders at a time, a lease is not the one that the device was told, the 99th
percentile of a granted request is over the limit, or the tracker's memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from slipway.rpc.protocol import HEADER, Code, Role, frame, hello_payload

KINDS = 10
HEARTBEAT_S = 3.0
ANSWER_TIMEOUT_S = 60.0


class Peer:
    """A simulated device or client: one greeted connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def greet(cls, port: int, role: Role, key: str, name: str) -> Peer:
        peer = cls(*await asyncio.open_connection("127.0.0.1", port))
        peer.send(Code.HELLO, 1, hello_payload(role, key.encode(), name.encode()))
        code, _, _ = await peer.receive()
        assert code == Code.WELCOME, code
        return peer

    def send(self, code: int, number: int, payload: bytes = b"") -> None:
        self.writer.write(frame(code, number, payload))

    async def receive(self) -> tuple[int, int, bytes]:
        size, code, _, number, _ = HEADER.unpack(await self.reader.readexactly(HEADER.size))
        return code, number, await self.reader.readexactly(size)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class Device:
    """Registers, accepts leases, says when it is idle; `holder` is the client that has it."""

    def __init__(self, load: Load, number: int) -> None:
        self.load, self.number, self.key = load, 1000 + number, f"kind {number % KINDS}"
        self.peer: Peer | None = None
        self.lease = b""
        self.holder: int | None = None

    async def run(self) -> None:
        while True:
            peer = await Peer.greet(self.load.port, Role.DEVICE, self.key, "a simulated device")
            peer.send(Code.REGISTER, 2, struct.pack("<IIII", self.number, 0, 0, 0) + b"\0\0")
            assert (await peer.receive())[0] == Code.RETURN
            self.peer = peer
            self.load.ready.release()
            beating = asyncio.ensure_future(self.beat(peer))
            try:
                while True:
                    code, number, payload = await peer.receive()
                    assert code == Code.ASSIGN, code
                    assert not self.lease, "assigned while in use"
                    self.lease = payload[8:40]
                    peer.send(Code.RETURN, number)
            except asyncio.IncompleteReadError:
                pass  # it broke the connection itself
            finally:
                beating.cancel()
                await peer.close()

    async def beat(self, peer: Peer) -> None:
        await asyncio.sleep(random.random() * HEARTBEAT_S)
        while True:
            peer.send(Code.HEARTBEAT, 0)
            await asyncio.sleep(HEARTBEAT_S)

    def release(self, client: int, lease: bytes) -> None:
        if self.holder != client or lease != self.lease:
            return  # it has been lost meanwhile
        self.holder, self.lease = None, b""
        assert self.peer is not None
        self.peer.send(Code.IDLE, 0, struct.pack("<II", 32, 0) + lease + b"\0\0")

    def lose(self) -> None:
        """Break the connection, and with it whoever has the device."""
        if self.peer is not None:
            self.holder, self.lease = None, b""
            self.peer.writer.transport.abort()
            self.load.lost += 1


class Load:
    def __init__(self, port: int, options: argparse.Namespace) -> None:
        self.port, self.options = port, options
        self.devices = {1000 + n: Device(self, n) for n in range(options.devices)}
        self.ready = asyncio.Semaphore(0)
        self.requested = self.granted = self.lost = self.events = self.scrapes = 0
        self.waits_s: list[float] = []
        self.memory_kb: list[int] = []
        self.is_over = False

    async def client(self, number: int) -> None:
        chooser = random.Random(number)
        peer = await Peer.greet(self.port, Role.CLIENT, "", f"client {number}")
        await asyncio.sleep(chooser.random() * self.options.think)
        while not self.is_over:
            key = f"kind {chooser.randrange(KINDS)}".encode()
            head = struct.pack("<iIII", chooser.randrange(3), 0, len(key), 0)
            start = time.perf_counter()
            self.requested += 1
            peer.send(Code.REQUEST, self.requested & 0x7FFFFFFF, head + key + b"\0")
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                code, _, payload = await peer.receive()
            self.waits_s.append(time.perf_counter() - start)
            assert code == Code.RETURN, payload
            self.granted += 1
            address, lease_size, _, _ = struct.unpack_from("<IIII", payload)
            lease = payload[16 : 16 + lease_size]
            device = self.devices[address]
            if device.lease == lease:  # else it broke its connection since
                assert device.holder is None, f"device {address} was handed out twice"
                assert device.key.encode() == key
                device.holder = number
            await asyncio.sleep(chooser.expovariate(1 / self.options.hold))
            device.release(number, lease)
            await asyncio.sleep(chooser.expovariate(1 / self.options.think))
        await peer.close()

    async def churn(self) -> None:
        while self.options.churn:
            await asyncio.sleep(random.expovariate(self.options.churn))
            random.choice(list(self.devices.values())).lose()

    async def watch(self, pid: int) -> None:
        while True:
            status = Path(f"/proc/{pid}/status").read_text()
            self.memory_kb.append(int(re.search(r"VmRSS:\s+(\d+)", status).group(1)))
            await asyncio.sleep(1)

    async def read_page(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=16 << 20)
        writer.write(b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while line := await reader.readline():
            self.events += line.startswith(b"event:")

    async def scrape(self, port: int) -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            self.scrapes += b"slipway_devices{" in await reader.read()
            writer.close()
            await asyncio.sleep(5)

    async def run(self, pid: int, page: int) -> None:
        start = time.monotonic()
        running = [asyncio.ensure_future(device.run()) for device in self.devices.values()]
        for _ in self.devices:
            await self.ready.acquire()
        print(f"{len(self.devices)} devices registered in {time.monotonic() - start:.1f} s")
        others = [self.watch(pid), self.churn(), self.scrape(page)]
        others += [self.read_page(page) for _ in range(2)]
        helpers = [asyncio.ensure_future(other) for other in others]
        clients = [asyncio.ensure_future(self.client(n)) for n in range(self.options.clients)]
        await asyncio.wait([*running, *helpers, *clients], timeout=self.options.seconds,
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        self.is_over = True
        await asyncio.gather(*clients)  # nobody is left without an answer
        for task in (*running, *helpers):
            if task.done():
                task.result()
            task.cancel()
        await asyncio.gather(*running, *helpers, return_exceptions=True)

    def result(self) -> dict[str, float]:
        waits = sorted(self.waits_s)
        steady = self.memory_kb[len(self.memory_kb) // 4 :]
        half = max(1, len(steady) // 2)
        return {
            "devices": self.options.devices,
            "clients": self.options.clients,
            "seconds": self.options.seconds,
            "requests": self.requested,
            "granted": self.granted,
            "requests_per_s": round(self.requested / self.options.seconds, 1),
            "lost_devices": self.lost,
            "page_events": self.events,
            "scrapes": self.scrapes,
            "p50_ms": round(waits[len(waits) // 2] * 1e3, 2),
            "p99_ms": round(waits[int(len(waits) * 0.99)] * 1e3, 2),
            "max_ms": round(waits[-1] * 1e3, 2),
            "memory_mb": round(self.memory_kb[-1] / 1024, 1),
            "growth_mb": round(
                (statistics.median(steady[half:] or steady) - statistics.median(steady[:half]))
                / 1024, 2,
            ),
        }  # fmt: skip


def start_tracker() -> tuple[subprocess.Popen[str], int, int]:
    """Return the tracker's process, its port and its page's."""
    command = [sys.executable, "-m", "slipway.exec.rpc_tracker", "--silent", "--port", "0"]
    search = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH", "")]))
    process = subprocess.Popen(
        [*command, "--web", "0"], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": search},
    )  # fmt: skip
    ports = [int(re.search(r":(\d+)/?$", process.stderr.readline()).group(1)) for _ in range(2)]
    return process, ports[0], ports[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--hold", type=float, default=0.5, help="mean seconds (%(default)s)")
    parser.add_argument("--think", type=float, default=0.5, help="mean seconds (%(default)s)")
    parser.add_argument("--churn", type=float, default=1.0, help="devices lost per second")
    parser.add_argument("--max-p99", type=float, default=100.0, metavar="MS")
    parser.add_argument("--max-growth", type=float, default=2.0, metavar="MB")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    process, port, page = start_tracker()
    try:
        load = Load(port, options)
        asyncio.run(load.run(process.pid, page))
        result = load.result()
        assert process.poll() is None, "the tracker ended"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    for name, value in result.items():
        print(f"{name:<16}{value:>12}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    complaints = []
    if result["granted"] != result["requests"]:
        complaints.append("requests stayed without a device")
    if result["p99_ms"] > options.max_p99:
        complaints.append(f"p99 is over {options.max_p99:g} ms")
    if result["growth_mb"] > options.max_growth:
        complaints.append(f"the tracker grew by more than {options.max_growth:g} MB")
    if not result["page_events"] or not result["scrapes"]:
        complaints.append("the page or the metrics did not answer")
    print("FAILED: " + "; ".join(complaints) if complaints else "ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
