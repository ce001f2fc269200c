"""``python -m slipway.exec.rpc_tracker``: hand devices out to those who ask for them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import SlipwayError
from slipway.exec.arguments import add_tls, add_token, own_tls, read_token, run_until_stopped
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
    add_token(parser)
    parser.add_argument(
        "--admin-token-file",
        type=Path,
        help="file with the administrator's token (or SLIPWAY_RPC_ADMIN_TOKEN)",
    )
    add_tls(parser)
    parser.add_argument("--silent", action="store_true", help="write no log")
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--watch-fd", type=int, default=-1, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tracker until SIGTERM or Ctrl-C."""
    arguments = _parser().parse_args(argv)
    admin_token = os.environ.pop("SLIPWAY_RPC_ADMIN_TOKEN", "")
    try:
        if arguments.admin_token_file is not None:
            admin_token = arguments.admin_token_file.read_text().strip()
        tracker = TrackerServer(read_token(arguments), admin_token, tls=own_tls(arguments))
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
        asyncio.run(run_until_stopped(tracker.serve(listener), arguments.watch_fd))
    return 0


if __name__ == "__main__":
    sys.exit(main())
