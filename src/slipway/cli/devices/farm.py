"""``slipway farm``: a tracker, its page and virtual devices, up and down."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.exit_codes import FAILED
from slipway.cli.options import AsJson
from slipway.version import install_line

app = typer.Typer(
    help="A farm of virtual devices on this machine: up, add, status, down.", no_args_is_help=True
)


@app.command("up")
def up(
    virtual: Annotated[int, typer.Option(min=1, max=64, help="Devices of each kind.")] = 1,
    kinds: Annotated[
        str, typer.Option(help="Kinds, with commas: aarch64, armv7, riscv64, x86_64, cortex-m4 ...")
    ] = "aarch64",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The tracker's; the next free one if taken.")
    ] = 9190,
    web: Annotated[
        int, typer.Option(min=0, max=65535, help="The page's; the next free one if taken.")
    ] = 8190,
    as_json: AsJson = False,
) -> None:
    """Start a tracker with its page, and virtual devices that register with it.

    They run under QEMU, listen on this machine only, and go on until `slipway farm down`. Tokens
    are made for them.

    For example:

        slipway farm up --virtual 3 --kinds aarch64,armv7

        slipway run model.tar --tracker 127.0.0.1:9190 --rpc-key aarch64

        slipway farm down
    """
    from slipway.farm.virtual import up as start

    names = [name.strip() for name in kinds.split(",") if name.strip()]
    with console.step("Starting the farm (a device server is built once for each kind)"):
        farm = start(names, virtual, port, web)
    show(values_of(farm), as_json)


@app.command("add")
def add(
    kind: Annotated[str, typer.Argument(help="A kind: aarch64, armv7, cortex-m4 ...")],
    as_json: AsJson = False,
) -> None:
    """Start one more virtual device in the farm that runs.

    For example:

        slipway farm add aarch64
    """
    from slipway.farm.virtual import add as start

    with console.step(f"Starting one more {kind}"):
        farm = start(kind)
    if as_json:
        print(json.dumps(values_of(farm), indent=1))
    else:
        console.out.print(f"{farm.devices[kind]} x {kind}")


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """Tell what `slipway farm up` started, and whether it still runs; else the exit code is 1.

    For example:

        slipway farm status
    """
    from slipway.farm.virtual import load

    farm = load()
    if farm is None:
        if as_json:
            print("null")
        else:
            console.out.print("There is no farm; `slipway farm up` starts one.")
        return
    show(values_of(farm), as_json)
    if not all(process.is_alive for process in farm.processes):
        raise typer.Exit(FAILED)


@app.command("down")
def down(as_json: AsJson = False) -> None:
    """End everything that `slipway farm up` started, and remove its tokens and logs.

    For example:

        slipway farm down
    """
    from slipway.farm.virtual import down as stop

    ended = stop()
    if as_json:
        print(json.dumps({"ended": ended}))
    else:
        console.out.print(f"{ended} processes ended" if ended else "There was no farm.")


def values_of(farm: Any) -> dict[str, Any]:
    """Return what there is to say of a farm."""
    return {
        "tracker": f"127.0.0.1:{farm.port}",
        "page": None if farm.page is None else f"http://127.0.0.1:{farm.page}/",
        "token_file": str(farm.token_file),
        "admin_token_file": str(farm.admin_file),
        "devices": farm.devices,
        "processes": {process.name: process.is_alive for process in farm.processes},
    }


def show(found: dict[str, Any], as_json: bool) -> None:
    """Print a farm for people, or as JSON."""
    from slipway.farm.virtual import ANEW

    if as_json:
        print(json.dumps(found, indent=1))
        return
    for kind, count in found["devices"].items():
        console.out.print(f"{count} x {kind}")
    console.out.print(f"tracker  {found['tracker']}")
    if found["page"]:
        page = f"{found['page']} (sign in with what {found['admin_token_file']} holds)"
    else:
        page = f"none: {install_line('web')} and `slipway farm up` again"
    console.out.print(f"page     {page}", soft_wrap=True, markup=False)
    ended = [name for name, alive in found["processes"].items() if not alive]
    for name in ended:
        console.out.print(f"[red]✗[/] {name} has ended")
    if ended:
        console.out.print(ANEW)
    console.out.print("\nHow to use it:")
    console.out.print(f"  export SLIPWAY_RPC_TOKEN=$(cat {found['token_file']})", soft_wrap=True)
    kind = next(iter(found["devices"]), "aarch64")
    console.out.print(f"  slipway doctor {kind} --tracker {found['tracker']}")
