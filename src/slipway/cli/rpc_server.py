"""``slipway rpc-server``: make this machine a device."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def rpc_server(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; the next free one when it is taken.")] = 9090,
    port_end: Annotated[int, typer.Option(help="The port before which the search ends.")] = 9199,
    key: Annotated[str, typer.Option(help="The device's name, which a client may ask for.")] = "",
    tracker: Annotated[str | None, typer.Option(help="HOST:PORT of a tracker.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="The token that clients on other machines must have.")
    ] = None,
) -> None:
    """Serve this machine as a device, until interrupted.

    It needs no compiler: `pip install slipway` on the device is enough. For a device without
    Python, see `slipway device-server`.

    For example:

        slipway rpc-server

        slipway rpc-server --host 0.0.0.0 --port 9090 --token-file token.txt
    """
    from slipway.exec import rpc_server as server

    arguments = ["--host", host, "--port", str(port), "--port-end", str(port_end)]
    if key:
        arguments += ["--key", key]
    if tracker:
        arguments += ["--tracker", tracker]
    if token_file is not None:
        arguments += ["--token-file", str(token_file)]
    sys.exit(server.main(arguments))
