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
import time
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

from slipway.rpc.connections.reception import origin_of
from slipway.rpc.farm.commands import Command, run_command
from slipway.rpc.farm.devices import FarmDevice
from slipway.rpc.farm.metrics import CONTENT_TYPE, metrics_text
from slipway.rpc.farm.remarks import MAX_NOTE, tags_of
from slipway.rpc.farm.state import Farm, clean_text
from slipway.rpc.farm.store import Store
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
_MAX_RESERVED_MIN = 7 * 24 * 60
_SHOWN_BYTES = 400


class _Events(StreamingResponse):
    """Events for one reader, whose place is taken here and given back whatever happens."""

    def __init__(self, feed: Feed, origin: str) -> None:
        reader = feed.enter(origin)
        if reader is None:
            raise HTTPException(503, "Too many pages are open; close some.")
        self._feed, self._reader = feed, reader
        super().__init__(feed.read(reader), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.leave(self._reader)


def _origin(request: Request) -> str:
    client = request.client
    if client is None:
        return origin_of(None)
    return origin_of((*client, 0, 0) if ":" in client.host else tuple(client))


class Page:
    """The routes over one farm."""

    def __init__(
        self, farm: Farm, admin_token: str = "", store: Store | None = None,
        commands: Iterable[Command] = (),
    ) -> None:  # fmt: skip
        self._farm = farm
        self._store = store
        self._commands = {command.name: command for command in commands}
        self._running: set[tuple[str, int]] = set()
        self._administrators = Administrators(admin_token)
        self.feed = Feed(farm)

    def application(self, names: Iterable[str] = ()) -> Starlette:
        """Return the ASGI application; `names` are host names it may be asked under."""
        routes = [Route(path, self._file) for path in _FILES]
        routes += [
            Route("/api/farm", self._state),
            Route("/api/events", self._events),
            Route("/api/day", self._day),
            Route("/api/command", self._farm_command, methods=["POST"]),
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

    async def _events(self, request: Request) -> Response:
        return _Events(self.feed, _origin(request))

    async def _day(self, _request: Request) -> Response:
        points = self._store.day() if self._store is not None else history(self._farm)
        return JSONResponse({"history": points})

    async def _metrics(self, _request: Request) -> Response:
        return Response(metrics_text(self._farm), headers={"Content-Type": CONTENT_TYPE})

    async def _me(self, request: Request) -> Response:
        return JSONResponse(self._standing(self._administrators.csrf_of(request)))

    def _standing(self, csrf: str) -> dict[str, Any]:
        can_sign_in = self._administrators.can_sign_in
        commands = [
            {"name": command.name, "kinds": list(command.kinds), "farm": command.farm}
            for command in self._commands.values()
        ]
        return {
            "can_sign_in": can_sign_in, "is_admin": bool(csrf), "csrf": csrf,
            "commands": commands if csrf else [],
        }  # fmt: skip

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
        body = await _body(request)
        if act == "drain":
            done = self._farm.drain(number)
        elif act == "resume":
            done = self._farm.resume(number)
        elif act == "kick":
            done = self._farm.kick(number, _word(body, "session", 80))
        elif act == "describe":
            note = clean_text(_word(body, "note", MAX_NOTE), MAX_NOTE)
            done = self._farm.describe(number, note, tags_of(_word(body, "tags", 600)))
        elif act == "reserve":
            minutes = body.get("minutes", 0)
            if isinstance(minutes, bool) or not isinstance(minutes, int | float):
                raise HTTPException(400, "minutes is a number.")
            if not 0 <= minutes <= _MAX_RESERVED_MIN:
                raise HTTPException(400, f"A reservation ends after {_MAX_RESERVED_MIN} minutes.")
            who = clean_text(_word(body, "who", 80).strip()) if minutes else ""
            if minutes and not who:
                raise HTTPException(400, "who is a name, for whom the device is kept.")
            done = self._farm.reserve(number, who, time.time() + 60 * minutes)
        elif act == "command":
            return await self._command(_word(body, "name", 80), self._farm.device_of(number))
        else:
            raise HTTPException(404, f"There is no act {act[:40]!r}.")
        if not done:
            raise HTTPException(409, "There is no such device, or its session has ended.")
        return JSONResponse({"done": act})

    async def _farm_command(self, request: Request) -> Response:
        await self._administrators.admit(request)
        return await self._command(_word(await _body(request), "name", 80), None)

    async def _command(self, name: str, device: FarmDevice | None) -> Response:
        """Run a command of the tracker's file and answer with its result."""
        command = self._commands.get(name)
        offered = command is not None and (
            command.farm if device is None else command.serves(device.key)
        )
        if command is None or not offered:
            raise HTTPException(404, "There is no such command, or no such device.")
        running = (name, device.number if device is not None else 0)
        if running in self._running:
            raise HTTPException(409, f"{name} runs already.")
        values = {}
        if device is not None:
            values = {"key": device.key, "address": device.address, "port": str(device.port)}
        self._running.add(running)
        start = time.monotonic()
        try:
            result, message = await run_command(command, values)
        finally:
            self._running.discard(running)
        message = clean_text(message, _SHOWN_BYTES)
        took_s = time.monotonic() - start
        self._farm.journal.command_ended(name, device, took_s, result, message)
        return JSONResponse({"done": name, "result": result, "text": message})


async def _explain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _fail(request: Request, _error: Exception) -> Response:
    """Answer for a defect of ours; Starlette raises it again, so that it is in the log."""
    message = f"The tracker failed at {request.method} {request.url.path[:80]!r}; see its log."
    return JSONResponse({"error": message}, 500)


def _word(body: dict[str, Any], name: str, longest: int) -> str:
    value = body.get(name, "")
    if not isinstance(value, str):
        what = "A session is named by a text." if name == "session" else f"{name} is a text."
        raise HTTPException(400, what)
    if len(value) > longest:
        raise HTTPException(400, f"{name} has more than {longest} characters.")
    return value


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
    store: Store | None = None,
    commands: Iterable[Command] = (),
) -> None:
    """Serve the page of `farm` on a listening socket until cancelled."""
    page = Page(farm, admin_token, store, commands)
    feeding = asyncio.ensure_future(page.feed.run())
    try:
        await serve_application(page.application(names), listener, tls)
    finally:
        page.feed.close()
        feeding.cancel()
