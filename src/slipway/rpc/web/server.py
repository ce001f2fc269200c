"""uvicorn behind our own door: a connection is a guest until a whole request of it is here.

uvicorn by itself has no deadline for a request that never ends, and counts such connections among
those it serves.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto.events import Ping, Pong

from slipway.rpc.connections.reception import GREETING_TIMEOUT_S, Guest, Lobby, accept, origin_of

MAX_CONNECTIONS_OF_ONE = 256  # address; answers on their way and event streams, too
MESSAGE_MAX_BYTES = 4 << 20  # of one WebSocket message
PING_INTERVAL_S = 10.0  # a page that went away is found in twice that time
MOST_PINGS = 100  # and pongs, of one WebSocket in that time
STALL_TIMEOUT_S = 60.0  # for a reader that has stopped to take what fills its connection
_STOP_TIMEOUT_S = 3.0


class _Connection(H11Protocol):
    """A connection that is in the lobby whenever no whole request of it is being answered."""

    lobby: Lobby
    guest: Guest | None = None
    over: Callable[[], None]  # called when the connection has ended
    stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stall = self.loop.call_later(STALL_TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._go_on()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        self._leave()
        super().connection_lost(exc)
        self.over()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Hand the connection over; it stays a guest until whoever serves it says otherwise."""
        super().handle_websocket_upgrade(event)
        protocol = self.transport.get_protocol()
        lost = protocol.connection_lost

        def connection_lost(exc: Exception | None) -> None:
            self._leave()
            lost(exc)
            self.over()

        protocol.connection_lost = connection_lost  # type: ignore[method-assign]

    def _look(self) -> None:
        cycle = self.cycle
        if self.transport.get_protocol() is not self:
            return  # a WebSocket now
        is_served = cycle is not None and not cycle.response_complete and not cycle.more_body
        if is_served or self.transport.is_closing():
            self._leave()
        elif self.guest is None:
            peer = self.transport.get_extra_info("peername")
            self.guest = self.lobby.enter(origin_of(peer), self.transport.abort)

    def _leave(self) -> None:
        if self.guest is not None:
            self.guest.leave()
            self.guest = None

    def _go_on(self) -> None:
        if self.stall is not None:
            self.stall.cancel()
            self.stall = None


class _PingFlood(Exception):
    """Whoever is there sends pings or pongs as fast as it can."""


class WebSocketConnection(WSProtocol):
    """A WebSocket whose other end is dropped when its pings take the time of all others.

    uvicorn answers any number of them, one by one and whether the answers are taken or not.
    """

    _counted_from_s = 0.0
    _count = 0

    def data_received(self, data: bytes) -> None:
        """Read frames; those behind a ping too many are not even looked at."""
        try:
            super().data_received(data)
        except _PingFlood:
            self.transport.abort()

    def handle_ping(self, event: Ping) -> None:
        """Answer a ping."""
        self._count_one()
        super().handle_ping(event)

    def handle_pong(self, event: Pong) -> None:
        """Take an answer, or what nobody has asked for."""
        self._count_one()
        super().handle_pong(event)

    def _count_one(self) -> None:
        now_s = self.loop.time()
        if now_s - self._counted_from_s > PING_INTERVAL_S:
            self._counted_from_s, self._count = now_s, 0
        self._count += 1
        if self._count > MOST_PINGS:
            raise _PingFlood


class _Server(uvicorn.Server):
    """uvicorn inside a program that handles the signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def guest_of(scope: MutableMapping[str, Any]) -> Guest | None:
    """Return the guest that a WebSocket's connection is until it has greeted."""
    connection: _Connection = scope["state"]["connection"]
    return connection.guest


async def serve_application(
    application: Any,
    listener: socket.socket,
    tls: ssl.SSLContext | None,
    *,
    websockets: bool = False,
) -> None:
    """Serve an ASGI application on a listening socket until cancelled."""
    config = uvicorn.Config(
        application,
        ws=WebSocketConnection if websockets else "none",
        ws_max_size=MESSAGE_MAX_BYTES,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_INTERVAL_S,
        ws_per_message_deflate=False,
        proxy_headers=not websockets,  # who comes over a WebSocket is judged by its address
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16384,
    )
    config.load()
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[]))
    try:
        await _receive(listener, tls, server)
    finally:
        server.should_exit = True
        await asyncio.wait({serving}, timeout=_STOP_TIMEOUT_S)


async def _receive(
    listener: socket.socket, tls: ssl.SSLContext | None, server: uvicorn.Server
) -> None:
    loop = asyncio.get_running_loop()
    lobby = Lobby()
    open_connections: Counter[str] = Counter()

    async def serve(connection: socket.socket, peer: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        origin = origin_of(peer)
        if open_connections[origin] >= MAX_CONNECTIONS_OF_ONE and not lobby.make_room(origin):
            connection.close()
            return
        over = loop.create_future()
        open_connections[origin] += 1

        def end() -> None:
            if not over.done():
                over.set_result(None)

        def make() -> _Connection:
            state: dict[str, Any] = {}
            made = _Connection(server.config, server.server_state, state, loop)
            made.lobby = lobby
            made.over = end
            state["connection"] = made
            return made

        guest = lobby.enter(origin, task.cancel)  # for the handshake
        transport: asyncio.Transport | None = None
        try:
            while not server.started:
                await asyncio.sleep(0.01)
            transport, _ = await loop.connect_accepted_socket(
                make,
                connection,
                ssl=tls,
                ssl_handshake_timeout=GREETING_TIMEOUT_S if tls is not None else None,
            )
            guest.leave()
            await over
        finally:
            guest.leave()
            if transport is not None and not transport.is_closing():
                transport.abort()
            open_connections[origin] -= 1
            if not open_connections[origin]:
                del open_connections[origin]

    await accept(listener, lobby, serve)
