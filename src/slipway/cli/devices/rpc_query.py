"""``slipway rpc-query``: what a tracker has, and who waits for what."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from slipway.cli.console import age_text, err, out

_STYLES = {"free": "green", "busy": "blue", "assigned": "blue", "drained": "yellow"}
_WORDS = {"busy": "in use", "assigned": "handing out", "drained": "out of service"}


def rpc_query(
    host: Annotated[
        str, typer.Option(help="The tracker's address.", envvar="TVM_TRACKER_HOST")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The tracker's port.", envvar="TVM_TRACKER_PORT")
    ] = 9190,
    watch: Annotated[bool, typer.Option("--watch", help="Show it anew until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 2.0,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for each answer of the tracker.")
    ] = 10.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --watch one line for each look.")
    ] = False,
) -> None:
    """Show a tracker's devices, their sessions, the queue and the last errors.

    A tracker on another machine asks for the token: set SLIPWAY_RPC_TOKEN.

    For example:

        slipway rpc-query --host 10.0.0.2

        slipway rpc-query --watch

        slipway rpc-query --json | jq '.kinds'
    """
    from slipway.errors import RPCConnectionError
    from slipway.rpc.tracker_client import connect_tracker

    with connect_tracker(host, port, timeout=timeout) as tracker:
        if as_json:
            while True:
                farm = tracker.summary()["farm"]
                print(json.dumps(farm, indent=None if watch else 2), flush=True)
                if not watch:
                    return
                time.sleep(interval)
        if not watch:
            out.print(_picture(tracker.summary()["farm"]))
            return
        with Live(console=out, auto_refresh=False, screen=out.is_terminal) as live:
            while True:
                try:
                    live.update(_picture(tracker.summary()["farm"]), refresh=True)
                except RPCConnectionError as error:
                    err.print(f"[red]{error}[/]")  # it is asked again: it may be restarted
                time.sleep(interval)


def _picture(farm: dict[str, Any]) -> Group:
    now = farm["now"]
    kinds = Table(
        "kind", *_right("free", "in use", "out of service", "offline", "waiting"), box=None
    )
    for key, kind in farm["kinds"].items():
        used = kind["busy"] + kind["assigned"]
        counts = (kind["free"], used, kind["drained"], kind["offline"], kind["waiting"])
        kinds.add_row(Text(key), *map(str, counts))
    devices = Table("device", "address", "state", *_right("for"), "session", "holder", box=None)
    for device in farm["devices"]:
        state = device["state"]
        devices.add_row(
            Text(device["key"]),
            Text(f"{device['address']}:{device['port']}"),
            Text(_WORDS.get(state, state), style=_STYLES.get(state, "red")),
            age_text(now - device["since"]),
            device["session"],
            Text(device["holder"] or device["last_error"]),
        )
    parts: list[Any] = [kinds, Text(), devices]
    if said := [device for device in farm["devices"] if _said(device, now)]:
        remarks = Table("said of", "address", "", box=None)
        for device in said:
            address = f"{device['address']}:{device['port']}"
            remarks.add_row(Text(device["key"]), Text(address), Text(_said(device, now)))
        parts += [Text(), remarks]
    if farm["queue"]:
        queue = Table("waits for", *_right("priority", "for"), "holder", box=None)
        for request in farm["queue"]:
            since = age_text(now - request["since"])
            queue.add_row(
                Text(request["key"]), str(request["priority"]), since, Text(request["holder"])
            )
        parts += [Text(), queue]
    if farm["errors"]:
        errors = Table(*_right("ago"), "error", "device", "session", "", box=None)
        for error in farm["errors"][:8]:
            where = (Text(error["device"]), error["session"], Text(error["text"]))
            errors.add_row(age_text(now - error["at"]), error["kind"], *where)
        parts += [Text(), errors]
    return Group(*parts)


def _said(device: dict[str, Any], now: float) -> str:
    """Return what people said of a device; "" for nothing.  Trackers of before tell none of it."""
    words = [device.get("note", ""), ", ".join(device.get("tags", ()))]
    until = device.get("reserved_until", 0.0)
    if device.get("reserved_for") and until > now:
        words.insert(0, f"kept for {device['reserved_for']} for another {age_text(until - now)}")
    return "; ".join(filter(None, words))


def _right(*names: str) -> list[Column]:
    return [Column(name, justify="right") for name in names]
