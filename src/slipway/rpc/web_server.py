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
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from slipway.rpc.reception import GREETING_TIMEOUT_S, Guest, Lobby, accept, origin_of

MAX_CONNECTIONS_OF_ONE = 256  # address; answers on their way and event streams, too
_STOP_TIMEOUT_S = 3.0


class _Connection(H11Protocol):
    """A connection that is in the lobby whenever no whole request of it is being answered."""

    lobby: Lobby
    guest: Guest | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle = self.cycle
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


class _Server(uvicorn.Server):
    """uvicorn inside a program that handles the signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_application(
    application: Any, listener: socket.socket, tls: ssl.SSLContext | None
) -> None:
    """Serve an ASGI application on a listening socket until cancelled."""
    config = uvicorn.Config(
        application,
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

        class Connection(_Connection):
            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                if not over.done():
                    over.set_result(None)

        def make() -> Connection:
            made = Connection(server.config, server.server_state, {}, loop)
            made.lobby = lobby
            return made

        guest = lobby.enter(origin, task.cancel)  # for the handshake
        try:
            while not server.started:
                await asyncio.sleep(0.01)
            await loop.connect_accepted_socket(
                make,
                connection,
                ssl=tls,
                ssl_handshake_timeout=GREETING_TIMEOUT_S if tls is not None else None,
            )
            guest.leave()
            await over
        finally:
            guest.leave()
            open_connections[origin] -= 1
            if not open_connections[origin]:
                del open_connections[origin]

    await accept(listener, lobby, serve)
