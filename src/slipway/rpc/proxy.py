"""The proxy: devices and clients that cannot reach each other both dial out to it.

A device keeps one connection to the proxy, over which it registers as with a tracker: the proxy
passes that on to the tracker, with its own address in place of the device's, and without a tracker
runs one of its own.  When a client comes with the lease of a device, the proxy asks the device for
a connection (OPEN with a ticket), and then passes bytes between the two without looking at them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import socket
import ssl
import struct
from dataclasses import replace
from typing import Any

from slipway.errors import RPCError
from slipway.rpc.connections.greeting import (
    Gate,
    Refused,
    host_of,
    introduce,
    is_local_peer,
    receive,
    receive_any,
    send,
    serving,
)
from slipway.rpc.connections.pump import READ_AHEAD_BYTES, join
from slipway.rpc.connections.reception import GREETING_TIMEOUT_S, Guest, Streams, receive_guests
from slipway.rpc.protocol import (
    HELLO_MAX_BYTES,
    REGISTER_BUSY,
    REGISTER_PROXIED,
    Code,
    Failure,
    Hello,
    Role,
    frame,
    read_refusal,
    split_lease,
    with_key,
)
from slipway.rpc.tracker import SILENCE_TIMEOUT_S, TrackerServer
from slipway.rpc.tracker_process import Proxy as Proxy  # classic TVM's place of it

OPEN_TIMEOUT_S = 8.0  # for a device to bring a connection
FREE_TIMEOUT_S = 5.0  # for a device to become free, where the client asked the proxy itself
_REGISTER = struct.Struct("<IIII")
_log = logging.getLogger("slipway.rpc.proxy")


def lease_of(payload: bytes) -> str:
    """Return the lease in an ASSIGN or IDLE; struct.error where there is none."""
    (size,) = struct.unpack_from("<I", payload)
    return payload[8 : 8 + size].decode("utf-8", "replace")


class _Device:
    def __init__(self, key: str, writer: asyncio.StreamWriter) -> None:
        self.key = key
        self.name = ""
        self.writer = writer
        self.lease = ""


class _Carrier:
    """A connection that a device has brought; `over` is set when its session has ended."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.over = asyncio.Event()


