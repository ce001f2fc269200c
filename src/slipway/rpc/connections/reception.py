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
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GREETING_TIMEOUT_S = 10.0
MAX_GUESTS = 256  # beyond these the oldest one goes, if it had its second ...
MAX_GUESTS_OF_ONE = 64  # address
PATIENCE_S = 1.0
MOST_GUESTS = 2048  # ... and beyond these in any case
TAKEN_AT_ONCE = 256
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Guest:
    """One connection in its greeting; `put_out` ends it."""

    def __init__(self, lobby: Lobby, origin: str, put_out: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        self._lobby = lobby
        self.origin = origin
        self.since = loop.time()
        self.put_out = put_out
        self._timer = loop.call_later(GREETING_TIMEOUT_S, self.end)

    def leave(self) -> None:
        """The greeting is complete, or the connection over."""
        self._timer.cancel()
        self._lobby.forget(self)

    def end(self) -> None:
        """End the connection, if it is a guest still."""
        if self in self._lobby:
            self.leave()
            self.put_out()


class Lobby:
    """The guests of one listening socket."""

    def __init__(self) -> None:
        self._guests: dict[str, dict[Guest, None]] = {}  # of each address, the oldest first
        self._by_count: dict[int, dict[str, None]] = {}  # the addresses that have so many guests
        self._most = 0  # guests of one address
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
            self._make_room(self._of_most())
        guest = Guest(self, origin, put_out)
        same = self._guests.setdefault(origin, {})
        same[guest] = None
        self._recount(origin, len(same) - 1, len(same))
        return guest

    def forget(self, guest: Guest) -> None:
        """Leave, once."""
        same = self._guests.get(guest.origin, {})
        if guest in same:
            del same[guest]
            self._recount(guest.origin, len(same) + 1, len(same))
            if not same:
                del self._guests[guest.origin]

    def make_room(self, origin: str | None = None) -> bool:
        """Put out the oldest guest of `origin`, else of the address with the most.

        False if there is none.
        """
        candidates = self._of_most() if origin is None else self._guests.get(origin, {})
        oldest = next(iter(candidates), None)
        if oldest is not None:
            oldest.end()
        return oldest is not None

    def end_all(self) -> None:
        """Put everybody out."""
        while self.make_room():
            pass

    def _of_most(self) -> dict[Guest, None]:
        """Return the guests of the address with the most; among equals, of the first of them."""
        origin = next(iter(self._by_count.get(self._most, {})), None)
        return self._guests[origin] if origin is not None else {}

    def _recount(self, origin: str, before: int, now: int) -> None:
        """Enter an address under its new number of guests: nobody looks through all of them."""
        self._count += now - before
        if before:
            del self._by_count[before][origin]
        if now:
            self._by_count.setdefault(now, {})[origin] = None
        self._most = max(self._most, now)
        while self._most and not self._by_count.get(self._most):
            self._most -= 1

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
    if len(peer) == 2:  # IPv4
        return str(peer[0])
    address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if address.version == 4 or mapped is not None:
        return str(mapped or address)
    return address.packed[:8].hex()


async def accept(
    listener: socket.socket, lobby: Lobby, serve: Callable[[socket.socket, Any], Awaitable[None]]
) -> None:
    """Accept connections until cancelled, each served by a task of its own."""
    tasks = _Tasks()
    try:
        await _take(listener, lobby, lambda *who: tasks.begin(_guarded(serve, *who)))
    finally:
        await tasks.end()


class _Tasks:
    """Tasks that nobody waits for, until all are ended."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _take(
    listener: socket.socket, lobby: Lobby, arrive: Callable[[socket.socket, Any], object]
) -> None:
    """Accept connections until cancelled.

    Those that wait are taken many at a time: the system hands them out in the order in which they
    came, so that whoever greets waits for all the silent ones before.
    """
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    listener.listen(4096)
    try:
        while True:
            try:
                arrive(*await loop.sock_accept(listener))
                for _ in range(TAKEN_AT_ONCE):
                    connection, peer = listener.accept()
                    connection.setblocking(False)
                    arrive(connection, peer)
            except BlockingIOError:
                pass  # nobody else waits
            except OSError as error:
                if error.errno in _NO_ROOM:
                    await asyncio.sleep(0 if lobby.make_room() else 0.05)
                # else that one has left again
            await asyncio.sleep(0)
    finally:
        listener.close()


async def _guarded(
    serve: Callable[[socket.socket, Any], Awaitable[None]], connection: socket.socket, who: Any
) -> None:
    try:
        await serve(connection, who)
    except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
        connection.close()


async def receive_guests(
    listener: socket.socket,
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter, Guest], Awaitable[None]],
    tls: ssl.SSLContext | None,
    limit: int = 2**16,
) -> None:
    """Accept connections, with `tls` encrypted, until cancelled.

    `handle` serves one, and lets its guest leave when the greeting is complete.  Guests speak
    first: of one that has not there is a socket, and no task.
    """
    lobby, tasks = Lobby(), _Tasks()
    loop = asyncio.get_running_loop()

    def arrive(connection: socket.socket, peer: Any) -> None:
        guest = lobby.enter(origin_of(peer), lambda: leave(connection))
        loop.add_reader(connection, begin, connection, guest)

    def leave(connection: socket.socket) -> None:
        loop.remove_reader(connection)
        connection.close()

    def begin(connection: socket.socket, guest: Guest) -> None:
        if _has_ended(connection):
            guest.end()
            return
        loop.remove_reader(connection)
        task = tasks.begin(_guarded(serve, connection, guest))
        guest.put_out = task.cancel

    async def serve(connection: socket.socket, guest: Guest) -> None:
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

    try:
        await _take(listener, lobby, arrive)
    finally:
        lobby.end_all()
        await tasks.end()


def _has_ended(connection: socket.socket) -> bool:
    """Return whether the other side has left without a word."""
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
