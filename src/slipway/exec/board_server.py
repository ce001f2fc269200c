"""``python -m slipway.exec.board_server``: an emulated microcontroller for a tracker's clients."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from slipway.cli.exit_codes import OptionError
from slipway.exec.arguments import (
    add_log_format,
    add_token,
    address_text,
    announce,
    read_token,
    run_until_stopped,
    told,
)
from slipway.farm.board_server import BoardServer
from slipway.micro.board import find_board
from slipway.rpc import log
from slipway.rpc.addresses import address_of
from slipway.rpc.protocol import key_problem
from slipway.rpc.server import listen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m slipway.exec.board_server",
        description="Register an emulated microcontroller with a tracker, and serve its sessions.",
    )
    parser.add_argument("--board", required=True, help="name of the board, or its .toml file")
    parser.add_argument("--image", type=Path, required=True, help="host_driven firmware (.elf)")
    parser.add_argument("--key", required=True, help="kind of device that clients ask for")
    parser.add_argument("--tracker", required=True, metavar="HOST:PORT")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0: any free one (%(default)s)")
    add_token(parser)
    add_log_format(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server, and say what keeps it from that."""
    return told("board-server", run, argv)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the server until SIGTERM or Ctrl-C."""
    arguments = _parser().parse_args(argv)
    token = read_token(arguments)
    if problem := key_problem(arguments.key):
        raise OptionError(f"{arguments.key!r} is no kind of device: {problem}.")
    image = arguments.image.resolve(strict=True)
    tracker = address_of(arguments.tracker)
    server = BoardServer(arguments.key, find_board(arguments.board), image, tracker, token)
    with listen(arguments.host, arguments.port, arguments.port + 1) as listener:
        address = address_text(listener, arguments.host)
        log.configure("board-server", arguments.log_format)
        announce("board-server", arguments, f"{arguments.key} at", address)
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(run_until_stopped(server.serve(listener), -1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
