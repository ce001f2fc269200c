"""The tracker: devices register, clients ask for one of a kind, each device serves one at a time.

One asyncio loop, no threads.  A device keeps its connection open and sends heartbeats; it says when
the session has ended, or nobody came.  Who gets what is decided in `slipway.rpc.farm.state`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import socket
import sqlite3
import ssl
import struct
from typing import Any

from slipway.rpc.connections.greeting import (
    Gate,
    Inbox,
    Refused,
    host_of,
    is_local_peer,
    receive,
    receive_any,
    send,
    serving,
)
from slipway.rpc.connections.reception import GREETING_TIMEOUT_S, Guest, Streams, receive_guests
from slipway.rpc.farm.devices import FarmDevice, Grant
from slipway.rpc.farm.journal import SAMPLE_S
from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.store import Store
from slipway.rpc.farm.view import classic_summary, take_sample, why_not
from slipway.rpc.log import tell
from slipway.rpc.protocol import (
    NAME_MAX_BYTES,
    REGISTER_BUSY,
    REGISTER_PROXIED,
    VALUE,
    Code,
    Failure,
    Hello,
    Role,
    Tag,
    error_payload,
    read_refusal,
)
from slipway.rpc.tracker_process import Tracker as Tracker  # classic TVM's place of it

SILENCE_TIMEOUT_S = 12.0  # devices send a heartbeat every 3 s
ASSIGN_TIMEOUT_S = 5.0
_REGISTER = struct.Struct("<IIII")
_log = logging.getLogger("slipway.rpc.tracker")
_REQUEST = struct.Struct("<iIII")


class _Link:
    """The tracker's side of a device's connection."""

    def __init__(self, farm: Farm, writer: asyncio.StreamWriter) -> None:
        self._farm = farm
        self._writer = writer
        self._numbers = itertools.count(1)
        self._lease = ""
        self._assign_id = 0  # id of the ASSIGN that is not answered yet
        self._timer: asyncio.TimerHandle | None = None
        self.device: FarmDevice | None = None

    def assign(self, lease: str) -> None:
        """Send ASSIGN; no answer within `ASSIGN_TIMEOUT_S` is a refusal."""
        self._assign_id, self._lease = next(self._numbers) & 0x7FFFFFFF, lease
        send(self._writer, Code.ASSIGN, self._assign_id, _lease_payload(lease))
        loop = asyncio.get_running_loop()
        text = f"it did not answer within {ASSIGN_TIMEOUT_S:g} s"
        self._timer = loop.call_later(ASSIGN_TIMEOUT_S, self.answer, self._assign_id, False, text)

    def answer(self, number: int, accepted: bool, reason: str = "") -> None:
        """Take the answer to ASSIGN `number`."""
        if number != self._assign_id or self.device is None:
            return
        self._assign_id = 0
        if self._timer is not None:
            self._timer.cancel()
        self._farm.answered(self.device, self._lease, accepted, reason)

    def release(self, lease: str, reason: str) -> None:
        """Send REVOKE; the device answers with IDLE when the session has ended."""
        send(self._writer, Code.REVOKE, 0, _lease_payload(lease, reason))

    def close(self) -> None:
        """Close the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self.device = None
        self._writer.close()


