"""Greetings in asyncio: who may come in to a tracker or a proxy, and how to come in to one.

The rule is the servers': a peer of this machine needs no token; every other one proves that it has
the token, and the one who wants to administrate proves the administrator's, from wherever it comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import os
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.errors import FileError, RPCError
from slipway.rpc.connections.reception import Streams
from slipway.rpc.protocol import (
    HEADER,
    HELLO_MAX_BYTES,
    VERSION_MAX,
    VERSION_MIN,
    Code,
    Failure,
    Feature,
    Hello,
    Role,
    client_proof,
    error_payload,
    frame,
    hello_payload,
    key_problem,
    read_hello,
    read_proof,
    read_refusal,
    server_proof,
    welcome_payload,
)
from slipway.version import VERSION

_WRONG_TOKEN_DELAY_S = 1.0
_MAX_AHEAD = 64  # frames of a peer that wait for being handled


def token_of(path: Path) -> str:
    """Return the token that a file holds."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise FileError(f"{path} holds no token: it is no text in UTF-8.") from error
    if not token:
        raise FileError(f"{path} holds no token: it is empty. One can be any text of a line.")
    return token


class Refused(Exception):
    """The peer is told why, and its connection closed."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


@contextlib.asynccontextmanager
async def serving(
    writer: asyncio.StreamWriter, note: Callable[[Refused], None]
) -> AsyncIterator[None]:
    """Serve one connection in the body, and close it afterwards.

    A refusal goes to `note` and to the peer; a peer that leaves or speaks nonsense ends the body.
    """
    try:
        yield
    except Refused as refused:
        note(refused)
        send(writer, Code.ERROR, 0, error_payload(refused.failure, str(refused)))
        with contextlib.suppress(OSError):
            await writer.drain()
    except (OSError, EOFError, TimeoutError, struct.error, ValueError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


@dataclass(frozen=True)
class Gate:
    """What a tracker or a proxy asks of its peers.

    Attributes
    ----------
    what
        "tracker" or "proxy", for messages.
    roles
        those it serves.
    advice
        said to peers of another role.
    token, admin_token
        what peers of other machines, and administrators, must prove; "" refuses them.

    """

    what: str
    roles: frozenset[Role]
    advice: str
    token: str = ""
    admin_token: str = ""

    async def admit(self, streams: Streams, *, is_local: bool) -> tuple[Hello, bytes]:
        """Receive a greeting; return it, and its payload, when the peer may come in.

        Sessions get no WELCOME from here, the device behind a proxy gives it.  Raises Refused, or
        EOFError where the peer does not speak the protocol.
        """
        number, payload = await receive(streams[0], Code.HELLO)
        hello = read_hello(payload)
        if hello is None:
            raise EOFError
        if hello.version_min > VERSION_MAX or hello.version_max < VERSION_MIN:
            raise Refused(
                Failure.VERSION,
                f"{hello.name} speaks RPC protocol {hello.version_max}, this {self.what} (slipway "
                f"{VERSION}) speaks {VERSION_MAX}; install the same release of Slipway on both",
            )
        if hello.role not in self.roles:
            raise Refused(Failure.UNSUPPORTED, self.advice)
        problem = key_problem(hello.key) if hello.role == Role.DEVICE else ""
        if problem or not hello.key.isprintable():
            raise Refused(Failure.AUTH, problem or "the key is no printable UTF-8")
        proof = bytes(32)
        # Sessions are proved by the device behind a proxy, to which this HELLO goes on.
        wants_proof = bool(hello.features & Feature.PROOF) and hello.role != Role.SESSION
        if hello.role == Role.ADMIN or not is_local or (wants_proof and self.token):
            proof = await self.challenge(streams, number, hello.role)
        if hello.role != Role.SESSION:
            name = f"slipway {self.what} {VERSION}"
            send(streams[1], Code.WELCOME, number, welcome_payload(hello.role, proof, name))
        return hello, payload

    async def challenge(self, streams: Streams, number: int, role: int) -> bytes:
        """Let the peer prove the token; return the proof of this end.  Raises Refused."""
        is_admin = role == Role.ADMIN
        token = self.admin_token if is_admin else self.token
        if not token and is_admin:
            raise Refused(
                Failure.AUTH,
                f"this {self.what} has no administrator; start it with SLIPWAY_RPC_ADMIN_TOKEN or "
                "--admin-token-file",
            )
        if not token:
            raise Refused(
                Failure.AUTH,
                f"this {self.what} has no token, so it serves its own machine only; start it with "
                "SLIPWAY_RPC_TOKEN or --token-file, and give its peers the same token",
            )
        challenge = os.urandom(32)
        send(streams[1], Code.CHALLENGE, number, challenge)
        _, answer = await receive(streams[0], Code.AUTHENTICATE)
        nonce, mac = answer[:32], answer[32:64]
        # An administrator may do what everybody may.
        accepted = {token, self.admin_token} - {""}
        for one in sorted(accepted):
            if hmac.compare_digest(mac, client_proof(one, challenge, nonce)):
                return server_proof(one, nonce, challenge)
        await asyncio.sleep(_WRONG_TOKEN_DELAY_S)
        whose = "administrator's of this" if is_admin else "one of this"
        raise Refused(Failure.AUTH, f"the token is not the {whose} {self.what}")


async def introduce(
    streams: Streams, role: Role, key: str, name: str, token: str, peer: str
) -> None:
    """Greet a tracker on a fresh connection; RPCError with its reason when it refuses.

    With a token it must prove that it has the same one.
    """
    reader, writer = streams
    features = Feature.PROOF if token else 0
    hello = hello_payload(role, key.encode(), name.encode(), features=features)
    send(writer, Code.HELLO, 1, hello)
    code, _, payload = await receive_any(reader)
    expected = b""
    if code == Code.CHALLENGE:
        if not token:
            raise RPCError(f"{peer} asks for its token, and none is set here.")
        nonce, challenge = os.urandom(32), payload[:32]
        send(writer, Code.AUTHENTICATE, 1, nonce + client_proof(token, challenge, nonce))
        expected = server_proof(token, nonce, challenge)
        code, _, payload = await receive_any(reader)
    if code == Code.ERROR:
        raise RPCError(f"{peer} refused: {read_refusal(payload)[1]}.")
    proof = read_proof(payload)
    if code != Code.WELCOME or proof is None:
        raise RPCError(f"{peer} does not speak Slipway's RPC protocol.")
    if token and not hmac.compare_digest(proof, expected):
        raise RPCError(f"{peer} could not prove that it has the token that is set here.")


def is_local_peer(peer: Any) -> bool:
    """Return whether a socket's peer name is one of this machine."""
    if not isinstance(peer, tuple):
        return True  # a Unix socket
    address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def host_of(peer: Any) -> str:
    """Return the address in a socket's peer name, for people and for other clients."""
    return str(peer[0]) if isinstance(peer, tuple) else "localhost"