class ProxyServer:
    """The proxy's state and its connections; run it with `serve`.

    Parameters
    ----------
    token
        what peers from other machines must have; devices and the tracker have the same.
    tracker, tracker_tls
        (host, port) of the tracker to register the devices with; None: the proxy hands them out.
    address
        what the tracker tells clients to connect to; "": what the tracker sees.
    tls
        certificate and key; None: plain TCP.

    """

    def __init__(
        self,
        token: str = "",
        tracker: tuple[str, int] | None = None,
        address: str = "",
        *,
        tls: ssl.SSLContext | None = None,
        tracker_tls: ssl.SSLContext | None = None,
        tracker_name: str | None = None,
    ) -> None:
        roles = {Role.SESSION, Role.DEVICE, Role.CARRIER}
        if tracker is None:
            roles |= {Role.CLIENT}
        self._gate = Gate(
            "proxy",
            frozenset(roles),
            "this proxy hands out no devices itself: ask its tracker, with "
            "rpc.connect_tracker(host, port).request(key)",
            token,
        )
        self._device_gate = replace(
            self._gate,
            roles=frozenset({Role.DEVICE, Role.CARRIER}),
            advice="this port of the proxy is for devices; clients connect to its other one, with "
            "TLS",
        )
        self._token = token
        self._tracker = tracker
        self._tracker_tls = tracker_tls
        self._tracker_name = tracker_name
        self._own = None if tracker is not None else TrackerServer(token)
        self._address = address
        self._tls = tls
        self._port = 0
        self._devices: list[_Device] = []
        self._leases: dict[str, _Device] = {}
        self._tickets: dict[str, asyncio.Future[_Carrier]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(
        self, listener: socket.socket, plain_devices: socket.socket | None = None
    ) -> None:
        """Serve on a listening socket until cancelled.

        `plain_devices` is a second one, without TLS, for devices that have none: clients, and what
        they send, are refused there.
        """
        self._port = listener.getsockname()[1]
        async with asyncio.TaskGroup() as group:
            group.create_task(receive_guests(listener, self._handle, self._tls, READ_AHEAD_BYTES))
            if plain_devices is not None:
                group.create_task(
                    receive_guests(plain_devices, self._handle_plain_device, None, READ_AHEAD_BYTES)
                )

    async def _handle_plain_device(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, guest: Guest
    ) -> None:
        await self._handle(reader, writer, guest, self._device_gate)

    async def _handle(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        guest: Guest | None = None,
        gate: Gate | None = None,
    ) -> None:
        peer = writer.get_extra_info("peername")
        await self._serve((reader, writer), guest, gate or self._gate, peer, is_local_peer(peer))

    async def serve_page(
        self, streams: Streams, guest: Guest | None, peer: str, *, is_local: bool
    ) -> None:
        """Serve what a page's WebSocket carries, from `peer`: devices, and what they bring.

        A page proves the token wherever it is, if there is one; else it must be `is_local`.
        """
        asks_nothing = is_local and not self._token
        await self._serve(streams, guest, self._device_gate, peer, asks_nothing)

    async def _serve(
        self, streams: Streams, guest: Guest | None, gate: Gate, peer: Any, is_local: bool
    ) -> None:
        async with serving(streams[1], lambda no: _log.info("refused %s: %s", peer, no)):
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                hello, payload = await gate.admit(streams, is_local=is_local)
            if guest is not None:
                guest.leave()
            if hello.role == Role.DEVICE:
                await self._serve_device(streams, hello)
            elif hello.role == Role.CARRIER:
                await self._serve_carrier(streams, hello.key)
            elif hello.role == Role.CLIENT and self._own is not None:
                await self._own.serve_client(streams, f"{hello.name} at {host_of(peer)}")
            else:
                await self._serve_session(streams, hello, payload)

    # Devices

    async def _serve_device(self, streams: Streams, hello: Hello) -> None:
        number, payload = await receive(streams[0], Code.REGISTER)
        _, flags, lease_size, _ = _REGISTER.unpack_from(payload)
        lease = payload[16 : 16 + lease_size].decode()
        if not flags & REGISTER_BUSY:
            lease = ""
        address = self._address.encode()
        head = _REGISTER.pack(self._port, flags | REGISTER_PROXIED, len(lease), len(address))
        request = head + lease.encode() + b"\0" + address + b"\0"
        device = _Device(hello.key, streams[1])
        device.name = self._name_for(hello)
        self._devices.append(device)
        try:
            await self._register(streams, device, number, request, lease)
        finally:
            self._devices.remove(device)

    def _name_for(self, hello: Hello) -> str:
        """Return a name that no other device here has, and this one gets again."""
        taken = {device.name for device in self._devices if device.key == hello.key}
        names = (f"{hello.name}, through a proxy ({n})" for n in itertools.count(1))
        return next(name for name in names if name not in taken)

    async def _register(
        self, streams: Streams, device: _Device, number: int, request: bytes, lease: str
    ) -> None:
        try:
            tracker = await self._connect_tracker(Role.DEVICE, device.key, device.name)
        except (OSError, EOFError, TimeoutError, RPCError) as error:
            raise Refused(
                Failure.IO, f"the proxy cannot register this device with its tracker: {error}"
            ) from error
        try:
            send(tracker[1], Code.REGISTER, number, request)
            _log.info("%s registered", device.key)
            if lease:
                self._grant(lease, device)
            up = asyncio.ensure_future(self._pass_up(streams[0], tracker[1], device))
            down = asyncio.ensure_future(self._pass_down(tracker[0], device))
            try:
                await asyncio.wait({up, down}, return_when="FIRST_COMPLETED")
            finally:  # the proxy may be stopping
                for task in (up, down):
                    task.cancel()
                await asyncio.gather(up, down, return_exceptions=True)
        finally:
            tracker[1].close()
            self._release(device)
            _log.info("%s is gone", device.key)

    async def _pass_up(
        self, reader: asyncio.StreamReader, tracker: asyncio.StreamWriter, device: _Device
    ) -> None:
        """What a device tells its tracker."""
        while True:
            async with asyncio.timeout(SILENCE_TIMEOUT_S):
                code, number, payload = await receive_any(reader)
            if code == Code.IDLE and lease_of(payload) in ("", device.lease):
                self._release(device)
            send(tracker, code, number, payload)
            await tracker.drain()

    async def _pass_down(self, tracker: asyncio.StreamReader, device: _Device) -> None:
        """What the tracker tells a device."""
        while True:
            code, number, payload = await receive_any(tracker)
            if code == Code.ASSIGN:
                self._grant(lease_of(payload), device)
            send(device.writer, code, number, payload)
            await device.writer.drain()

    def _grant(self, lease: str, device: _Device) -> None:
        self._release(device)
        device.lease = lease
        self._leases[lease] = device

    def _release(self, device: _Device) -> None:
        """Forget a device's lease, unless a later connection of the same device has it now."""
        if self._leases.get(device.lease) is device:
            del self._leases[device.lease]

    async def _connect_tracker(self, role: Role, key: str, name: str) -> Streams:
        streams: Streams
        if self._own is not None:
            ours, theirs = socket.socketpair()
            accepted = await asyncio.open_connection(sock=theirs, limit=HELLO_MAX_BYTES * 4)
            task = asyncio.ensure_future(self._own.handle(*accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            streams = await asyncio.open_connection(sock=ours)
        else:
            assert self._tracker is not None
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                streams = await asyncio.open_connection(
                    *self._tracker,
                    ssl=self._tracker_tls,
                    server_hostname=self._tracker_name,
                )
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                token = self._token if self._own is None else ""  # one's own needs no proof
                await introduce(streams, role, key, name, token, "the tracker")
        except BaseException:
            streams[1].close()
            raise
        return streams

    # Sessions

    async def _serve_carrier(self, streams: Streams, ticket: str) -> None:
        waiting = self._tickets.pop(ticket, None)
        if waiting is None or waiting.done():
            raise Refused(Failure.CANCELLED, "the client has left")
        carrier = _Carrier(streams)
        waiting.set_result(carrier)
        await carrier.over.wait()

    async def _serve_session(self, streams: Streams, hello: Hello, payload: bytes) -> None:
        key, lease = split_lease(hello.key)
        if not lease:
            lease = await self._ask_for(key, streams[0])
            payload = with_key(payload, f"{key}:{lease}")
        device = self._leases.get(lease)
        if device is None:
            raise Refused(
                Failure.NOT_FOUND,
                f"no {key!r} with that lease is behind this proxy any more; ask for another one",
            )
        carrier = await self._open(device)
        try:
            carrier.streams[1].write(frame(Code.HELLO, 1, payload))
            await join(streams, carrier.streams)
        finally:
            carrier.over.set()

    async def _ask_for(self, key: str, client: asyncio.StreamReader) -> str:
        """Return the lease of a device that is free, or becomes so soon.

        EOFError when the client leaves meanwhile, or sends what nobody has asked it for.
        """
        if self._own is None:
            raise Refused(
                Failure.AUTH,
                "this proxy's devices are handed out by its tracker; ask there, with "
                f"rpc.connect_tracker(host, port).request({key!r})",
            )
        reader, writer = await self._connect_tracker(Role.CLIENT, "", "a client of the proxy")
        try:
            raw = key.encode()
            head = struct.pack("<iIII", 1, round(FREE_TIMEOUT_S * 1000), len(raw), 0)
            send(writer, Code.REQUEST, 1, head + raw + b"\0")
            received = asyncio.ensure_future(receive_any(reader))
            left = asyncio.ensure_future(client.read(1))
            try:
                await asyncio.wait({received, left}, return_when="FIRST_COMPLETED")
                if left.done():
                    raise EOFError
                code, _, payload = received.result()
            finally:
                received.cancel()
                left.cancel()
                await asyncio.gather(received, left, return_exceptions=True)
        finally:
            writer.close()
        if code == Code.ERROR:
            raise Refused(Failure.BUSY, read_refusal(payload)[1])
        _, lease_size, _, _ = _REGISTER.unpack_from(payload)
        return payload[16 : 16 + lease_size].decode()

    async def _open(self, device: _Device) -> _Carrier:
        ticket = secrets.token_hex(16)
        waiting: asyncio.Future[_Carrier] = asyncio.get_running_loop().create_future()
        self._tickets[ticket] = waiting
        raw = ticket.encode()
        try:
            send(device.writer, Code.OPEN, 0, struct.pack("<II", len(raw), 0) + raw + b"\0")
            await asyncio.wait({waiting}, timeout=OPEN_TIMEOUT_S)
            if waiting.done():
                return waiting.result()
            raise Refused(
                Failure.TIMEOUT,
                f"the device ({device.key}) brought no connection within {OPEN_TIMEOUT_S:g} s",
            )
        except asyncio.CancelledError:
            if waiting.done():
                waiting.result().over.set()  # it came, and nobody will use it
            raise
        finally:
            self._tickets.pop(ticket, None)
