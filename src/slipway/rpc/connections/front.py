"""TLS in front of the C server: a process that encrypts what goes out and hands in what comes.

The C supervisor gets each client's connection as one end of a pair of local sockets, over the
channel that also brings connections from a proxy; its registrar reaches a tracker or a proxy
through a socket in a private folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import ssl
import struct
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.rpc.connections.greeting import host_of, is_local_peer
from slipway.rpc.connections.pump import READ_AHEAD_BYTES, join
from slipway.rpc.connections.reception import GREETING_TIMEOUT_S, Guest, receive_guests

_ORDER = struct.Struct("<II128s")  # slw_rpc_order of crt/posix/rpc/rpc_server_internal.h
_ADOPT = 1
_log = logging.getLogger("slipway.rpc.connections.front")


@dataclass(frozen=True)
class Front:
    """What stands in front of a server.

    Attributes
    ----------
    tls
        certificate and key for clients, on the server's listening socket; None: it accepts itself.
    tracker, tracker_tls, tracker_name
        where the tunnel leads, whom to trust there, and the name in its certificate.

    """

    tls: ssl.SSLContext | None = None
    tracker: tuple[str, int] | None = None
    tracker_tls: ssl.SSLContext | None = None
    tracker_name: str | None = None

    def start(self, listener: socket.socket | None) -> tuple[int, str]:
        """Fork the process; return the supervisor's end of the channel and the tunnel's address.

        Call it before this process has threads.  The process ends with this one.
        """
        supervisor, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        supervisor.setblocking(False)
        ours.setblocking(False)
        folder = Path(tempfile.mkdtemp(prefix="slipway-rpc-tls-")) if self.tracker_tls else None
        tunnel = None
        if folder is not None:
            tunnel = socket.socket(socket.AF_UNIX)
            tunnel.bind(str(folder / "s"))
            tunnel.listen(16)
        watch, alive = os.pipe()  # `alive` closes when this process ends
        if os.fork() == 0:
            try:
                os.close(alive)
                supervisor.close()
                with contextlib.suppress(asyncio.CancelledError):
                    asyncio.run(self._serve(listener, ours, tunnel, watch))
            finally:
                if folder is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                os._exit(0)
        os.close(watch)
        ours.close()
        if tunnel is not None:
            tunnel.close()
        return supervisor.detach(), f"unix:{folder}/s" if folder is not None else ""

    async def _serve(
        self,
        listener: socket.socket | None,
        channel: socket.socket,
        tunnel: socket.socket | None,
        watch: int,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_reader(watch, task.cancel)

        async def encrypt(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, guest: Guest
        ) -> None:
            guest.leave()  # from here on the supervisor bounds the greetings
            await self._bring(reader, writer, channel)

        serving: list[Coroutine[Any, Any, None]] = []
        if listener is not None and self.tls is not None:
            serving.append(receive_guests(listener, encrypt, self.tls, READ_AHEAD_BYTES))
        if tunnel is not None:
            server = await asyncio.start_unix_server(self._lead_out, sock=tunnel)
            serving.append(server.serve_forever())
        await asyncio.gather(*serving)

    async def _bring(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, channel: socket.socket
    ) -> None:
        peer: Any = writer.get_extra_info("peername")
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                name = f"{host_of(peer)} (TLS)".encode()[:63]
                order = _ORDER.pack(_ADOPT, int(not is_local_peer(peer)), name)
                await _hand_over(channel, order, theirs.fileno())
            plain = await asyncio.open_connection(sock=ours, limit=READ_AHEAD_BYTES)
            await join((reader, writer), plain)
        except OSError as error:
            _log.info("a connection of %s failed: %s", peer, error)
        finally:
            writer.close()

    async def _lead_out(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.tracker is not None
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                out = await asyncio.open_connection(
                    *self.tracker,
                    ssl=self.tracker_tls,
                    server_hostname=self.tracker_name,
                    limit=READ_AHEAD_BYTES,
                )
            await join((reader, writer), out)
        except (OSError, TimeoutError) as error:
            _log.warning("TLS to %s:%d: %s", *self.tracker, error)
        finally:
            writer.close()


async def _hand_over(channel: socket.socket, order: bytes, descriptor: int) -> None:
    """Send an order; the supervisor's queue is short, and this process serves others meanwhile."""
    for _ in range(500):
        try:
            socket.send_fds(channel, [order], [descriptor])
            return
        except BlockingIOError:
            await asyncio.sleep(0.01)
    raise TimeoutError("the server does not take connections")
