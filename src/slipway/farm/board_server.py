"""A microcontroller on a tracker: its firmware speaks the protocol, this process has the network.

The server registers, and lets in whom the tracker sends.  Each session begins with the board's
reset, which here is a new emulator; its frames then pass between the client's connection and the
board's serial line as they are, but for the WELCOME: the proof of the token is this process's, and
`Feature.LINKED` tells the client to link its uploads for the board.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from slipway.errors import RPCError, SlipwayError
from slipway.micro.board import Board
from slipway.micro.emulator import EmulatorProcess
from slipway.micro.project_api.server import JSONRPCError
from slipway.micro.serial_link import SerialLink
from slipway.rpc.connections.greeting import (
    Gate,
    Refused,
    introduce,
    is_local_peer,
    receive,
    receive_any,
    send,
    serving,
)
from slipway.rpc.connections.reception import GREETING_TIMEOUT_S, Streams
from slipway.rpc.farm.devices import session_name
from slipway.rpc.log import tell
from slipway.rpc.protocol import (
    REGISTER_BUSY,
    Code,
    Failure,
    Feature,
    Role,
    error_payload,
    frame,
    read_hello,
    split_lease,
    with_key,
    with_welcome,
)
from slipway.version import VERSION

_log = logging.getLogger("slipway.farm.board")
HEARTBEAT_S = 3.0
UNUSED_LEASE_S = 15.0  # the client never came
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
START_S = 20.0
_PART_BYTES = 1 << 16
_BROKEN = (OSError, JSONRPCError, SlipwayError)  # what keeps a board from starting
_LEASE = struct.Struct("<II")


@dataclass
class Lease:
    """One hand-out of the board: `session` is the task that serves it, once its client has come."""

    text: str
    unused: asyncio.TimerHandle | None = None
    session: asyncio.Task[None] | None = None
    revoked: str = ""


class OpenBoard:
    """A board that was just started, and its serial line as a socket."""

    def __init__(self, board: Board, image: Path) -> None:
        self._process = EmulatorProcess(board, image)
        try:
            self._line = SerialLink(self._process, board.name, START_S)
        except BaseException:
            self._process.close()
            raise
        self.socket = self._line.socket

    def fault(self) -> str:
        """Return why the line ended, "" when it did not break."""
        return self._line.fault

    def close(self) -> None:
        """End the line and the emulator."""
        self._line.close()
        self._process.close()


@dataclass
class BoardServer:
    """Serves one emulated board to the clients that a tracker sends.

    `token` is proved to clients and to the tracker, and asked of peers of other machines.
    """

    key: str
    board: Board
    image: Path
    tracker: tuple[str, int]
    token: str = ""
    _lease: Lease | None = None
    _tracker_writer: asyncio.StreamWriter | None = None

    async def serve(self, listener: socket.socket) -> None:
        """Serve on a listening socket until cancelled."""
        port = int(listener.getsockname()[1])
        server = await asyncio.start_server(self._handle, sock=listener)
        try:
            await self._stay_registered(port)
        finally:
            server.close()
            lease = self._lease
            if lease is not None and lease.session is not None:
                lease.session.cancel()
                await asyncio.wait({lease.session})

    # The tracker's side

    async def _stay_registered(self, port: int) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            try:
                async with self._registered(port) as reader:
                    wait_s = FIRST_WAIT_S
                    await self._obey(reader)
            except (OSError, EOFError, TimeoutError, struct.error, RPCError) as error:
                text = f"tracker {self.tracker[0]}:{self.tracker[1]}: {error or 'it is silent'}"
                tell(_log, "tracker", text)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    @contextlib.asynccontextmanager
    async def _registered(self, port: int) -> AsyncIterator[asyncio.StreamReader]:
        """Connect and register; heartbeats go out in the body."""
        async with asyncio.timeout(GREETING_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*self.tracker)
        beating: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                name = f"slipway {VERSION} {self.board.name} in {self.board_program}"
                streams = (reader, writer)
                await introduce(streams, Role.DEVICE, self.key, name, self.token, "the tracker")
                lease = "" if self._lease is None else self._lease.text
                flags = REGISTER_BUSY if lease else 0
                head = struct.pack("<IIII", port, flags, len(lease), 0)
                send(writer, Code.REGISTER, 2, head + lease.encode() + b"\0\0")
                self._tracker_writer = writer  # an end from now on is told behind the REGISTER
                await receive(reader, Code.RETURN)
            tell(_log, "registered", f"registered as {self.key}", key=self.key)
            beating = asyncio.ensure_future(self._beat(writer))
            yield reader
        finally:
            self._tracker_writer = None
            if beating is not None:
                beating.cancel()
            writer.close()

    @property
    def board_program(self) -> str:
        """The emulator's name."""
        return self.board.emulator.program if self.board.emulator is not None else "hardware"

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        while True:
            send(writer, Code.HEARTBEAT, 0, b"")
            await asyncio.sleep(HEARTBEAT_S)

    async def _obey(self, reader: asyncio.StreamReader) -> None:
        writer = self._tracker_writer
        assert writer is not None
        while True:
            code, number, payload = await receive_any(reader)
            if code not in (Code.ASSIGN, Code.REVOKE):
                continue
            size, reason_size = _LEASE.unpack_from(payload)
            text = payload[8 : 8 + size].decode()
            if code == Code.REVOKE:
                self._revoke(text, payload[9 + size : 9 + size + reason_size].decode())
            elif self._lease is not None:
                message = "the board is in use"
                send(writer, Code.ERROR, number, error_payload(Failure.BUSY, message))
            else:
                self._lease = lease = Lease(text)
                late = asyncio.get_running_loop().call_later
                lease.unused = late(UNUSED_LEASE_S, self._release, lease, "")
                send(writer, Code.RETURN, number, b"")

    def _revoke(self, text: str, reason: str) -> None:
        lease = self._lease
        if lease is None or lease.text != text:
            return
        lease.revoked = reason or "an administrator ended the session"
        if lease.session is None:
            self._release(lease, lease.revoked)
        else:
            lease.session.cancel()

    def _release(self, lease: Lease, reason: str) -> None:
        """The lease is over: say so to the tracker, which a broken connection tells by itself."""
        if self._lease is not lease:
            return
        self._lease = None
        if lease.unused is not None:
            lease.unused.cancel()
        if self._tracker_writer is not None:
            raw, message = lease.text.encode(), reason.encode()[:400]
            payload = _LEASE.pack(len(raw), len(message)) + raw + b"\0" + message + b"\0"
            send(self._tracker_writer, Code.IDLE, 0, payload)

    # The client's side

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")

        def note(refused: Refused) -> None:
            tell(_log, "refused", f"refused {peer}: {refused}")

        async with serving(writer, note):
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                number, payload, proof = await self._admit((reader, writer), is_local_peer(peer))
            lease = self._lease
            assert lease is not None
            reason = "the board's server failed"
            name = session_name(lease.text)
            tell(_log, "session", f"session {name} begins", session=name)
            try:
                reason = await self._session((reader, writer), number, payload, proof)
            except asyncio.CancelledError:
                reason = lease.revoked or "the board's server was stopped"
                raise Refused(Failure.CANCELLED, reason) from None
            except Refused as refused:
                reason = str(refused)
                raise
            finally:
                tell(_log, "ended", f"session {name} ended: {reason or 'ok'}", session=name)
                self._release(lease, reason)

    async def _admit(self, streams: Streams, is_local: bool) -> tuple[int, bytes, bytes]:
        """Return id and payload of a HELLO with the lease, which is taken, and the proof for it."""
        number, payload = await receive(streams[0], Code.HELLO)
        hello = read_hello(payload)
        if hello is None:
            raise EOFError
        if hello.role != Role.SESSION:
            raise Refused(Failure.UNSUPPORTED, "this is a device, not a tracker; use rpc.connect")
        proof = bytes(32)
        if not is_local or (hello.features & Feature.PROOF and self.token):
            gate = Gate("device", frozenset({Role.SESSION}), "", self.token)
            proof = await gate.challenge(streams, number, Role.SESSION)
        text, lease = split_lease(hello.key)[1], self._lease
        if lease is None or lease.session or not hmac.compare_digest(text, lease.text):
            message = f"this board is handed out by its tracker: request {self.key!r} there"
            raise Refused(Failure.AUTH, message)
        if lease.unused is not None:
            lease.unused.cancel()
        lease.session = asyncio.current_task()
        return number, payload, proof

    async def _session(self, streams: Streams, number: int, hello: bytes, proof: bytes) -> str:
        """Start the board and carry frames until one end is over; return what went wrong."""
        greeted = read_hello(hello)
        assert greeted is not None
        limit_s = greeted.timeout_ms / 1000 or None
        starting = asyncio.ensure_future(asyncio.to_thread(OpenBoard, self.board, self.image))
        try:
            opened = await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(*_BROKEN):
                await asyncio.to_thread((await starting).close)
            raise
        except _BROKEN as error:
            raise Refused(Failure.IO, f"the board did not start: {error}") from error
        try:
            async with asyncio.timeout(limit_s):
                return await self._carry(streams, number, with_key(hello, ""), proof, opened)
        except TimeoutError:
            message = f"the session's time, {limit_s:g} s, is over"
            raise Refused(Failure.TIMEOUT, message) from None
        finally:
            await asyncio.shield(asyncio.to_thread(opened.close))

    async def _carry(
        self, streams: Streams, number: int, hello: bytes, proof: bytes, opened: OpenBoard
    ) -> str:
        reader, writer = streams
        from_board, to_board = await asyncio.open_connection(sock=opened.socket)
        try:
            to_board.write(frame(Code.HELLO, number, hello))
            try:
                async with asyncio.timeout(START_S):
                    code, answered, payload = await receive_any(from_board)
            except TimeoutError:
                message = f"the board did not answer the greeting within {START_S:g} s"
                raise Refused(Failure.IO, message) from None
            if code == Code.WELCOME:
                payload = with_welcome(payload, proof, Feature.LINKED)
            writer.write(frame(code, answered, payload))
            there = asyncio.ensure_future(_pump(reader, to_board))
            back = asyncio.ensure_future(_pump(from_board, writer))
            try:
                await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                is_client_gone = there.done()
                there.cancel()
                back.cancel()
                await asyncio.wait({there, back})
        except EOFError:
            is_client_gone = False
        finally:
            to_board.close()
        if is_client_gone:
            return ""
        # The thread of the line says what broke when it has ended.
        await asyncio.to_thread(opened.close)
        raise Refused(Failure.CRASHED, opened.fault() or "the board ended the session")


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Carry bytes until one side ends."""
    with contextlib.suppress(OSError):
        while part := await source.read(_PART_BYTES):
            sink.write(part)
            await sink.drain()
