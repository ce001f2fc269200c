"""The tracker's web page, its JSON, its live events and its metrics: ``rpc_tracker --web 8190``.

Built on Starlette and uvicorn, which are needed, and loaded, for the page only.  The page is
``page/*``, three files without a build step.  Everybody who reaches it may look; to act needs the
administrator's token.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from slipway.rpc.farm import Farm
from slipway.rpc.farm_view import history, snapshot
from slipway.rpc.metrics import CONTENT_TYPE, metrics_text
from slipway.rpc.web_auth import COOKIE, LIFETIME_S, Administrators
from slipway.rpc.web_feed import Feed
from slipway.rpc.web_guard import Guard
from slipway.version import VERSION

_PAGE = Path(__file__).parent / "page"
_FILES = {
    "/": "index.html",
    "/farm.css": "farm.css",
    "/farm.js": "farm.js",
    "/icon.svg": "icon.svg",
}
_MAX_BODY_BYTES = 8192
STOP_TIMEOUT_S = 3.0


class Page:
    """The routes over one farm."""

    def __init__(self, farm: Farm, admin_token: str = "") -> None:
        self._farm = farm
        self._administrators = Administrators(admin_token)
        self.feed = Feed(farm)

    def application(self, names: Iterable[str] = ()) -> Starlette:
        """Return the ASGI application; `names` are host names it may be asked under."""
        routes = [Route(path, self._file) for path in _FILES]
        routes += [
            Route("/api/farm", self._state),
            Route("/api/events", self._events),
            Route("/api/me", self._me),
            Route("/api/login", self._sign_in, methods=["POST"]),
            Route("/api/logout", self._sign_out, methods=["POST"]),
            Route("/api/devices/{number:int}/{act}", self._act, methods=["POST"]),
            Route("/metrics", self._metrics),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(Guard, names=tuple(names))],
            exception_handlers={HTTPException: _explain},
        )

    async def _file(self, request: Request) -> Response:
        return FileResponse(_PAGE / _FILES[request.url.path], headers={"Cache-Control": "no-cache"})

    async def _state(self, _request: Request) -> Response:
        state = {"version": VERSION, **snapshot(self._farm), "history": history(self._farm)}
        return JSONResponse(state)

    async def _events(self, _request: Request) -> Response:
        if self.feed.is_full:
            raise HTTPException(503, "Too many pages are open; close some.")
        return StreamingResponse(self.feed.read(), media_type="text/event-stream")

    async def _metrics(self, _request: Request) -> Response:
        return Response(metrics_text(self._farm), headers={"Content-Type": CONTENT_TYPE})

    async def _me(self, request: Request) -> Response:
        return JSONResponse(self._standing(self._administrators.csrf_of(request)))

    def _standing(self, csrf: str) -> dict[str, Any]:
        can_sign_in = self._administrators.can_sign_in
        return {"can_sign_in": can_sign_in, "is_admin": bool(csrf), "csrf": csrf}

    async def _sign_in(self, request: Request) -> Response:
        token = (await _body(request)).get("token")
        if not isinstance(token, str):
            raise HTTPException(400, 'Send {"token": "..."}.')
        cookie, csrf = await self._administrators.sign_in(token)
        response = JSONResponse(self._standing(csrf))
        response.set_cookie(
            COOKIE, cookie, max_age=LIFETIME_S, httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    async def _sign_out(self, request: Request) -> Response:
        await self._administrators.admit(request)
        self._administrators.sign_out(request)
        response = JSONResponse(self._standing(""))
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    async def _act(self, request: Request) -> Response:
        await self._administrators.admit(request)
        number, act = int(request.path_params["number"]), request.path_params["act"]
        body = await _body(request)
        if act == "drain":
            done = self._farm.drain(number)
        elif act == "resume":
            done = self._farm.resume(number)
        elif act == "kick":
            done = self._farm.kick(number, str(body.get("session", "")))
        else:
            raise HTTPException(404, f"There is no act {act[:40]!r}.")
        if not done:
            raise HTTPException(409, "There is no such device, or its session has ended.")
        return JSONResponse({"done": act})


async def _explain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _body(request: Request) -> dict[str, Any]:
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > _MAX_BODY_BYTES:
            raise HTTPException(413, "That is too long.")
    try:
        content = json.loads(raw or b"{}")
    except ValueError as error:
        raise HTTPException(400, "That is not JSON.") from error
    if not isinstance(content, dict):
        raise HTTPException(400, "That is not a JSON object.")
    return content


class _Server(uvicorn.Server):
    """uvicorn inside a program that handles the signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_page(
    farm: Farm,
    listener: socket.socket,
    admin_token: str = "",
    names: Iterable[str] = (),
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve the page of `farm` on a listening socket until cancelled."""
    page = Page(farm, admin_token)
    config = uvicorn.Config(
        page.application(names),
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=512,
        h11_max_incomplete_event_size=16384,
    )
    config.load()
    if tls is not None:
        config.ssl = tls
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    feeding = asyncio.ensure_future(page.feed.run())
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        page.feed.close()
        await asyncio.wait({serving}, timeout=STOP_TIMEOUT_S)
        feeding.cancel()
