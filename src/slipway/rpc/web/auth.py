"""Who may administrate through the page: the token once, then a cookie and a proof of origin.

The cookie is HttpOnly and SameSite=Strict; an act also needs the session's X-CSRF-Token, which
only a page of the same origin can have read.  Programs send ``Authorization: Bearer TOKEN`` with
each request instead; browsers never do so on their own.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request

COOKIE = "slipway_admin"
LIFETIME_S = 8 * 3600
_MAX_SESSIONS = 100
_WRONG_TOKEN_DELAY_S = 1.0
_MAX_GUESSES = 4  # that may wait for their refusal at one time


class Administrators:
    """Those who have shown the administrator's token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._sessions: dict[str, tuple[str, float]] = {}  # cookie -> CSRF token, end
        self._guesses = asyncio.Semaphore(_MAX_GUESSES)

    @property
    def can_sign_in(self) -> bool:
        """Whether there is a token to show."""
        return bool(self._token)

    async def sign_in(self, token: str) -> tuple[str, str]:
        """Return a cookie and its CSRF token; HTTPException for a wrong token."""
        await self._check(token)
        now = time.monotonic()
        live = [(name, one) for name, one in self._sessions.items() if one[1] > now]
        self._sessions = dict(live[-_MAX_SESSIONS + 1 :])
        cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._sessions[cookie] = csrf, now + LIFETIME_S
        return cookie, csrf

    def sign_out(self, request: Request) -> None:
        """Forget the request's session."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    def csrf_of(self, request: Request) -> str:
        """Return the CSRF token of the request's session, "" without one."""
        csrf, end = self._sessions.get(request.cookies.get(COOKIE, ""), ("", 0.0))
        return csrf if end > time.monotonic() else ""

    async def admit(self, request: Request) -> None:
        """Return if the request may act; HTTPException 401 or 403 if not."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            await self._check(token.strip())
            return
        csrf = self.csrf_of(request)
        if not csrf:
            raise HTTPException(401, "Sign in as administrator first.")
        shown = request.headers.get("x-csrf-token", "")
        if not hmac.compare_digest(csrf.encode(), shown.encode()):
            raise HTTPException(403, "This request does not come from the tracker's page.")

    async def _check(self, token: str) -> None:
        if not self._token:
            raise HTTPException(
                403,
                "This tracker has no administrator: start it with SLIPWAY_RPC_ADMIN_TOKEN or "
                "--admin-token-file.",
            )
        if hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
            return
        if self._guesses.locked():
            raise HTTPException(429, "Too many wrong tokens; try again later.")
        async with self._guesses:
            await asyncio.sleep(_WRONG_TOKEN_DELAY_S)
        raise HTTPException(401, "That is not the administrator's token.")
