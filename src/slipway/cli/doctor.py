"""``slipway doctor``: what is in order here, on a device, or at a tracker, and what is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli import console
from slipway.cli.exit_codes import OptionError
from slipway.errors import RPCError
from slipway.rpc.addresses import (
    DEVICE_PORT,
    TRACKER_PORT,
    address_of,
    tracker_of_environment,
)

if TYPE_CHECKING:
    from slipway.doctor.finding import Finding

MARKS = {"ok": "[green]✓[/]", "absent": "[dim]-[/]", "wrong": "[red]✗[/]"}
NAME_WIDTH = 18


def doctor(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="[DEVICE]",
            help="An address (HOST or HOST:PORT), a kind of a tracker's devices, or a serial port "
            "(/dev/ttyACM0). [default: this machine]",
            show_default=False,
        ),
    ] = "",
    tracker: Annotated[
        str | None, typer.Option(help="DEVICE is a kind of device of this tracker, HOST:PORT.")
    ] = None,
    baud: Annotated[int, typer.Option(help="The rate of a serial line.")] = 115200,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds that a step may take. [default: 5]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Examine this machine, or a device, line by line, and say what to do about what is wrong.

    Of a device: its name, the way to it, the server's port, token, version and clock, processor,
    memory, disk, and a tiny kernel that is compiled, uploaded, run and compared. What is optional
    and not there is marked "-". Exits with 0 when nothing is wrong, else with 1.

    For example:

        slipway doctor

        slipway doctor raspberrypi.local:9090

        slipway doctor rpi4 --tracker lab:9190

        slipway doctor /dev/ttyACM0
    """
    from slipway.doctor.finding import FindingState, all_well

    name, findings = examination(subject.strip(), tracker, baud, timeout)
    found: list[Finding] = []
    for finding in findings:
        found.append(finding)
        if not as_json:
            print_finding(finding)
    well = all_well(found)
    if as_json:
        report = {"subject": name, "well": well, "findings": [f.to_dict() for f in found]}
        print(json.dumps(report, indent=1))
    else:
        faults = [f.name for f in found if f.state is FindingState.WRONG]
        verdict = "nothing is wrong" if well else f"to mend: {', '.join(faults)}"
        console.out.print(f"\n{MARKS['ok' if well else 'wrong']} {console.plain(name)}: {verdict}")
    if not well:
        raise typer.Exit(1)


def examination(
    subject: str, tracker: str | None, baud: int, timeout: float | None
) -> tuple[str, Iterator[Finding]]:
    """Return what is examined, in words, and its findings, which are made as they are asked for.

    Raises ExecutionError for an address that cannot be read.
    """
    if not subject:
        if tracker is not None:
            raise OptionError("--tracker needs the kind of device: slipway doctor KEY --tracker")
        from slipway.doctor.machine import examine_machine

        return "this machine", examine_machine()
    if subject.startswith("/") or subject.upper().startswith("COM"):
        from slipway.doctor.serial import examine_serial

        return subject, examine_serial(subject, baud)
    at = tracker_of(subject, tracker)
    if at is not None:
        from slipway.doctor.farm import examine_kind

        return f"{subject} of {at[0]}:{at[1]}", examine_kind(subject, *at, wait_s=timeout)
    from slipway.doctor.device import examine_device

    host, port = address_of(subject, DEVICE_PORT)
    return f"{host}:{port}", examine_device(host, port, step_s=timeout)


def tracker_of(subject: str, tracker: str | None) -> tuple[str, int] | None:
    """Return the address of the tracker that has devices of kind `subject`; None: it is a host.

    Without --tracker, one word without dots is a kind when the tracker of the environment, or the
    one of this machine, knows it.
    """
    if tracker is not None:
        return address_of(tracker, TRACKER_PORT)
    if ":" in subject or "." in subject or subject == "localhost":
        return None
    from slipway.rpc.tracker_client import connect_tracker

    at = tracker_of_environment()
    try:
        with connect_tracker(*at) as session:
            return at if subject in session.summary()["farm"]["kinds"] else None
    except RPCError:
        return None


def print_finding(finding: Finding) -> None:
    """Print one line, and below it what to do."""
    mark = MARKS[finding.state.value]
    console.out.print(f"{mark} {finding.name:<{NAME_WIDTH}} {console.plain(finding.text)}")
    if finding.advice:
        style = "yellow" if finding.state.value == "wrong" else "dim"
        console.out.print(f"  {'':<{NAME_WIDTH}} [{style}]→ {console.plain(finding.advice)}[/]")
