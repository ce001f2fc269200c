"""``slipway rpc-proxy``: devices and clients that cannot reach each other both dial out to it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from slipway.cli.options import (
    Certificate,
    CertificateKey,
    CustomAddress,
    ListenHost,
    ListenPort,
    TokenFile,
)


def rpc_proxy(
    host: ListenHost = "127.0.0.1",
    port: ListenPort = 9090,
    tracker: Annotated[
        str | None, typer.Option(help="HOST:PORT of a tracker that hands the devices out.")
    ] = None,
    custom_addr: CustomAddress = None,
    token_file: TokenFile = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    plain_devices: Annotated[
        str | None, typer.Option(help="HOST:PORT of a second port, without TLS, for devices only.")
    ] = None,
    tls_ca: Annotated[
        str | None, typer.Option(help='Whom to trust as the tracker: a PEM file, or "system".')
    ] = None,
    web_port: Annotated[
        int | None, typer.Option(help="Serve a page there that makes browsers devices.")
    ] = None,
    web_host: Annotated[str, typer.Option(help="The address of that page.")] = "127.0.0.1",
) -> None:
    """Bring devices and clients together that both connect to here, until interrupted.

    For example:

        slipway rpc-proxy --host 0.0.0.0 --port 9090 --token-file token.txt

        slipway rpc-server --through-proxy --host proxy.lab --port 9090 --key rpi4

        slipway rpc-proxy --host 0.0.0.0 --tls-cert proxy.pem --plain-devices 192.168.7.1:9091
    """
    from slipway.exec import rpc_proxy as proxy

    sys.exit(
        proxy.run(
            as_arguments(
                host=host,
                port=port,
                tracker=tracker,
                custom_addr=custom_addr,
                token_file=token_file,
                tls_cert=tls_cert,
                tls_key=tls_key,
                plain_devices=plain_devices,
                tls_ca=tls_ca,
                web_port=web_port,
                web_host=web_host,
            )
        )
    )


def as_arguments(**options: object) -> list[str]:
    """Return the options that are set as a command line."""
    pairs = ((f"--{n.replace('_', '-')}", str(v)) for n, v in options.items() if v is not None)
    return [text for pair in pairs for text in pair]