def send(writer: asyncio.StreamWriter, code: int, number: int, payload: bytes) -> None:
    """Write one frame, unless the connection is closing."""
    if not writer.is_closing():
        writer.write(frame(code, number, payload))


async def receive_any(reader: asyncio.StreamReader) -> tuple[int, int, bytes]:
    """Return code, id and payload of the next frame; EOFError where it is none of ours."""
    size, code, flags, number, channel = HEADER.unpack(await reader.readexactly(HEADER.size))
    if size > HELLO_MAX_BYTES or size % 8 or flags or channel:
        raise EOFError
    return code, number, await reader.readexactly(size)


class Inbox:
    """A peer's frames, read ahead: that it has left is seen while nothing is wanted of it."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._frames: deque[tuple[int, int, bytes]] = deque()
        self._news = asyncio.Event()
        self.reading = asyncio.ensure_future(self._read())

    @property
    def is_over(self) -> bool:
        """Whether the peer has left; what it sent before may still be here."""
        return self.reading.done() or self._reader.at_eof()

    async def _read(self) -> None:
        try:
            while len(self._frames) < _MAX_AHEAD:
                self._frames.append(await receive_any(self._reader))
                self._news.set()
        except (OSError, EOFError):
            pass
        finally:
            self._news.set()

    async def receive(self) -> tuple[int, int, bytes]:
        """Return code, id and payload of the next frame; EOFError where none will come."""
        while not self._frames:
            if self.reading.done():
                raise EOFError
            self._news.clear()
            await self._news.wait()
        return self._frames.popleft()

    async def close(self) -> None:
        """Read no further."""
        self.reading.cancel()
        await asyncio.wait({self.reading})


async def receive(reader: asyncio.StreamReader, wanted: int) -> tuple[int, bytes]:
    """Return id and payload of the next frame, which has to be a `wanted`."""
    code, number, payload = await receive_any(reader)
    if code != wanted or not number:
        raise EOFError
    return number, payload
