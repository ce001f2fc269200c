"""Sessions that go on from a first device to another one: classic ``session_constructor_args``.

The first device connects to the second and carries bytes from then on, so that the client greets
the second one itself: keys, tokens and deadlines are between those two.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from slipway.errors import RPCError
from slipway.rpc.link import Link

GREETING_TIMEOUT_S = 10.0
_PROGRAM = "session_program"  # its name in the first session's folder
_FORMS = '["rpc.Connect", host, port, key, False] or ["rpc.PopenSession", the bytes of a program]'


class _Session(Protocol):
    link: Link

    def get_function(self, name: str) -> Any: ...

    def upload(self, data: Any, target: str | None = None) -> None: ...


@dataclass(frozen=True)
class Hop:
    """A connection that leads to the next server, which waits for its greeting."""

    link: socket.socket
    peer: str
    key: str
    wants_proof: bool


def go_on(session: _Session, steps: Sequence[Any]) -> tuple[Hop, list[Any]]:
    """Let `session` lead to the server that the first step names; return that and further steps.

    `session` is over then.  RPCError where its device cannot do so, or the step is none.
    """
    try:
        kind, rest = steps[0], list(steps[1:])
        if kind == "rpc.Connect":
            arguments, rest = _connect_arguments(rest), rest[4:]
            peer, key, proof = f"{arguments[0]}:{arguments[1]}", _key(steps), True
        elif kind == "rpc.PopenSession":
            arguments, rest = _program(session, rest), []
            peer, key, proof = "the program", "", False
        else:
            raise RPCError(
                f"session_constructor_args begin with {kind!r}, and there is no such step: "
                f"they are {_FORMS}."
            )
        session.get_function(kind)(*arguments)
    except BaseException:
        session.link.close()
        raise
    first = session.link.peer
    link = session.link.take_socket("it went on to another server")
    link.settimeout(GREETING_TIMEOUT_S)
    return Hop(link, f"{peer} (through {first})", key, proof), rest


def _key(steps: Sequence[Any]) -> str:
    """Return the key that a step "rpc.Connect" asks for."""
    key = steps[3] if len(steps) > 3 else ""
    if not isinstance(key, str):
        raise RPCError(f"the key of session_constructor_args is {key!r}, which is no text.")
    return key


def _connect_arguments(rest: Sequence[Any]) -> tuple[Any, ...]:
    if len(rest) < 2 or not isinstance(rest[0], str) or not isinstance(rest[1], int):
        raise RPCError(f"session_constructor_args are {_FORMS}; these go on with {list(rest)!r}.")
    return rest[0], rest[1]


def _program(session: _Session, rest: Sequence[Any]) -> tuple[Any, ...]:
    if len(rest) != 1 or not isinstance(rest[0], bytes | bytearray | str | os.PathLike):
        raise RPCError(f"session_constructor_args are {_FORMS}.")
    content = rest[0]
    if not isinstance(content, bytes | bytearray):
        try:
            content = Path(content).read_bytes()
        except OSError as error:
            raise RPCError(f"cannot upload {str(rest[0])!r}: {error.strerror}.") from error
    session.upload(bytes(content), _PROGRAM)
    return (_PROGRAM,)
