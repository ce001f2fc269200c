"""Connections that have not shown yet who they are: bounded, for each address, and in time.

A guest is somebody whose greeting (TLS handshake, HELLO and proof; for the page: a whole request)
is not complete.  Guests have places of their own, so that whoever sends nothing, or half of
something, keeps nobody else out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GREETING_TIMEOUT_S = 10.0
MAX_GUESTS = 256  # beyond these the oldest one goes, if it had its second ...
MAX_GUESTS_OF_ONE = 64  # address
PATIENCE_S = 1.0
MOST_GUESTS = 2048  # ... and beyond these in any case
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Guest:
    """One connection in its greeting; `put_out` ends it."""

    def __init__(self, lobby: Lobby, origin: str, put_out: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        self._lobby = lobby
        self.origin = origin
        self.since = loop.time()
        self._put_out = put_out
        self._timer = loop.call_later(GREETING_TIMEOUT_S, self.end)

    def leave(self) -> None:
        """The greeting is complete, or the connection over."""
        self._timer.cancel()
        self._lobby.forget(self)

    def end(self) -> None:
        """End the connection, if it is a guest still."""
        if self in self._lobby:
            self.leave()
            self._put_out()


class Lobby:
    """The guests of one listening socket."""

    def __init__(self) -> None:
        self._guests: dict[str, dict[Guest, None]] = {}  # of each address, the oldest first
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, guest: Guest) -> bool:
        return guest in self._guests.get(guest.origin, {})

    def enter(self, origin: str, put_out: Callable[[], object]) -> Guest:
        """Take a guest in, for `GREETING_TIMEOUT_S` at most; somebody may have to go for that."""
        same = self._guests.get(origin, {})
        if len(same) >= MAX_GUESTS_OF_ONE:
            self._make_room(same)
        elif self._count >= MAX_GUESTS:
            self._make_room(max(self._guests.values(), key=len))
        guest = Guest(self, origin, put_out)
        self._guests.setdefault(origin, {})[guest] = None
        self._count += 1
        return guest

    def forget(self, guest: Guest) -> None:
        """Leave, once."""
        same = self._guests.get(guest.origin, {})
        if guest in same:
            del same[guest]
            self._count -= 1
            if not same:
                del self._guests[guest.origin]

    def make_room(self, origin: str | None = None) -> bool:
        """Put out the oldest guest of `origin`, else of the address with the most.

        False if there is none.
        """
        most: dict[Guest, None] = max(self._guests.values(), key=len, default={})
        oldest = next(iter(self._guests.get(origin, {}) if origin is not None else most), None)
        if oldest is not None:
            oldest.end()
        return oldest is not None

    def _make_room(self, candidates: dict[Guest, None]) -> None:
        oldest = next(iter(candidates))
        age = asyncio.get_running_loop().time() - oldest.since
        # A crowd that comes at once and greets at once is welcome.
        if age >= PATIENCE_S:
            oldest.end()
        elif self._count >= MOST_GUESTS:
            self.make_room()


def origin_of(peer: Any) -> str:
    """Return what counts as one address: a host, of IPv6 its network."""
    if not isinstance(peer, tuple):
        return "local"
    address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if address.version == 4 or mapped is not None:
        return str(mapped or address)
    return address.packed[:8].hex()


async def accept(
    listener: socket.socket, lobby: Lobby, serve: Callable[[socket.socket, Any], Awaitable[None]]
) -> None:
    """Accept connections until cancelled, each served by a task of its own."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    listener.listen(4096)
    tasks: set[asyncio.Task[None]] = set()
    try:
        while True:
            try:
                connection, peer = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    await asyncio.sleep(0)
                    continue  # that one has left again
                lobby.make_room()
                await asyncio.sleep(0.05)
                continue
            task = asyncio.ensure_future(_guarded(serve, connection, peer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _guarded(
    serve: Callable[[socket.socket, Any], Awaitable[None]], connection: socket.socket, peer: Any
) -> None:
    try:
        await serve(connection, peer)
    except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
        connection.close()


async def receive_guests(
    listener: socket.socket,
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter, Guest], Awaitable[None]],
    tls: ssl.SSLContext | None,
    limit: int = 2**16,
) -> None:
    """Accept connections, with `tls` encrypted, until cancelled.

    `handle` serves one, and lets its guest leave when the greeting is complete.
    """
    lobby = Lobby()
    loop = asyncio.get_running_loop()

    async def serve(connection: socket.socket, peer: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        guest = lobby.enter(origin_of(peer), task.cancel)
        transport: asyncio.Transport | None = None
        try:
            reader = asyncio.StreamReader(limit)
            protocol = asyncio.StreamReaderProtocol(reader)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=tls,
                ssl_handshake_timeout=GREETING_TIMEOUT_S if tls is not None else None,
            )
            await handle(reader, asyncio.StreamWriter(transport, protocol, reader, loop), guest)
        finally:
            guest.leave()
            if transport is not None and not transport.is_closing():
                transport.abort()

    await accept(listener, lobby, serve)
