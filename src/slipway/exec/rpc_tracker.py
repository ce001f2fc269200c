"""``python -m slipway.exec.rpc_tracker``: hand devices out to those who ask for them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from slipway.errors import MissingPackageError
from slipway.exec.arguments import (
    add_log_format,
    add_tls,
    add_token,
    address_text,
    announce,
    announce_port,
    own_tls,
    read_token,
    run_until_stopped,
    told,
)
from slipway.rpc import log
from slipway.rpc.connections.greeting import token_of
from slipway.rpc.farm.commands import read_commands
from slipway.rpc.farm.store import Store
from slipway.rpc.server import listen
from slipway.rpc.tracker import TrackerServer
from slipway.version import install_line


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
    parser.add_argument(
        "--web", type=int, metavar="PORT", help="serve the page that shows the farm, and /metrics"
    )
    parser.add_argument(
        "--web-end", type=int, metavar="PORT",
        help="the page takes the first free port before this one, from --web on",
    )  # fmt: skip
    parser.add_argument("--web-host", default="127.0.0.1", help="address of the page (%(default)s)")
    parser.add_argument(
        "--web-name", action="append", default=[], metavar="NAME",
        help="host name under which the page is asked for, beside this machine's own",
    )  # fmt: skip
    parser.add_argument(
        "--state", type=Path, metavar="FILE",
        help="keep a day's history, jobs and what is said of devices in this SQLite file",
    )  # fmt: skip
    parser.add_argument(
        "--commands", type=Path, metavar="FILE",
        help="commands that administrators may run from the page, as docs/farm.md says",
    )  # fmt: skip
    add_log_format(parser)
    parser.add_argument("--silent", action="store_true", help="write no log")
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--watch-fd", type=int, default=-1, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tracker, and say what keeps it from that."""
    return told("rpc_tracker", run, argv)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the tracker until SIGTERM or Ctrl-C."""
    arguments = _parser().parse_args(argv)
    admin_token = os.environ.pop("SLIPWAY_RPC_ADMIN_TOKEN", "")
    if arguments.admin_token_file is not None:
        admin_token = token_of(arguments.admin_token_file)
    tls = own_tls(arguments)
    commands = read_commands(arguments.commands) if arguments.commands is not None else []
    store = Store(arguments.state)
    tracker = TrackerServer(read_token(arguments), admin_token, tls=tls, store=store)
    if arguments.listen_fd >= 0:
        listener = socket.socket(fileno=arguments.listen_fd)
    else:
        listener = listen(arguments.host, arguments.port, arguments.port_end)
    page = None
    if arguments.web is not None:
        serve_page = _page_server()
        end = arguments.web + 1 if arguments.web_end is None else arguments.web_end
        page = listen(arguments.web_host, arguments.web, end, "--web and --web-end")
    if not arguments.silent:
        log.configure("RPCTracker", arguments.log_format)
    if arguments.listen_fd < 0:
        announce("RPCTracker", arguments, "bind to", address_text(listener, arguments.host))
        announce_port("RPCTracker", arguments, listener)
    serving = [tracker.serve(listener)]
    if page is not None:
        serving.append(
            serve_page(tracker.farm, page, admin_token, arguments.web_name, tls, store, commands)
        )
        scheme = "http" if tls is None else "https"
        address = address_text(page, arguments.web_host)
        announce("RPCTracker", arguments, "page at", f"{scheme}://{address}/")
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(run_until_stopped(_together(serving), arguments.watch_fd))
    return 0


def _page_server() -> Callable[..., Coroutine[Any, Any, None]]:
    try:
        from slipway.rpc.web.app import serve_page
    except ImportError as error:
        raise MissingPackageError(
            f"--web needs the package {error.name!r}: {install_line('web')}."
        ) from error
    return serve_page


async def _together(serving: Sequence[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for one in serving:
            group.create_task(one)


if __name__ == "__main__":
    sys.exit(main())
