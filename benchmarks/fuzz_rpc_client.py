"""The client's session against a device that lies: mutated replies, callbacks, output, data.

    python benchmarks/fuzz_rpc_client.py [--frames N] [--seed S] [--library FILE]

Each request finds its reply, damaged or not, in the connection before it is sent, and behind it
the connection's end, so that nothing waits.  Whatever comes, an operation has to return or to raise
RPCError (or what the device's error says); memory has to stay flat.  ``--library`` takes the place
of the runtime library: one that was built with AddressSanitizer sees the C client's accesses, too

    LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 python ...
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from fuzz_rpc import EDGES, mutate

from slipway.errors import RPCError
from slipway.rpc import native as client_library
from slipway.rpc.array import RemoteNDArray
from slipway.rpc.client import RPCSession
from slipway.rpc.link import Link
from slipway.rpc.module import RemoteFunction, RemoteModule
from slipway.rpc.protocol import (
    TENSOR_HEAD,
    VALUE,
    Code,
    Failure,
    Tag,
    Welcome,
    error_payload,
    frame,
)
from slipway.toolchain import native as toolchain

FLAG_MORE = 1
REPLY_BYTES = 1 << 16  # of the client's frames: small, so that edges are met
GROWTH_BYTES = 96 << 20


def number() -> int:
    return random.choice((*EDGES, random.randrange(1 << 62), -1, -(1 << 63)))


def tensor() -> bytes:
    """A tensor's descriptor; mostly one that is possible."""
    shape = [random.randrange(1, 5) for _ in range(random.randrange(4))]
    nbytes = 4
    for extent in shape:
        nbytes *= extent
    if random.random() < 0.2:
        shape = [number() for _ in shape]
    head = TENSOR_HEAD.pack(7, 1, 0, random.choice((2, 2, 2, 0, 9)), 32, 1, len(shape), nbytes)
    return head + struct.pack(f"<{len(shape)}q", *(max(-(1 << 63), x) for x in shape))


def value(at: int, nested: bool = True) -> tuple[bytes, bytes]:
    """A value for offset `at`, and what it refers to, which goes behind it."""
    kind = random.randrange(9 if nested else 8)
    tail = at + 16
    if kind == 0:
        return VALUE.pack(Tag.NONE, 0, 0), b""
    if kind == 1:
        return VALUE.pack(Tag.INT, 0, max(-(1 << 63), number() & ((1 << 62) - 1))), b""
    if kind == 2:
        return VALUE.pack(Tag.FLOAT, 0, 1 << 60), b""
    if kind == 3:
        return VALUE.pack(random.choice((Tag.STR, Tag.BYTES)), 5, tail), b"hello\0\0\0"
    if kind == 4:
        return VALUE.pack(Tag.TENSOR_DESC, 0, tail), tensor()
    if kind == 5:
        return VALUE.pack(random.choice((Tag.FUNCTION, Tag.MODULE)), 0, 5), b""
    if kind == 6:
        return VALUE.pack(Tag.BOOL, 0, 1), b""
    if kind == 7:
        return VALUE.pack(random.randrange(140), random.choice(EDGES), tail), b"\xff" * 24
    count = random.randrange(5)
    items = [value(tail + 16 * i, nested=random.random() < 0.1)[0] for i in range(count)]
    return VALUE.pack(Tag.LIST, count, tail), b"".join(items)


def returned(request: int) -> bytes:
    head, after = value(0)
    return frame(Code.RETURN, request, head + after)


def data(request: int, total: int) -> bytes:
    """The frames of a READ's reply."""
    content = random.randbytes(total)
    pieces, at = [], 0
    while not pieces or at < total:
        count = min(total - at, random.choice((8, 4096, REPLY_BYTES - 24)))
        flags = FLAG_MORE if at + count < total else 0
        head = struct.pack("<QQQ", total, at, count)
        pieces.append(frame(Code.RETURN, request, head + content[at : at + count], flags))
        at += count
    return b"".join(pieces)


def failure(request: int) -> bytes:
    what = random.choice(list(Failure))
    kind = random.choice(("ValueError", "Nobody", ""))
    return frame(Code.ERROR, request, error_payload(what, "it failed", kind))


def output() -> bytes:
    return frame(Code.OUTPUT, 0, struct.pack("<II", 1, 5) + b"hello\0\0\0")


def callback() -> bytes:
    head, after = value(16)
    call = struct.pack("<QII", random.randrange(3), 0, 1)
    return frame(Code.CALL, 0x80000000 + random.randrange(3), call + head + after)


