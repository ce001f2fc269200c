"""``python -m slipway.exec.rpc_proxy``: bring devices and clients together that both dial out."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from slipway.cli.exit_codes import OptionError
from slipway.errors import MissingPackageError
from slipway.exec.arguments import (
    add_tls,
    add_tls_ca,
    add_token,
    own_tls,
    peer_tls,
    read_token,
    run_until_stopped,
    told,
)
from slipway.rpc import log
from slipway.rpc.addresses import address_of
from slipway.rpc.proxy import ProxyServer
from slipway.rpc.server import listen
from slipway.version import install_line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m slipway.exec.rpc_proxy",
        description="Pass sessions on between devices and clients that both connect to here.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=9090, help="first port to try (%(default)s)")
    parser.add_argument("--port-end", type=int, default=9199, help="try ports below this one")
    parser.add_argument("--tracker", default="", help="HOST:PORT to register the devices with")
    parser.add_argument("--custom-addr", default="", help="address that the tracker gives out")
    add_token(parser)
    add_tls(parser)
    parser.add_argument(
        "--plain-devices",
        default="",
        metavar="HOST:PORT",
        help="with --tls-cert: listen there, too, without TLS, for devices only",
    )
    add_tls_ca(parser, "tracker")
    parser.add_argument(
        "--web-port",
        type=int,
        metavar="PORT",
        help="serve a page there that makes the browser that opens it a device",
    )
    parser.add_argument(
        "--web-host", default="127.0.0.1", help="address of that page (%(default)s)"
    )
    parser.add_argument(
        "--web-name",
        action="append",
        default=[],
        metavar="NAME",
        help="another host name that the page is opened under; repeatable",
    )
    parser.add_argument("--silent", action="store_true", help="write no log")
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--watch-fd", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--timeout", type=float, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the proxy, and say what keeps it from that."""
    return told("rpc_proxy", run, argv)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the proxy until SIGTERM or Ctrl-C."""
    arguments = _parser().parse_args(argv)
    plain = page = None
    if arguments.plain_devices:
        if arguments.tls_cert is None:
            raise OptionError("--plain-devices is a second port beside the one with --tls-cert.")
        host, port = address_of(arguments.plain_devices)
        plain = listen(host, port, port + 1, "--plain-devices")
    tls = own_tls(arguments)
    proxy = ProxyServer(
        read_token(arguments),
        address_of(arguments.tracker) if arguments.tracker else None,
        arguments.custom_addr,
        tls=tls,
        tracker_tls=peer_tls(arguments),
        tracker_name=arguments.tls_name,
    )
    if arguments.web_port is not None:
        serve_devices = _page_server()
        last = arguments.web_port + 1
        page = listen(arguments.web_host, arguments.web_port, last, "--web-port")
    if arguments.listen_fd >= 0:
        listener = socket.socket(fileno=arguments.listen_fd)
    else:
        listener = listen(arguments.host, arguments.port, arguments.port_end)
    if not arguments.silent:
        log.configure("RPCProxy")
    if arguments.listen_fd < 0:
        address = f"{arguments.host}:{listener.getsockname()[1]}"
        print(f"INFO:root:RPCProxy: bind to {address}", file=sys.stderr, flush=True)
    if plain is not None:
        address = f"{host}:{plain.getsockname()[1]}"
        role = "devices without TLS connect to"
        print(f"INFO:root:RPCProxy: {role} {address}", file=sys.stderr, flush=True)
    serving = [proxy.serve(listener, plain)]
    if page is not None:
        serving.append(serve_devices(proxy, page, arguments.web_name, tls))
        scheme = "http" if tls is None else "https"
        address = f"{scheme}://{arguments.web_host}:{page.getsockname()[1]}/"
        role = "browsers become devices at"
        print(f"INFO:root:RPCProxy: {role} {address}", file=sys.stderr, flush=True)

    async def serve_all() -> None:
        async with asyncio.TaskGroup() as group:  # the page ends its answers before all ends
            for one in serving:
                group.create_task(one)

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(run_until_stopped(serve_all(), arguments.watch_fd))
    return 0


def _page_server() -> Callable[..., Coroutine[Any, Any, None]]:
    """Return `serve_devices`, whose libraries are needed for the page only."""
    try:
        from slipway.rpc.web.devices import serve_devices
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"--web-port needs the package {error.name!r}: {install_line('web')}."
        ) from error
    return serve_devices


if __name__ == "__main__":
    sys.exit(main())
