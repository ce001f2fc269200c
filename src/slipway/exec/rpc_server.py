"""``python -m slipway.exec.rpc_server``: serve this machine to Slipway clients."""

from __future__ import annotations

import argparse
import ctypes
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import RPCError, SlipwayError
from slipway.rpc import native
from slipway.rpc.server import ServerOptions, listen, parse_address, serve


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m slipway.exec.rpc_server",
        description="Run compiled models that Slipway clients upload to this machine.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=9090, help="first port to try (%(default)s)")
    parser.add_argument("--port-end", type=int, default=9199, help="try ports below this one")
    parser.add_argument("--key", default="", help="the kind of device this is")
    parser.add_argument("--tracker", default="", help="HOST:PORT of a tracker to register with")
    parser.add_argument("--custom-addr", default="", help="address that the tracker gives out")
    parser.add_argument("--load-library", default="", help="libraries to load first, ':' between")
    parser.add_argument(
        "--token-file",
        type=Path,
        help="file with the token that clients from other machines must have "
        "(or the environment variable SLIPWAY_RPC_TOKEN)",
    )
    parser.add_argument("--require-token", action="store_true", help="ask local clients, too")
    parser.add_argument("--max-sessions", type=int, default=16, help="at one time (%(default)s)")
    parser.add_argument("--session-timeout", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--max-upload", type=int, default=0, metavar="MIB")
    parser.add_argument("--max-memory", type=int, default=0, metavar="MIB")
    parser.add_argument("--max-cpu", type=int, default=0, metavar="SECONDS")
    parser.add_argument("--max-handles", type=int, default=65536, metavar="N")
    parser.add_argument("--silent", action="store_true", help="write no log")
    parser.add_argument("--fork", "--no-fork", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--watch-fd", type=int, default=-1, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server; the exit status is 0 after SIGTERM or Ctrl-C."""
    arguments = _parser().parse_args(argv)
    token = os.environ.pop("SLIPWAY_RPC_TOKEN", "")  # uploaded code has no business with it
    try:
        if arguments.token_file is not None:
            token = arguments.token_file.read_text().strip()
        tracker = parse_address(arguments.tracker) if arguments.tracker else None
        if tracker is not None and not arguments.key:
            raise RPCError("--tracker needs --key, the kind of device this is.")
        native.library()
        for library in filter(None, arguments.load_library.split(":")):
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        if arguments.listen_fd >= 0:
            listener = socket.socket(fileno=arguments.listen_fd)
        else:
            listener = listen(arguments.host, arguments.port, arguments.port_end)
    except (OSError, SlipwayError) as error:
        print(f"rpc_server: error: {error}", file=sys.stderr)
        return 2
    options = ServerOptions(
        key=arguments.key,
        token=token,
        require_token=arguments.require_token,
        max_sessions=arguments.max_sessions,
        session_timeout_s=arguments.session_timeout,
        max_upload_bytes=arguments.max_upload << 20,
        max_memory_bytes=arguments.max_memory << 20,
        max_cpu_s=arguments.max_cpu,
        max_handles=arguments.max_handles,
        is_quiet=arguments.silent,
        tracker=tracker,
        custom_address=arguments.custom_addr,
    )
    if arguments.listen_fd < 0:
        _announce(arguments.host, listener.getsockname()[1], has_token=bool(token))
    return 0 if serve(listener, options, arguments.watch_fd) == 0 else 1


def _announce(host: str, port: int, *, has_token: bool) -> None:
    print(f"INFO:root:RPCServer: bind to {host}:{port}", file=sys.stderr, flush=True)
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    if not is_local and not has_token:
        print(
            "INFO:root:RPCServer: no token is set, so clients from other machines will be "
            "refused; set SLIPWAY_RPC_TOKEN or --token-file on both sides",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
