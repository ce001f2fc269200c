"""``slipway device``: make a machine that ssh reaches a device, list them, undo it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.client_options import client
from slipway.cli.options import AsJson

if TYPE_CHECKING:
    from slipway.farm.ssh import Host

app = typer.Typer(help="Devices of your own, by ssh: add, list, remove.", no_args_is_help=True)

Machine = Annotated[str, typer.Argument(metavar="[USER@]HOST", help="The machine, as for ssh.")]
SshPort = Annotated[int | None, typer.Option(min=1, max=65535, help="The port of its ssh.")]
Identity = Annotated[str | None, typer.Option(help="The private key to log in with.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Look at it, print every command, and change nothing.")
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0.1, help="Seconds that connecting, and registering, may take. [default: 10, 30]"
    ),
]


def add(
    machine: Machine,
    tracker: Annotated[
        str | None, typer.Option(help="HOST:PORT of the tracker that is to hand it out.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The kind of device it is. [default: its architecture]")
    ] = None,
    port: Annotated[int, typer.Option(help="The port that it serves.")] = 9090,
    custom_addr: Annotated[
        str | None, typer.Option(help="The address that the tracker gives to clients.")
    ] = None,
    ssh_port: SshPort = None,
    identity: Identity = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put this version in the place of a newer one.")
    ] = False,
    timeout: Timeout = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make a Linux machine a device: copy the static server there, and start it now and at boot.

    It needs nothing there but ssh: a unit of the user's systemd starts it, else a line of the
    crontab; no root, no Python, no compiler. Called again, it does what is missing. It gets the
    token of --token-file, which tracker and clients have; without one and without a tracker, a
    token is made.

    For example:

        slipway device add pi@raspberrypi.local

        slipway device add pi@10.0.0.7 --tracker lab:9190 --key rpi4 --token-file token.txt

        slipway device add pi@10.0.0.7 --dry-run
    """
    from slipway.farm import remote

    host = host_of(machine, ssh_port, identity, timeout)
    token = token_given()
    with console.step(f"Looking at {machine}"):
        plan = remote.plan(
            host, key=key, port=port, tracker=tracker, token=token, custom_address=custom_addr,
            replace=replace,
        )  # fmt: skip
    if dry_run:
        show_steps(host, plan.steps, as_json)
        return
    for step in plan.run():
        console.err.print(f"  {step.why}")
    plan.known.save(plan.token if token is None else None)
    with console.step("Waiting until it serves"):
        state = remote.wait_until_it_serves(plan, timeout or remote.REGISTER_S)
    found = {**values_of(plan.known), "state": state, "changed": bool(plan.steps)}
    found["boot"] = plan.found.boot
    if as_json:
        print(json.dumps({**found, "notes": plan.notes}, indent=1))
        return
    done = "is a device" if plan.steps else "was a device already"
    console.out.print(
        f"{console.plain(machine)} {done}: {plan.known.key}, {plan.known.architecture}, {state}"
    )
    if plan.found.boot == "none":
        plan.notes.append("there is neither systemd nor cron: start it yourself after a boot")
    for note in plan.notes:
        console.out.print(f"[yellow]→[/] {console.plain(note)}")
    if plan.known.own_token() is not None:
        line = f"export SLIPWAY_RPC_TOKEN=$(cat {plan.known.token_file})"
        console.out.print(f"  {console.plain(line)}", soft_wrap=True)
    console.out.print(f"  {console.plain(found['doctor'])}", soft_wrap=True)


def list_devices(
    as_json: AsJson = False,
) -> None:
    """List the devices that `slipway device add` made, and how they are.

    For example:

        slipway device list
    """
    from slipway.errors import RPCError
    from slipway.farm import known, remote

    token = token_given()
    found = []
    for one in known.every():
        try:
            state, trouble = remote.state_of(one, one.own_token() or token), ""
        except RPCError as error:
            state, trouble = "no answer", str(error)
        found.append({**values_of(one), "state": state, "trouble": trouble})
    if as_json:
        print(json.dumps(found, indent=1))
        return
    if not found:
        console.out.print("There are none; `slipway device add USER@HOST` makes one.")
        return
    rows = [
        [console.plain(d["device"]), console.plain(d["key"]), d["architecture"],
         d["tracker"] or d["address"],
         d["state"] + (f": {console.plain(d['trouble'])}" if d["trouble"] else "")]
        for d in found
    ]  # fmt: skip
    console.table(["device", "kind", "processor", "reached by", "state"], rows, text_columns=5)


def remove(
    machine: Machine,
    ssh_port: SshPort = None,
    identity: Identity = None,
    timeout: Timeout = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Forget it here only: it cannot be reached any more.")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """End the server on a machine, and take away all that `slipway device add` put there.

    For example:

        slipway device remove pi@raspberrypi.local

        slipway device remove pi@raspberrypi.local --forget
    """
    from slipway.farm import known, remote

    one = known.find(machine, ssh_port)
    if one is not None:
        ssh_port, identity = ssh_port or one.ssh_port, identity or one.identity
    steps = [] if forget else remote.removal()
    if not forget:
        host = host_of(machine, ssh_port, identity, timeout)
        if dry_run:
            show_steps(host, steps, as_json)
            return
        for step in steps:
            console.err.print(f"  {step.why}")
            host.run(step.script)
    if one is not None:
        one.forget()
    if as_json:
        print(json.dumps({"device": machine, "known": one is not None, "removed": not forget}))
    elif forget:
        console.out.print("forgotten" if one else f"{console.plain(machine)} was not known")
    else:
        console.out.print(f"{console.plain(machine)} is no device any more; nothing is left there")


def host_of(
    machine: str, ssh_port: int | None, identity: str | None, timeout: float | None
) -> Host:
    """Return the machine that the options mean."""
    from slipway.farm.ssh import CONNECT_S, Host

    return Host(machine, ssh_port, identity, timeout or CONNECT_S)


def token_given() -> str | None:
    """Return the token of --token-file, else of the environment; None where there is none."""
    return os.environ.get("SLIPWAY_RPC_TOKEN") or None


def values_of(one: Any) -> dict[str, Any]:
    """Return what there is to say of a device."""
    address = f"{one.custom_address or one.network_name}:{one.port}"
    way = f"{one.key} --tracker {one.tracker}" if one.tracker else address
    return {
        "device": one.address, "key": one.key, "architecture": one.architecture,
        "address": address, "tracker": one.tracker, "doctor": f"slipway doctor {way}",
        "token_file": str(one.token_file) if one.own_token() else None,
    }  # fmt: skip


def show_steps(host: Host, steps: list[Any], as_json: bool) -> None:
    """Print the commands that would be run."""
    if as_json:
        shown = [{"why": step.why, "command": step.shown(host)} for step in steps]
        print(json.dumps({"steps": shown}, indent=1))
        return
    if not steps:
        console.out.print("nothing is to be done")
    for step in steps:
        print(f"# {step.why}\n{step.shown(host)}")


app.command("add")(client(add))
app.command("list")(client(list_devices))
app.command("remove")(remove)
