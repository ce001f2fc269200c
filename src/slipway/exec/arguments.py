"""Options that the server, the tracker and the proxy have in common."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from slipway.cli.exit_codes import OptionError, code_of
from slipway.errors import SlipwayError
from slipway.rpc import addresses
from slipway.rpc.connections.greeting import token_of
from slipway.rpc.connections.tls import client_context, server_context
from slipway.rpc.log import FORMATS, configure, tell


def add_token(parser: argparse.ArgumentParser) -> None:
    """Add --token-file."""
    parser.add_argument(
        "--token-file",
        type=Path,
        help="file with the token that peers from other machines must have "
        "(or the environment variable SLIPWAY_RPC_TOKEN)",
    )


def read_token(arguments: argparse.Namespace) -> str:
    """Return the token, and take it out of the environment of what this process starts."""
    token = os.environ.pop("SLIPWAY_RPC_TOKEN", "")
    if arguments.token_file is not None:
        token = token_of(arguments.token_file)
    return token


def message_of(error: Exception) -> str:
    """Return what an error says, without a system error's number."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def told(
    program: str, run: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None
) -> int:
    """Run a program; where it cannot, say why, and return the exit code of that failure's class."""
    try:
        return run(argv)
    except (OSError, SlipwayError) as error:
        print(f"{program}: error: {message_of(error)}", file=sys.stderr)
        return code_of(error)


def add_log_format(parser: argparse.ArgumentParser) -> None:
    """Add --log-format."""
    parser.add_argument(
        "--log-format", choices=FORMATS, default="text", help="lines for people, or JSON lines"
    )


def address_text(listener: socket.socket, host: str) -> str:
    """Return HOST:PORT of a listening socket, with the host as the user named it."""
    return addresses.address_text(host, listener.getsockname()[1])


def announce(program: str, arguments: argparse.Namespace, what: str, address: str) -> None:
    """Say on stderr where a program can be reached; also when it is to be silent."""
    if arguments.log_format == "json":
        configure(program, "json")
        message = f"{what} {address}".strip()
        event = "listening" if address else "port_taken"
        tell(logging.getLogger(__name__), event, message, address=address)
    else:
        print(f"INFO:root:{program}: {what} {address}".rstrip(), file=sys.stderr, flush=True)


def announce_port(program: str, arguments: argparse.Namespace, listener: socket.socket) -> None:
    """Say that another port was taken than the one asked for, where others will look for it."""
    port = listener.getsockname()[1]
    if arguments.port not in (0, port):
        announce(
            program, arguments, f"port {arguments.port} is taken, by another one perhaps: who is "
            f"to reach this one has to name port {port}", "",
        )  # fmt: skip


def add_tls(parser: argparse.ArgumentParser) -> None:
    """Add --tls-cert and --tls-key."""
    parser.add_argument(
        "--tls-cert", type=Path, help="PEM file with this end's certificate: speak TLS only"
    )
    parser.add_argument(
        "--tls-key", type=Path, help="PEM file with its key (the certificate's file has it)"
    )


def add_tls_ca(parser: argparse.ArgumentParser, peer: str) -> None:
    """Add --tls-ca and --tls-name, for the connection to `peer`."""
    parser.add_argument(
        "--tls-ca",
        help=f"speak TLS with the {peer}, whose certificate one of this file signed; "
        '"system" trusts what the system does (or SLIPWAY_RPC_TLS_CA)',
    )
    parser.add_argument(
        "--tls-name", help=f"name in the {peer}'s certificate, where it is not its address"
    )


def own_tls(arguments: argparse.Namespace) -> ssl.SSLContext | None:
    """Return the context of --tls-cert and --tls-key; None without them."""
    need_certificate(arguments)
    if arguments.tls_cert is None:
        return None
    return server_context(arguments.tls_cert, arguments.tls_key)


def need_certificate(arguments: argparse.Namespace) -> None:
    """Refuse a key alone: whoever gave it would speak no TLS."""
    if arguments.tls_key is not None and arguments.tls_cert is None:
        raise OptionError("--tls-key needs --tls-cert, the certificate of that key.")


def peer_tls(arguments: argparse.Namespace) -> ssl.SSLContext | None:
    """Return the context of --tls-ca; None without it."""
    return client_context(arguments.tls_ca)


async def run_until_stopped(serving: Coroutine[Any, Any, None], watch_fd: int) -> None:
    """Run `serving` until SIGTERM, SIGINT or the end of `watch_fd`."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(serving)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    if watch_fd >= 0:
        loop.add_reader(watch_fd, task.cancel)
    await task
