"""The tracker's web page, its JSON, its live events and its metrics: ``rpc_tracker --web 8190``.

Built on Starlette and uvicorn, which are needed, and loaded, for the page only.  The page is
``page/*``, three files without a build step.  Everybody who reaches it may look; to act needs the
administrator's token.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from slipway.rpc.farm.metrics import CONTENT_TYPE, metrics_text
from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.view import history, snapshot
from slipway.rpc.web.auth import COOKIE, LIFETIME_S, Administrators
from slipway.rpc.web.feed import Feed
from slipway.rpc.web.guard import Guard
from slipway.rpc.web.server import serve_application
from slipway.version import VERSION

_PAGE = Path(__file__).parent / "page"
_FILES = {
    "/": "index.html",
    "/farm.css": "farm.css",
    "/farm.js": "farm.js",
    "/icon.svg": "icon.svg",
}
_MAX_BODY_BYTES = 8192


class _Events(StreamingResponse):
    """Events for one reader, whose place is taken here and given back whatever happens."""

    def __init__(self, feed: Feed) -> None:
        reader = feed.enter()
        if reader is None:
            raise HTTPException(503, "Too many pages are open; close some.")
        self._feed, self._reader = feed, reader
        super().__init__(feed.read(reader), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.leave(self._reader)


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
            Route("/api/devices/{number}/{act}", self._act, methods=["POST"]),
            Route("/metrics", self._metrics),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(Guard, names=tuple(names))],
            exception_handlers={HTTPException: _explain, Exception: _fail},
        )

    async def _file(self, request: Request) -> Response:
        return FileResponse(_PAGE / _FILES[request.url.path], headers={"Cache-Control": "no-cache"})

    async def _state(self, _request: Request) -> Response:
        state = {"version": VERSION, **snapshot(self._farm), "history": history(self._farm)}
        return JSONResponse(state)

    async def _events(self, _request: Request) -> Response:
        return _Events(self.feed)

    async def _metrics(self, _request: Request) -> Response:
        return Response(metrics_text(self._farm), headers={"Content-Type": CONTENT_TYPE})

    async def _me(self, request: Request) -> Response:
        return JSONResponse(self._standing(self._administrators.csrf_of(request)))

    def _standing(self, csrf: str) -> dict[str, Any]:
        can_sign_in = self._administrators.can_sign_in
        return {"can_sign_in": can_sign_in, "is_admin": bool(csrf), "csrf": csrf}

    async def _sign_in(self, request: Request) -> Response:
        token = (await _body(request)).get("token")
        if not isinstance(token, str) or not token.isprintable():
            raise HTTPException(400, 'Send {"token": "..."}, a printable text.')
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
        number, act = _number(request.path_params["number"]), request.path_params["act"]
        session = (await _body(request)).get("session", "")
        if not isinstance(session, str):
            raise HTTPException(400, "A session is named by a text.")
        if act == "drain":
            done = self._farm.drain(number)
        elif act == "resume":
            done = self._farm.resume(number)
        elif act == "kick":
            done = self._farm.kick(number, session)
        else:
            raise HTTPException(404, f"There is no act {act[:40]!r}.")
        if not done:
            raise HTTPException(409, "There is no such device, or its session has ended.")
        return JSONResponse({"done": act})


async def _explain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _fail(request: Request, _error: Exception) -> Response:
    """Answer for a defect of ours; Starlette raises it again, so that it is in the log."""
    words = f"The tracker failed at {request.method} {request.url.path[:80]!r}; see its log."
    return JSONResponse({"error": words}, 500)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise HTTPException(404, "Devices have numbers.")
    return int(text)


async def _body(request: Request) -> dict[str, Any]:
    raw = b""
    try:
        async for part in request.stream():
            raw += part
            if len(raw) > _MAX_BODY_BYTES:
                raise HTTPException(413, "That is too long.")
    except ClientDisconnect as error:  # nobody reads the answer, but this is no defect of ours
        raise HTTPException(400, "The request ended in its middle.") from error
    try:
        content = json.loads(raw or b"{}")
    except (ValueError, RecursionError) as error:  # of 4,000 brackets, too
        raise HTTPException(400, "That is not JSON.") from error
    if not isinstance(content, dict):
        raise HTTPException(400, "That is not a JSON object.")
    return content


async def serve_page(
    farm: Farm,
    listener: socket.socket,
    admin_token: str = "",
    names: Iterable[str] = (),
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve the page of `farm` on a listening socket until cancelled."""
    page = Page(farm, admin_token)
    feeding = asyncio.ensure_future(page.feed.run())
    try:
        await serve_application(page.application(names), listener, tls)
    finally:
        page.feed.close()
        feeding.cancel()
