"""``slipway web-device``: make the browsers that open a page devices."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from slipway.cli import console
from slipway.cli.devices.rpc_proxy import as_arguments
from slipway.cli.options import Certificate, CertificateKey, ListenPort, TokenFile


def web_device(
    host: Annotated[
        str, typer.Option(help="The address of the page; 0.0.0.0 for phones, with a token.")
    ] = "127.0.0.1",
    web_port: Annotated[int, typer.Option(help="The page's port.")] = 8888,
    port: ListenPort = 9090,
    tracker: Annotated[
        str | None, typer.Option(help="HOST:PORT of a tracker that hands the browsers out.")
    ] = None,
    token_file: TokenFile = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    web_name: Annotated[
        list[str] | None, typer.Option(help="Another host name of the page; repeatable.")
    ] = None,
) -> None:
    """Serve a page that makes the browser that opens it a device, until interrupted.

    It is a proxy (`slipway rpc-proxy --web-port`): clients connect to its port, with the kind that
    the page shows. Other machines, phones too, need a token.

    For example:

        slipway web-device

        python -c 'from slipway import rpc; rpc.connect("127.0.0.1", 9090, key="web")'

        slipway web-device --host 0.0.0.0 --token-file token.txt
    """
    from slipway.exec import rpc_proxy as proxy
    from slipway.toolchain.web_runtime import web_device as session

    with console.step("The session for browsers (built once, then kept)"):
        session()
    arguments = as_arguments(
        host=host,
        port=port,
        tracker=tracker,
        token_file=token_file,
        tls_cert=tls_cert,
        tls_key=tls_key,
        web_port=web_port,
        web_host=host,
    )
    for name in web_name or ():
        arguments += ["--web-name", name]
    sys.exit(proxy.run(arguments))
