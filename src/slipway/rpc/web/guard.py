"""What stands in front of every request to the page: host names, methods of attack, headers."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """ASGI middleware.

    A page elsewhere may let its own name point to this machine and so read from here as if from
    itself (DNS rebinding): only addresses, this machine's names and `names` are answered.
    Requests that change something, and WebSockets, must come from the page's own origin.  `what` is
    whose page it is, for messages, `headers` what every answer has.
    """

    def __init__(
        self,
        app: ASGIApp,
        names: Iterable[str] = (),
        what: str = "tracker",
        headers: Mapping[str, str] = HEADERS,
    ) -> None:
        self._app = app
        self._what = what
        self._ours = headers
        own = {"localhost", socket.gethostname(), socket.getfqdn()}
        self._names = {name.lower().rstrip(".") for name in (*own, *names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            if self._is_own(Headers(scope=scope)):
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = MutableHeaders(scope=message)
                for name, value in self._ours.items():
                    ours[name] = value
                ours.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope["method"], headers)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        else:
            status, message = refusal
            answer = JSONResponse({"error": message}, status)
            await answer(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_known(_host_name(host)):
            return 421, (
                f"This {self._what}'s page is not served as {host[:80]!r}; use its address, or "
                f"start the {self._what} with --web-name NAME."
            )
        if method in ("GET", "HEAD"):
            return None
        if not self._is_own(headers):
            return 403, "This request comes from another site's page."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "This request comes from another site's page."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "Send application/json."
        return None

    def _is_own(self, headers: Headers) -> bool:
        """Whether a request comes from the page that this server serves, as far as it says."""
        host, origin = headers.get("host", ""), headers.get("origin")
        return self._is_known(_host_name(host)) and (
            origin is None or origin.partition("://")[2].lower() == host.lower()
        )

    def _is_known(self, name: str) -> bool:
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.lower().rstrip(".") in self._names
        return True


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