class Device:
    """One end of a connection whose other end is a session."""

    def __init__(self) -> None:
        ours, self.end = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        welcome = Welcome(1, 31, 1 << 16, 0, "", "a liar")
        self.link = Link(ours, welcome, "the liar")
        self.link.on_output = lambda stream, text: None
        self.session = RPCSession(self.link, "", "a liar", 0)
        self.function = RemoteFunction(self.session, 3)
        self.module = RemoteModule(self.session, 4)
        self.tensor = RemoteNDArray(self.session, 6, (4,), "float32", 16, self.session.cpu(0))
        self.request = 1

    def close(self) -> None:
        self.link._garbage.clear()
        self.session.close()
        self.end.close()


def operations(device: Device) -> list[tuple[Callable[[], object], Callable[[int], bytes]]]:
    """What a client does, and what answers it."""
    session, function = device.session, device.function
    numbers: Any = [(i,) for i in range(3)]
    return [
        (lambda: function(1, 2.5), returned),
        (lambda: function("text", b"bytes"), returned),
        (lambda: function(lambda *_: 1), lambda i: callback() + returned(i)),
        (lambda: use(function(device.tensor)), returned),
        (lambda: device.module.implements_function("name"), returned),
        (lambda: session.load_module("name"), returned),
        (lambda: session.listdir(), returned),
        (lambda: device.tensor.numpy(), lambda i: data(i, 16)),
        (lambda: session.download("name"), lambda i: data(i, random.choice((0, 5, 70000)))),
        (lambda: session.upload(b"x" * 100, "name"), returned),
        (lambda: session.cpu(0).empty((2, 2)), lambda i: frame(128, i, bytes(16) + tensor())),
        (lambda: session.call_many(function, numbers),
         lambda i: returned(i) + returned(i + 1) + returned(i + 2)),
        (lambda: session.read_all([device.tensor] * 2), lambda i: data(i, 16) + data(i + 1, 16)),
        (lambda: session.write_all([device.tensor], [np.zeros(4)]), returned),
        (lambda: session.ping(b"12345678"), lambda i: frame(Code.RETURN, i, b"12345678")),
        (lambda: session.query_device(1, 0, 0), returned),
    ]  # fmt: skip


def use(result: object) -> None:
    """Look at what came; a tensor that it claims to be is not read: nothing would answer."""
    if isinstance(result, RemoteNDArray):
        result.empty_here() if result.nbytes < 1 << 16 else repr(result)


def step(device: Device) -> int:
    """One operation against its damaged reply; return how many frames that had."""
    operation, answer = random.choice(operations(device))
    reply = answer(device.request)
    if random.random() < 0.1:
        reply = failure(device.request)
    if random.random() < 0.1:
        reply = output() + reply
    damaged = bytearray(reply)
    for _ in range(random.randrange(3)):
        mutate(damaged)
    device.end.sendall(damaged)
    device.end.shutdown(socket.SHUT_WR)
    with contextlib.suppress(RPCError):
        operation()
    return count_frames(reply)


def count_frames(content: bytes) -> int:
    count = at = 0
    while at < len(content):
        at += 16 + struct.unpack_from("<I", content, at)[0]
        count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=20_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--library", type=Path, help="a runtime library to use")
    arguments = parser.parse_args()
    if arguments.library is not None:
        toolchain.host_runtime = lambda: arguments.library.absolute()  # type: ignore[assignment]
    import tvm_ffi  # noqa: F401  the way of calls with numbers

    client_library.library()
    random.seed(arguments.seed)
    done = sessions = memory = 0
    start = time.monotonic()
    while done < arguments.frames:
        state = random.getstate()
        device = Device()
        before = time.monotonic()
        try:
            done += step(device)
        except Exception:
            print(f"FAILED in session {sessions} of seed {arguments.seed}", file=sys.stderr)
            random.setstate(state)
            raise
        finally:
            device.close()
        sessions += 1
        if time.monotonic() - before > 10:
            print(f"FAILED: session {sessions} took {time.monotonic() - before:.1f} s")
            return 1
        if sessions == 2000:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) * 1024 if memory else 0
    seconds = time.monotonic() - start
    print(
        f"{done} frames in {sessions} sessions, {seconds:.0f} s, {done / seconds:.0f} a second; "
        f"memory grew by {grown >> 10} KiB after the first 2000 sessions"
    )
    if grown > GROWTH_BYTES and arguments.library is None:  # a sanitizer keeps what was freed
        print("FAILED: memory grew")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
