"""``slipway rpc-tracker``: hand devices out to those who ask, and show what they do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from slipway.cli.options import (
    Certificate,
    CertificateKey,
    ListenHost,
    ListenPort,
    TokenFile,
    need_one_of,
)


def rpc_tracker(
    host: ListenHost = "127.0.0.1",
    port: ListenPort = 9190,
    token_file: TokenFile = None,
    admin_token_file: Annotated[
        Path | None, typer.Option(help="The administrator's token.")
    ] = None,
    web: Annotated[
        int | None, typer.Option(help="The port of a page that shows the farm.", metavar="PORT")
    ] = None,
    web_host: Annotated[str, typer.Option(help="The address of that page.")] = "127.0.0.1",
    web_name: Annotated[
        list[str] | None, typer.Option(help="A host name under which the page is asked for.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="A SQLite file for a day's history, and what is said of devices."),
    ] = None,
    commands: Annotated[
        Path | None,
        typer.Option(help="A file of commands that administrators may run from the page."),
    ] = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    log_format: Annotated[str, typer.Option(help="text, or json for JSON lines.")] = "text",
) -> None:
    """Keep track of devices and hand them out to clients, one at a time, until interrupted.

    Devices register with `slipway rpc-server --tracker HOST:PORT --key KIND`, clients ask with
    `rpc.connect_tracker(host, port).request(KIND)`.

    For example:

        slipway rpc-tracker --web 8190

        slipway rpc-tracker --host 0.0.0.0 --token-file token.txt --web 8190 --log-format json
    """
    from slipway.exec import rpc_tracker as tracker
    from slipway.rpc.log import FORMATS

    need_one_of("--log-format", log_format, FORMATS)

    arguments = ["--host", host, "--port", str(port), "--port-end", str(port + 100)]
    arguments += ["--web-host", web_host, "--log-format", log_format]
    options = {
        "--token-file": token_file,
        "--admin-token-file": admin_token_file,
        "--web": web,
        "--state": state,
        "--commands": commands,
        "--tls-cert": tls_cert,
        "--tls-key": tls_key,
    }
    for name, value in options.items():
        if value is not None:
            arguments += [name, str(value)]
    for name in web_name or ():
        arguments += ["--web-name", name]
    sys.exit(tracker.run(arguments))