class TrackerServer:
    """The tracker's connections; run it with `serve`.  Its state is `farm`."""

    def __init__(
        self, token: str = "", admin_token: str = "", *, tls: ssl.SSLContext | None = None,
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self._tls = tls
        self._gate = Gate(
            "tracker",
            frozenset({Role.DEVICE, Role.CLIENT, Role.ADMIN}),
            "this is a tracker, not a device; use rpc.connect_tracker(host, port)",
            token,
            admin_token,
        )
        self.farm = Farm()
        self.store = store or Store()
        self.store.load(self.farm)
        self.farm.keep = self.store.keep

    async def serve(self, listener: socket.socket) -> None:
        """Serve on a listening socket until cancelled."""
        sampling = asyncio.ensure_future(self._sample())
        try:
            await receive_guests(listener, self.handle, self._tls)
        finally:
            sampling.cancel()

    async def _sample(self) -> None:
        while True:
            take_sample(self.farm)
            self.farm.end_reservations()
            try:
                self.store.write(self.farm)
            except sqlite3.Error as error:  # a full disk: the farm goes on
                tell(_log, "history", f"the history cannot be written: {error}")
            await asyncio.sleep(SAMPLE_S)

    # Connections

    async def handle(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        guest: Guest | None = None,
    ) -> None:
        """Serve one connection until it ends."""
        peer = writer.get_extra_info("peername")
        streams = (reader, writer)

        def note(refused: Refused) -> None:
            self.farm.journal.peer_refused(host_of(peer), str(refused))

        async with serving(writer, note):
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                hello, _ = await self._gate.admit(streams, is_local=is_local_peer(peer))
            if guest is not None:
                guest.leave()
            if hello.role == Role.DEVICE:
                await self._serve_device(streams, hello, host_of(peer))
            else:
                is_admin = hello.role == Role.ADMIN
                await self.serve_client(streams, f"{hello.name} at {host_of(peer)}", is_admin)

    # Devices

    async def _serve_device(self, streams: Streams, hello: Hello, host: str) -> None:
        reader, writer = streams
        number, payload = await receive(reader, Code.REGISTER)
        port, flags, lease_size, address_size = _REGISTER.unpack_from(payload)
        lease = _text(payload, 16, lease_size)
        address = _text(payload, 17 + lease_size, address_size) or host
        if not hello.key or not 0 < port < 65536:
            raise Refused(Failure.ARGUMENT, "a device registers with a key and a port")
        link = _Link(self.farm, writer)
        send(writer, Code.RETURN, number, b"")
        held = lease or "unknown" if flags & REGISTER_BUSY else ""
        proxied = hello.name if flags & REGISTER_PROXIED else ""
        device = self.farm.add(hello.key, address, port, hello.name, link, held, proxied)
        link.device = device
        reason = "its connection broke"
        try:
            while link.device is not None:
                async with asyncio.timeout(SILENCE_TIMEOUT_S):
                    code, number, payload = await receive_any(reader)
                if code in (Code.RETURN, Code.ERROR):
                    text = read_refusal(payload)[1] if code == Code.ERROR else ""
                    link.answer(number, code == Code.RETURN, text)
                elif code == Code.IDLE and link.device is not None:
                    self.farm.idle(device, *_read_idle(payload))
        except TimeoutError:
            reason = f"it was silent for {SILENCE_TIMEOUT_S:g} s"
        except EOFError:
            reason = "it closed its connection"
        finally:
            self.farm.remove(device, reason, link)
            link.close()

    # Clients

    async def serve_client(self, streams: Streams, holder: str, is_admin: bool = False) -> None:
        """Answer the requests of a client that has greeted, until it leaves."""
        reader, writer = streams
        inbox = Inbox(reader)
        try:
            while True:
                code, number, payload = await inbox.receive()
                if code == Code.REQUEST:
                    await self._serve_request(inbox, writer, number, payload, holder)
                else:
                    self._answer(writer, code, number, payload, is_admin)
                await writer.drain()
        finally:
            await inbox.close()

    def _answer(
        self, writer: asyncio.StreamWriter, code: int, number: int, payload: bytes, is_admin: bool
    ) -> None:
        if code == Code.SUMMARY:
            text = json.dumps(classic_summary(self.farm))
            send(writer, Code.RETURN, number, _text_value(text))
        elif code in (Code.KICK, Code.DRAIN):
            problem = self._administrate(code, payload, is_admin)
            if problem is None:
                send(writer, Code.RETURN, number, b"")
            else:
                send(writer, Code.ERROR, number, error_payload(*problem))
        else:
            message = "a tracker does not know this request"
            send(writer, Code.ERROR, number, error_payload(Failure.UNSUPPORTED, message))

    def _administrate(
        self, code: int, payload: bytes, is_admin: bool
    ) -> tuple[Failure, str] | None:
        """KICK: u32 device, u32 size, session, NUL.  DRAIN: u32 device, u32 on."""
        if not is_admin:
            return Failure.AUTH, "only an administrator may do that: connect with admin_token="
        number, value = struct.unpack_from("<II", payload)
        if code == Code.KICK:
            session = _text(payload, 8, value)
            if self.farm.kick(number, session):
                return None
            return Failure.NOT_FOUND, f"device {number} has no session {session!r} now"
        if self.farm.drain(number) if value else self.farm.resume(number):
            return None
        return Failure.NOT_FOUND, f"there is no device {number}"

    async def _serve_request(
        self,
        inbox: Inbox,
        writer: asyncio.StreamWriter,
        number: int,
        payload: bytes,
        holder: str,
    ) -> None:
        priority, timeout_ms, key_size, _ = _REQUEST.unpack_from(payload)
        key = _text(payload, 16, key_size)
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def grant(given: Grant) -> None:
            # In the step that gives the lease: after a task switch the device may have another one.
            send(writer, Code.RETURN, number, _grant_payload(given))
            answered.set_result(None)

        request = self.farm.request(key, priority, holder, grant, lambda: not inbox.is_over)
        result = "withdrawn"
        try:
            timeout_s = timeout_ms / 1000 if timeout_ms else None
            either: set[asyncio.Future[Any]] = {answered, inbox.reading}
            await asyncio.wait(either, timeout=timeout_s, return_when="FIRST_COMPLETED")
            if answered.done():
                return
            if inbox.is_over:  # a client that goes away while it waits leaves the queue
                raise EOFError
            result = "timeout"
            why = why_not(self.farm, key)
            text = f"no {key!r} became free within {timeout_ms / 1000:g} s: {why}"
            send(writer, Code.ERROR, number, error_payload(Failure.NOT_FOUND, text))
        finally:
            self.farm.withdraw(request, result)


def _text(payload: bytes, at: int, size: int) -> str:
    """Return the text of a frame, which is printable and has its NUL; Refused if it is not so."""
    raw = payload[at : at + size]
    text = raw.decode("utf-8", "surrogateescape")
    ends = len(raw) == size and payload[at + size : at + size + 1] == b"\0"
    if not ends or size > NAME_MAX_BYTES or not text.isprintable():
        message = f"a text in a request is at most {NAME_MAX_BYTES} bytes of printable UTF-8"
        raise Refused(Failure.ARGUMENT, message)
    return text


def _text_value(text: str) -> bytes:
    raw = text.encode()
    return VALUE.pack(Tag.STR, len(raw), 16) + raw + b"\0"


def _lease_payload(lease: str, reason: str = "") -> bytes:
    """ASSIGN and REVOKE: u32 size, u32 reason_size, lease, NUL, reason, NUL."""
    raw, message = lease.encode(), reason.encode()
    return struct.pack("<II", len(raw), len(message)) + raw + b"\0" + message + b"\0"


def _read_idle(payload: bytes) -> tuple[str, str]:
    """Return the lease that is over, and what went wrong ("" for nothing)."""
    size, reason_size = struct.unpack_from("<II", payload)
    at = 9 + size
    lease = payload[8 : 8 + size].decode("utf-8", "replace")
    return lease, payload[at : at + reason_size].decode("utf-8", "replace")


def _grant_payload(given: Grant) -> bytes:
    """REQUEST's reply: u32 port, u32 lease_size, u32 address_size, u32 0, lease, address."""
    lease, address = given.lease.encode(), given.address.encode()
    head = struct.pack("<IIII", given.port, len(lease), len(address), 0)
    return head + lease + b"\0" + address + b"\0"
