"""``slipway device-server``: write the one file that a device needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from slipway.cli import console
from slipway.cli.completions import server_names
from slipway.cli.options import AsJson
from slipway.cli.outputs import need_output
from slipway.toolchain import native


def device_server(
    target: Annotated[
        str,
        typer.Option(
            "--target",
            autocompletion=server_names,
            help="aarch64-linux, armv7-linux, riscv64-linux, x86_64-linux or hexagon-linux.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path(
        "slipway-server"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a static RPC server for a device that has neither Python nor a compiler.

    The file runs on any Linux of that architecture, Android included. The first one for a target
    takes about a minute, because the C library is built too; it is kept.

    For example:

        slipway device-server --target aarch64-linux -o slipway-server

        scp slipway-server token.txt pi@raspberrypi.local:

        ssh pi@raspberrypi.local ./slipway-server --host 0.0.0.0 --token-file token.txt
    """
    need_output("--output", output)
    with console.step(f"Building the device server for {target}"):
        native.build_device_server(target, output)
    if as_json:
        found = {"path": str(output), "bytes": output.stat().st_size, "target": target}
        print(json.dumps(found))
        return
    console.out.print(
        f"{console.plain(output)}: {console.size_text(output.stat().st_size)}, for {target}"
    )
