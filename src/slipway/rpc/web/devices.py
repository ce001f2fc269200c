"""Browsers as devices: the page that makes one, and the WebSocket it dials the proxy over.

``rpc_proxy --web-port 8888``.  A WebSocket carries the bytes that a device's TCP connection would
(docs/rpc-protocol.md); nothing else is told apart, and only devices come in here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from slipway.libinfo import find_js_path
from slipway.rpc.connections.greeting import is_local_peer
from slipway.rpc.connections.pump import READ_AHEAD_BYTES
from slipway.rpc.connections.reception import Streams
from slipway.rpc.proxy import ProxyServer
from slipway.rpc.web.guard import HEADERS, Guard
from slipway.rpc.web.server import guest_of, serve_application
from slipway.toolchain.web_runtime import web_device
from slipway.version import VERSION

_MESSAGE_BYTES = 1 << 18  # of one WebSocket message to a page
LINGER_S = 0.5  # for the last bytes to the side that did not close
_TYPES = {".mjs": "text/javascript", ".css": "text/css", ".html": "text/html"}
_FILES = {
    "/": "device/index.html",
    "/icon.svg": "device/icon.svg",
    "/slipway.mjs": "slipway.mjs",
    "/base.css": "base.css",
    "/device/device.css": "device/device.css",
    **{
        f"/device/{name}.mjs": f"device/{name}.mjs"
        for name in ("page", "device", "link", "session", "worker")
    },
}
# Isolated, for shared memory; and WebAssembly may be compiled, which `script-src` governs.
_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace(
        "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'"
    ),
    "Cross-Origin-Embedder-Policy": "require-corp",
}
# What servers in between add: then the peer's address is theirs.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


class DevicePage:
    """The routes in front of one proxy."""

    def __init__(self, proxy: ProxyServer) -> None:
        self._proxy = proxy
        self._folder = find_js_path()[0]

    def application(self, names: Iterable[str] = ()) -> Starlette:
        """Return the ASGI application; `names` are host names it may be asked under."""
        return Starlette(
            routes=[
                *(Route(path, self._file) for path in _FILES),
                Route("/device/session.wasm", self._session),
                WebSocketRoute("/device/proxy", self._carry),
            ],
            middleware=[
                Middleware(Guard, names=tuple(names), what="proxy", headers=_HEADERS),
            ],
        )

    async def _file(self, request: Request) -> Response:
        name = _FILES[request.url.path]
        suffix = name[name.rindex(".") :]
        return FileResponse(
            f"{self._folder}/{name}",
            media_type=_TYPES.get(suffix),
            headers={"Cache-Control": "no-cache"},
        )

    async def _session(self, _request: Request) -> Response:
        path = await run_in_threadpool(web_device)  # compiled at the first use
        return FileResponse(
            path,
            media_type="application/wasm",
            headers={"Cache-Control": "no-cache", "X-Slipway-Version": VERSION},
        )

    async def _carry(self, websocket: WebSocket) -> None:
        """Pass bytes between a WebSocket and the proxy, as a device's connection."""
        client = websocket.client
        host, port = (client.host, client.port) if client is not None else ("", 0)
        is_forwarded = any(name in websocket.headers for name in _FORWARDED)
        is_local = not is_forwarded and is_local_peer((host, port))
        await websocket.accept()
        page, proxy = socket.socketpair()
        streams: Streams = await asyncio.open_connection(sock=proxy, limit=READ_AHEAD_BYTES)
        reader, writer = await asyncio.open_connection(sock=page, limit=READ_AHEAD_BYTES)
        guest = guest_of(websocket.scope)
        serving = asyncio.ensure_future(
            self._proxy.serve_page(streams, guest, f"{host}:{port}", is_local=is_local)
        )
        there = asyncio.ensure_future(_from_page(websocket, writer))
        back = asyncio.ensure_future(_to_page(reader, websocket))
        try:
            await asyncio.wait({there, back}, return_when="FIRST_COMPLETED")
            writer.close()
            await asyncio.wait({serving, back}, timeout=LINGER_S)
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            for task in (serving, there, back):
                task.cancel()
            await asyncio.gather(serving, there, back, return_exceptions=True)
            writer.close()
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close()


async def _from_page(websocket: WebSocket, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(WebSocketDisconnect, KeyError, OSError):  # KeyError: of a text
        while True:
            writer.write(await websocket.receive_bytes())
            await writer.drain()


async def _to_page(reader: asyncio.StreamReader, websocket: WebSocket) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
        while content := await reader.read(_MESSAGE_BYTES):
            await websocket.send_bytes(content)


async def serve_devices(
    proxy: ProxyServer,
    listener: socket.socket,
    names: Iterable[str] = (),
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve the page for browsers that become devices of `proxy`, until cancelled."""
    application = DevicePage(proxy).application(names)
    await serve_application(application, listener, tls, websockets=True)
