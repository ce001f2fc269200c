"""The Python endpoints against mutated frames: trackers, proxies, and the client's own greeting.

    python benchmarks/fuzz_rpc.py [--frames N] [--seed S]

Streams of valid frames are damaged (bits, cuts, repetitions, sizes at their edges) and given to a
tracker and a proxy in this process, each stream on a connection of its own; and to the functions
that read greetings and errors.  No exception may leave an endpoint, none may take longer than
its limit, no connection or device may be left when its stream is over, and memory has to stay flat.
The C session has a fuzzer of its own (tests/crt/rpc_session_fuzz.c).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import resource
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from slipway.rpc import protocol
from slipway.rpc import proxy as proxy_module
from slipway.rpc.connections import greeting
from slipway.rpc.connections.greeting import Streams
from slipway.rpc.protocol import Code, Failure, Role, frame
from slipway.rpc.proxy import ProxyServer
from slipway.rpc.tracker import TrackerServer

EDGES = (0, 1, 7, 8, 15, 16, 31, 32, 255, 1023, 1024, 1025, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
AT_ONCE = 64
STREAM_LIMIT_S = 20.0  # for one stream, on a loaded machine


def text(value: bytes) -> bytes:
    return value + b"\0"


def hello(role: int, key: bytes) -> bytes:
    return frame(Code.HELLO, 1, protocol.hello_payload(role, key, b"fuzz"))


def register(key: bytes) -> bytes:
    payload = struct.pack("<IIII", 1000, random.randrange(4), len(key), 0) + text(key) + b"\0"
    return frame(Code.REGISTER, 2, payload)


def request(key: bytes) -> bytes:
    payload = struct.pack("<iIII", random.randrange(-3, 3), random.randrange(1, 4), len(key), 0)
    return frame(Code.REQUEST, 3, payload + text(key))


def device_frames() -> list[bytes]:
    lease = b"%032x" % random.randrange(1 << 128)
    idle = struct.pack("<II", 32, 4) + text(lease) + text(b"oops")
    return [
        frame(Code.HEARTBEAT, 0, b""),
        frame(Code.IDLE, 0, idle),
        frame(Code.RETURN, random.randrange(5), b""),
        frame(Code.ERROR, random.randrange(5), protocol.error_payload(Failure.BUSY, "in use")),
    ]


def client_frames() -> list[bytes]:
    return [
        request(b"k"),
        frame(Code.SUMMARY, 4, b""),
        frame(Code.KICK, 5, struct.pack("<II", 1, 3) + text(b"abc")),
        frame(Code.DRAIN, 6, struct.pack("<II", 1, 1)),
        frame(random.randrange(200), 7, random.randbytes(random.randrange(64))),
    ]


def stream() -> tuple[bytes, int]:
    """Return a damaged stream, and how many frames it had."""
    role = random.choice((*Role, Role.DEVICE, Role.CLIENT))
    frames = [hello(role, random.choice((b"k", b"k", b"", b"k:lease", b"x" * 200)))]
    if role == Role.DEVICE:
        frames.append(register(random.choice((b"", b"lease"))))
        frames += random.choices(device_frames(), k=random.randrange(8))
    else:
        frames += random.choices(client_frames(), k=random.randrange(8))
    count = len(frames)
    if random.random() < 0.2:
        random.shuffle(frames)
    content = bytearray(b"".join(frames))
    for _ in range(random.randrange(5)):
        mutate(content)
    return bytes(content), count


def mutate(content: bytearray) -> None:
    if len(content) < 8:
        return
    at = random.randrange(len(content) - 7)
    match random.randrange(6):
        case 0:
            content[at] ^= 1 << random.randrange(8)
        case 1:
            struct.pack_into("<I", content, at, random.choice(EDGES))
        case 2:
            struct.pack_into("<I", content, at & ~3, random.choice(EDGES))
        case 3:
            del content[at:]
        case 4:
            content[at:at] = random.randbytes(random.randrange(32))
        case 5:
            content += content[at : at + 64]


def parse(content: bytes) -> None:
    """What reads frames without a connection."""
    for at in range(0, min(len(content), 64), 8):
        piece = content[at:]
        said = protocol.read_hello(piece)
        if said is not None:
            protocol.read_hello(protocol.with_key(piece, "other"))
        protocol.read_proof(piece)
        with contextlib.suppress(struct.error):
            protocol.read_error(piece)


async def give(handle: object, content: bytes) -> None:
    """Let an endpoint serve one connection that sends `content` and closes."""
    ours, theirs = socket.socketpair()
    streams: Streams = await asyncio.open_connection(sock=theirs, limit=65536)
    reader, writer = await asyncio.open_connection(sock=ours, limit=65536)
    serving = asyncio.ensure_future(handle(*streams))  # type: ignore[operator]
    writer.write(content)
    writer.write_eof()
    with contextlib.suppress(OSError):
        while await reader.read(65536):
            pass
    writer.close()
    await asyncio.wait_for(serving, STREAM_LIMIT_S)


async def run(frames: int) -> int:
    greeting._WRONG_TOKEN_DELAY_S = 0.0  # who guesses a token waits for a second
    proxy_module.FREE_TIMEOUT_S = proxy_module.OPEN_TIMEOUT_S = 0.02
    tracker, proxy = TrackerServer("token", "admin"), ProxyServer("token")
    unexpected: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: unexpected.append(what))
    done = sessions = 0
    memory = 0
    start = time.monotonic()
    while done < frames:
        batch = [stream() for _ in range(AT_ONCE)]
        endpoints = [random.choice((tracker.handle, proxy._handle)) for _ in batch]
        await asyncio.gather(
            *(give(end, content) for end, (content, _) in zip(endpoints, batch, strict=True))
        )
        for content, count in batch:
            parse(content)
            done += count
            sessions += 1
        if unexpected:
            print(f"FAILED: {unexpected[0]}")
            return 1
        if sessions == AT_ONCE * 20:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    left = [*tracker.farm.devices.values(), *proxy._devices, *proxy._tickets]
    waiting = tracker.farm.waiting
    seconds = time.monotonic() - start
    print(
        f"{done} frames in {sessions} streams, {seconds:.0f} s, {done / seconds:.0f} a second; "
        f"memory grew by {grown if memory else 0} KiB after the first {AT_ONCE * 20} streams"
    )
    if left or waiting or (memory and grown > 65536):
        print(f"FAILED: left over {left[:3]}, waiting {waiting}, grown {grown} KiB")
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=20_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    return asyncio.run(run(arguments.frames))


if __name__ == "__main__":
    sys.exit(main())
