"""``python -m slipway.exec.rpc_tracker``: hand devices out to those who ask for them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import SlipwayError
from slipway.rpc.server import listen
from slipway.rpc.tracker import TrackerServer


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m slipway.exec.rpc_tracker",
        description="Keep track of devices, and hand them out to clients, one at a time.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=9190, help="first port to try (%(default)s)")
    parser.add_argument("--port-end", type=int, default=9290, help="try ports below this one")
    parser.add_argument(
        "--token-file",
        type=Path,
        help="file with the token that peers from other machines must have "
        "(or the environment variable SLIPWAY_RPC_TOKEN)",
    )
    parser.add_argument("--silent", action="store_true", help="write no log")
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--watch-fd", type=int, default=-1, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tracker until SIGTERM or Ctrl-C."""
    arguments = _parser().parse_args(argv)
    token = os.environ.pop("SLIPWAY_RPC_TOKEN", "")
    try:
        if arguments.token_file is not None:
            token = arguments.token_file.read_text().strip()
        if arguments.listen_fd >= 0:
            listener = socket.socket(fileno=arguments.listen_fd)
        else:
            listener = listen(arguments.host, arguments.port, arguments.port_end)
    except (OSError, SlipwayError) as error:
        print(f"rpc_tracker: error: {error}", file=sys.stderr)
        return 2
    if not arguments.silent:
        logging.basicConfig(format="INFO:root:RPCTracker: %(message)s", level=logging.INFO)
    if arguments.listen_fd < 0:
        address = f"{arguments.host}:{listener.getsockname()[1]}"
        print(f"INFO:root:RPCTracker: bind to {address}", file=sys.stderr, flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_run(listener, token, arguments.watch_fd))
    return 0


async def _run(listener: socket.socket, token: str, watch_fd: int) -> None:
    loop = asyncio.get_running_loop()
    serving = asyncio.ensure_future(TrackerServer(token).serve(listener))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, serving.cancel)
    if watch_fd >= 0:
        loop.add_reader(watch_fd, serving.cancel)
    await serving


if __name__ == "__main__":
    sys.exit(main())
