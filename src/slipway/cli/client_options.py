"""What every command that goes to a device, tracker or proxy has: a token and an authority."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

PANEL = "Security"
TokenFile = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=PANEL,
        help="A file with the token that the other side asks for. [default: SLIPWAY_RPC_TOKEN]",
    ),
]
TlsCa = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PANEL,
        help="Speak TLS only; trust certificates that one of this PEM file signed, or those that "
        'the "system" does. [default: SLIPWAY_RPC_TLS_CA]',
    ),
]


def client(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with --token-file and --tls-ca, which hold while it runs.

    They are told through the environment, as everything that connects asks it.
    """

    @functools.wraps(command)
    def called(*, token_file: Path | None, tls_ca: str | None, **options: Any) -> None:
        with secrets(token_file, tls_ca):
            command(**parted(options))

    own = inspect.signature(command, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in (("token_file", TokenFile), ("tls_ca", TlsCa))
    ]
    called.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), *more]
    )
    return called


def parted(options: dict[str, Any]) -> dict[str, Any]:
    """Return a command's options with the port of ``--rpc-host HOST:PORT`` where it belongs."""
    host, _, port = str(options.get("rpc_host") or "").rpartition(":")
    if not host or ":" in host or not port.isdecimal() or "rpc_port" not in options:
        return options
    return {**options, "rpc_host": host, "rpc_port": int(port)}


@contextmanager
def secrets(token_file: Path | None, tls_ca: str | None) -> Iterator[None]:
    """Let what connects here have the token of a file and trust an authority."""
    from slipway.rpc.connections.greeting import token_of
    from slipway.rpc.connections.tls import CA_VARIABLE

    given: dict[str, str] = {}
    if token_file is not None:
        given["SLIPWAY_RPC_TOKEN"] = token_of(token_file)
    if tls_ca is not None:
        given[CA_VARIABLE] = tls_ca
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
