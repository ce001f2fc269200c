"""``python -m slipway.exec.rpc_server``: serve this machine to Slipway clients."""

from __future__ import annotations

import argparse
import ctypes
import socket
import sys
from collections.abc import Sequence

from slipway.cli.exit_codes import OptionError
from slipway.exec.arguments import (
    add_log_format,
    add_tls,
    add_tls_ca,
    add_token,
    address_text,
    announce,
    announce_port,
    need_certificate,
    read_token,
    told,
)
from slipway.rpc import native
from slipway.rpc.addresses import address_of
from slipway.rpc.server import (
    ServerOptions,
    front_of,
    is_loopback,
    listen,
    serve,
)


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
    parser.add_argument(
        "--through-proxy",
        action="store_true",
        help="--host and --port are those of a proxy: dial out to it, listen to nothing",
    )
    parser.add_argument(
        "--stdio", action="store_true", help="serve one session over standard input and output"
    )
    parser.add_argument(
        "--serial", default="", metavar="PATH", help="serve a serial line, not the network"
    )
    parser.add_argument("--baud", type=int, default=115200, help="its rate (%(default)s)")
    parser.add_argument("--load-library", default="", help="libraries to load first, ':' between")
    add_token(parser)
    add_tls(parser)
    add_tls_ca(parser, "tracker or proxy")
    parser.add_argument("--require-token", action="store_true", help="ask local clients, too")
    parser.add_argument("--max-sessions", type=int, default=16, help="at one time (%(default)s)")
    parser.add_argument("--session-timeout", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--max-upload", type=int, default=0, metavar="MIB")
    parser.add_argument("--max-memory", type=int, default=0, metavar="MIB")
    parser.add_argument("--max-cpu", type=int, default=0, metavar="SECONDS")
    parser.add_argument("--max-files", type=int, default=0, metavar="N", help="open ones")
    parser.add_argument("--max-handles", type=int, default=65536, metavar="N")
    add_log_format(parser)
    parser.add_argument("--silent", action="store_true", help="write no log")
    parser.add_argument("--fork", "--no-fork", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--connection-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--watch-fd", type=int, default=-1, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server, and say what keeps it from that."""
    return told("rpc_server", run, argv)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the server; the exit status is 0 after SIGTERM or Ctrl-C."""
    arguments = _parser().parse_args(argv)
    listener = None
    options = _options(arguments)
    front_of(options)
    native.library()
    for library in filter(None, arguments.load_library.split(":")):
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    if arguments.listen_fd >= 0:
        listener = socket.socket(fileno=arguments.listen_fd)
    elif not (options.through_proxy or arguments.stdio or arguments.serial) and (
        arguments.connection_fd < 0
    ):
        listener = listen(arguments.host, arguments.port, arguments.port_end)
    if arguments.listen_fd < 0 and listener is not None:
        _announce(arguments, listener, has_token=bool(options.token))
    connection = arguments.connection_fd if arguments.connection_fd >= 0 else None
    if arguments.stdio:
        connection = -1
    line = (arguments.serial, arguments.baud) if arguments.serial else None
    return 0 if serve(listener, options, arguments.watch_fd, connection, line) == 0 else 1


def _options(arguments: argparse.Namespace) -> ServerOptions:
    tracker = address_of(arguments.tracker) if arguments.tracker else None
    need_certificate(arguments)
    if arguments.through_proxy:
        if tracker is not None:
            raise OptionError("--through-proxy excludes --tracker; give --tracker to the proxy.")
        tracker = (arguments.host, arguments.port)
    if arguments.serial and (tracker is not None or arguments.stdio or arguments.tls_cert):
        raise OptionError("--serial excludes --tracker, --through-proxy, --stdio and --tls-cert.")
    if tracker is not None and not arguments.key:
        raise OptionError("--tracker and --through-proxy need --key, the kind of device this is.")
    return ServerOptions(
        key=arguments.key,
        token=read_token(arguments),
        require_token=arguments.require_token,
        max_sessions=arguments.max_sessions,
        session_timeout_s=arguments.session_timeout,
        max_upload_bytes=arguments.max_upload << 20,
        max_memory_bytes=arguments.max_memory << 20,
        max_cpu_s=arguments.max_cpu,
        max_files=arguments.max_files,
        max_handles=arguments.max_handles,
        is_quiet=arguments.silent,
        log_format=arguments.log_format,
        tracker=tracker,
        custom_address=arguments.custom_addr,
        through_proxy=arguments.through_proxy,
        tls_cert=str(arguments.tls_cert or ""),
        tls_key=str(arguments.tls_key or ""),
        tls_ca=arguments.tls_ca or "",
        tls_name=arguments.tls_name or "",
    )


def _announce(arguments: argparse.Namespace, listener: socket.socket, *, has_token: bool) -> None:
    host = arguments.host
    unix = host.startswith("unix:")
    announce("RPCServer", arguments, "bind to", host if unix else address_text(listener, host))
    if not unix:
        announce_port("RPCServer", arguments, listener)
    if not is_loopback(host) and not has_token:
        announce(
            "RPCServer", arguments, "no token is set, so clients from other machines will be "
            "refused; set SLIPWAY_RPC_TOKEN or --token-file on both sides", "",
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
