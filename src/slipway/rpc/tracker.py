"""The tracker: devices register, clients ask for one of a kind, each device serves one at a time.

One asyncio loop, no threads.  A device keeps its connection open and sends heartbeats; a lease (a
random text) names each hand-out: the tracker gives it to the device first, then to the client, who
shows it to the device.  The device says when the session has ended, or nobody came.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import secrets
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any

from slipway.rpc.greeting import (
    GREETING_TIMEOUT_S,
    Gate,
    Refused,
    Streams,
    is_local_peer,
    receive,
    receive_any,
    send,
)
from slipway.rpc.protocol import VALUE, Code, Failure, Hello, Role, Tag, error_payload

SILENCE_TIMEOUT_S = 12.0  # devices send a heartbeat every 3 s
ASSIGN_TIMEOUT_S = 5.0
_REGISTER = struct.Struct("<IIII")
_REQUEST = struct.Struct("<iIII")
_log = logging.getLogger("slipway.rpc.tracker")


@dataclass(eq=False)
class _Device:
    key: str
    address: str
    port: int
    description: str
    writer: asyncio.StreamWriter
    state: str = "free"  # free, assigned or busy
    lease: str = ""
    holder: str = ""
    since: float = field(default_factory=time.monotonic)
    answers: dict[int, asyncio.Future[bool]] = field(default_factory=dict)

    def become(self, state: str, lease: str = "", holder: str = "") -> None:
        self.state, self.lease, self.holder = state, lease, holder
        self.since = time.monotonic()


@dataclass(eq=False)
class _Request:
    key: str
    priority: int
    number: int
    holder: str
    granted: asyncio.Future[_Device]


class TrackerServer:
    """The tracker's state and its connections; run it with `serve`."""

    def __init__(self, token: str = "", admin_token: str = "") -> None:
        self._gate = Gate(
            "tracker",
            frozenset({Role.DEVICE, Role.CLIENT, Role.ADMIN}),
            "this is a tracker, not a device; use rpc.connect_tracker(host, port)",
            token,
            admin_token,
        )
        self._devices: list[_Device] = []
        self._requests: dict[str, list[_Request]] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, listener: socket.socket) -> None:
        """Serve on a listening socket until cancelled."""
        server = await asyncio.start_server(self._handle, sock=listener)
        async with server:
            await server.serve_forever()

    # Connections

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        streams = (reader, writer)
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                hello, _ = await self._gate.admit(streams, is_local=is_local_peer(peer))
            if hello.role == Role.DEVICE:
                await self._serve_device(streams, hello, str(peer[0]))
            else:
                await self._serve_client(streams, f"{hello.name} at {peer[0]}")
        except Refused as refused:
            _log.info("refused %s: %s", peer, refused)
            send(writer, Code.ERROR, 0, error_payload(refused.failure, str(refused)))
            with contextlib.suppress(OSError):
                await writer.drain()
        except (OSError, EOFError, TimeoutError, struct.error, asyncio.CancelledError):
            pass  # the peer left, or spoke nonsense
        finally:
            writer.close()

    # Devices

    async def _serve_device(self, streams: Streams, hello: Hello, host: str) -> None:
        reader, writer = streams
        number, payload = await receive(reader, Code.REGISTER)
        port, is_busy, lease_size, address_size = _REGISTER.unpack_from(payload)
        lease = payload[16 : 16 + lease_size].decode()
        at = 17 + lease_size
        address = payload[at : at + address_size].decode() or host
        if not hello.key or not 0 < port < 65536:
            raise Refused(Failure.ARGUMENT, "a device registers with a key and a port")
        device = _Device(hello.key, address, port, hello.name, writer)
        if is_busy:
            device.become("busy", lease, "a client of before the tracker's restart")
        self._devices.append(device)
        send(writer, Code.RETURN, number, b"")
        _log.info("%s registered: %s:%d", device.key, address, port)
        try:
            self._match(device.key)
            while True:
                async with asyncio.timeout(SILENCE_TIMEOUT_S):
                    code, number, payload = await receive_any(reader)
                if code in (Code.RETURN, Code.ERROR) and number in device.answers:
                    device.answers.pop(number).set_result(code == Code.RETURN)
                elif code == Code.IDLE:
                    device.become("free")
                    self._match(device.key)
        finally:
            self._devices.remove(device)
            for answer in device.answers.values():
                answer.cancel()
            _log.info("%s at %s:%d is gone", device.key, address, port)

    # Clients

    async def _serve_client(self, streams: Streams, holder: str) -> None:
        reader, writer = streams
        while True:
            code, number, payload = await receive_any(reader)
            if code == Code.REQUEST:
                await self._serve_request(streams, number, payload, holder)
            elif code == Code.SUMMARY:
                send(writer, Code.RETURN, number, _text_value(json.dumps(self.summary())))
            else:
                send(
                    writer, Code.ERROR, number,
                    error_payload(Failure.UNSUPPORTED, "a tracker does not know this request"),
                )  # fmt: skip
            await writer.drain()

    async def _serve_request(
        self, streams: Streams, number: int, payload: bytes, holder: str
    ) -> None:
        reader, writer = streams
        priority, timeout_ms, key_size, _ = _REQUEST.unpack_from(payload)
        key = payload[16 : 16 + key_size].decode()
        granted: asyncio.Future[_Device] = asyncio.get_running_loop().create_future()
        request = _Request(key, priority, next(self._numbers), holder, granted)
        self._requests.setdefault(key, []).append(request)
        self._match(key)
        # A client that goes away while it waits leaves the queue; it sends nothing meanwhile.
        left = asyncio.ensure_future(reader.read(1))
        try:
            timeout_s = timeout_ms / 1000 if timeout_ms else None
            either: set[asyncio.Future[Any]] = {granted, left}
            await asyncio.wait(either, timeout=timeout_s, return_when="FIRST_COMPLETED")
            if granted.done():
                device = granted.result()
                send(writer, Code.RETURN, number, _grant_payload(device))
            elif left.done():
                raise EOFError
            else:
                text = f"no {key!r} became free within {timeout_ms / 1000:g} s: {self._why(key)}"
                send(writer, Code.ERROR, number, error_payload(Failure.NOT_FOUND, text))
        finally:
            granted.cancel()
            queue = self._requests.get(key, [])
            if request in queue:
                queue.remove(request)
            if not queue:
                self._requests.pop(key, None)
            if not left.done():
                left.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await left

    def _why(self, key: str) -> str:
        devices = [device for device in self._devices if device.key == key]
        if not devices:
            known = ", ".join(sorted({device.key for device in self._devices})) or "none at all"
            return f"no such device is registered (registered: {known})"
        busy = [f"{d.address}:{d.port} since {time.monotonic() - d.since:.0f} s" for d in devices]
        return f"{len(devices)} registered, in use: {', '.join(busy)}"

    # Matching

    def _match(self, key: str) -> None:
        """Hand free devices of a kind to those who wait for it."""
        for device in self._devices:
            if device.key != key or device.state != "free":
                continue
            request = self._next_request(key)
            if request is None:
                return
            self._requests[key].remove(request)
            device.become("assigned", secrets.token_hex(16), request.holder)
            task = asyncio.ensure_future(self._assign(device, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next_request(self, key: str) -> _Request | None:
        """Highest priority; among equals who holds the fewest devices, then who came first."""
        waiting = [r for r in self._requests.get(key, ()) if not r.granted.done()]
        held = [device.holder for device in self._devices if device.state != "free"]
        return min(
            waiting,
            key=lambda request: (-request.priority, held.count(request.holder), request.number),
            default=None,
        )

    async def _assign(self, device: _Device, request: _Request) -> None:
        number = next(self._numbers) & 0x7FFFFFFF
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        device.answers[number] = answer
        lease = device.lease.encode()
        send(device.writer, Code.ASSIGN, number, struct.pack("<II", len(lease), 0) + lease + b"\0")
        accepted = False
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            accepted = await asyncio.wait_for(answer, ASSIGN_TIMEOUT_S)
        device.answers.pop(number, None)
        if accepted and not request.granted.done():
            device.become("busy", device.lease, request.holder)
            request.granted.set_result(device)
            return
        if accepted:
            return  # the client has left; the device gives the lease back when nobody comes
        device.writer.close()  # it does not do what it should: it may register again
        if not request.granted.done():
            self._requests.setdefault(request.key, []).append(request)
            self._match(request.key)

    def summary(self) -> dict[str, Any]:
        """Return classic TVM's summary, and more about each device."""
        now = time.monotonic()
        queues: dict[str, dict[str, int]] = {}
        for device in self._devices:
            queue = queues.setdefault(device.key, {"free": 0, "total": 0, "pending": 0})
            queue["total"] += 1
            queue["free"] += device.state == "free"
        for key, requests in self._requests.items():
            queue = queues.setdefault(key, {"free": 0, "total": 0, "pending": 0})
            queue["pending"] += len(requests)
        servers = [
            {
                "key": f"server:{device.key}",
                "addr": [device.address, device.port],
                "state": device.state,
                "holder": device.holder,
                "since_s": round(now - device.since, 1),
                "description": device.description,
            }
            for device in self._devices
        ]
        return {"server_info": servers, "queue_info": queues}


def _text_value(text: str) -> bytes:
    raw = text.encode()
    return VALUE.pack(Tag.STR, len(raw), 16) + raw + b"\0"


def _grant_payload(device: _Device) -> bytes:
    """REQUEST's reply: u32 port, u32 lease_size, u32 address_size, u32 0, lease, address."""
    lease, address = device.lease.encode(), device.address.encode()
    head = struct.pack("<IIII", device.port, len(lease), len(address), 0)
    return head + lease + b"\0" + address + b"\0"
