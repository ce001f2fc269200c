"""``slipway rpc-server``: make this machine a device."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from slipway.cli.devices.rpc_proxy import as_arguments
from slipway.cli.options import (
    Certificate,
    CertificateKey,
    CustomAddress,
    ListenHost,
    ListenPort,
    TokenFile,
)


def rpc_server(
    host: ListenHost = "127.0.0.1",
    port: ListenPort = 9090,
    port_end: Annotated[int, typer.Option(help="The port before which the search ends.")] = 9199,
    key: Annotated[str, typer.Option(help="The device's name, which a client may ask for.")] = "",
    tracker: Annotated[str | None, typer.Option(help="HOST:PORT of a tracker.")] = None,
    custom_addr: CustomAddress = None,
    through_proxy: Annotated[
        bool, typer.Option(help="Host and port are those of a proxy: dial out to it.")
    ] = False,
    session_timeout: Annotated[
        int | None, typer.Option(min=0, help="The longest session, in seconds.")
    ] = None,
    max_sessions: Annotated[int | None, typer.Option(min=1, help="Sessions at one time.")] = None,
    max_upload: Annotated[int | None, typer.Option(min=0, help="The largest file, in MiB.")] = None,
    max_memory: Annotated[
        int | None, typer.Option(min=0, help="Memory that one session may add, in MiB.")
    ] = None,
    max_cpu: Annotated[
        int | None, typer.Option(min=0, help="Processor time of one session, in seconds.")
    ] = None,
    max_files: Annotated[int | None, typer.Option(min=0, help="Open files of one session.")] = None,
    serial: Annotated[
        str | None, typer.Option(help="Serve this serial line, and not the network.")
    ] = None,
    baud: Annotated[int | None, typer.Option(help="The serial line's rate.")] = None,
    token_file: TokenFile = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    tls_ca: Annotated[
        str | None,
        typer.Option(help='Whom to trust as the tracker or proxy: a PEM file, or "system".'),
    ] = None,
) -> None:
    """Serve this machine as a device, until interrupted.

    It needs no compiler: `pip install slipway-ml` on the device is enough. For a device without
    Python, see `slipway device-server`.

    For example:

        slipway rpc-server

        slipway rpc-server --host 0.0.0.0 --port 9090 --token-file token.txt

        slipway rpc-server --serial /dev/ttyGS0 --max-memory 1024 --session-timeout 3600
    """
    from slipway.exec import rpc_server as server

    arguments = as_arguments(
        host=host, port=port, port_end=port_end, key=key or None, tracker=tracker,
        custom_addr=custom_addr, token_file=token_file, tls_cert=tls_cert, tls_key=tls_key,
        tls_ca=tls_ca, session_timeout=session_timeout, max_sessions=max_sessions,
        max_upload=max_upload, max_memory=max_memory, max_cpu=max_cpu, max_files=max_files,
        serial=serial, baud=baud,
    )  # fmt: skip
    sys.exit(server.run([*arguments, *(["--through-proxy"] if through_proxy else [])]))
