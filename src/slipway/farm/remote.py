"""A device of one's own: the static server put on a machine with ssh, and taken away again."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import secrets
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.errors import (
    ArgumentValueError,
    DeviceError,
    RPCConnectionError,
    RPCError,
    ToolchainError,
)
from slipway.farm import place
from slipway.farm.known import Known
from slipway.farm.ssh import Host
from slipway.rpc.addresses import TRACKER_PORT, address_of, address_text
from slipway.rpc.client import connect
from slipway.rpc.connections.tls import CA_VARIABLE
from slipway.rpc.protocol import key_problem
from slipway.rpc.tracker_client import connect_tracker
from slipway.toolchain import native, zig
from slipway.toolchain.elf import architecture_of
from slipway.version import VERSION

REGISTER_S = 30.0
_SPARE_BYTES = 1 << 20


@dataclass(frozen=True)
class Found:
    """What a machine says of itself before anything is put there."""

    machine: str
    boot: str
    version: str
    sums: dict[str, str]
    is_running: bool


@dataclass(frozen=True)
class RemoteCommand:
    """One command for the machine: why, the script of `sh`, and what is sent to its input."""

    why: str
    script: str
    send: bytes | None = None
    sent_name: str = ""

    def shown(self, host: Host) -> str:
        """Return the command as a line that could be typed here."""
        line = shlex.join(["ssh", *host.command(self.script)[1:]])
        return f"{line} <{self.sent_name}" if self.send is not None else line


@dataclass
class Plan:
    """What is to be done to make a machine a device, after a look at it."""

    host: Host
    found: Found
    known: Known
    steps: list[RemoteCommand]
    token: str | None
    notes: list[str] = field(default_factory=list)

    def run(self) -> Iterator[RemoteCommand]:
        """Do the steps; each is given before it is done."""
        for step in self.steps:
            yield step
            try:
                said = self.host.run(step.script, send=step.send)
            except DeviceError as error:
                raise DeviceError(f"{error} ({step.why})") from None
            if f"{place.MARK}linger no" in said:
                user = "$USER" if "@" not in self.host.address else self.host.address.split("@")[0]
                self.notes.append(
                    "it starts when its user logs in, not at boot; for that: "
                    f"ssh {self.host.address} sudo loginctl enable-linger {user}"
                )


def look(host: Host) -> Found:
    """Return what a machine is; raises for one that no static server is for, or that is full."""
    answers: dict[str, str] = {}
    sums: dict[str, str] = {}
    for line in host.run(place.LOOK).splitlines():
        name, _, value = line.removeprefix(place.MARK).partition(" ")
        if line.startswith(place.MARK + "sum "):
            digest, _, path = value.partition(" ")
            sums[path.strip().lstrip("*")] = digest
        elif line.startswith(place.MARK):
            answers[name] = value.strip()
    system = answers.get("system", "")
    if system != "Linux":
        what = f"it runs {system}" if system else "it has no shell that knows `uname`"
        raise DeviceError(
            f"{host.address}: {what}, and the static server is for Linux; with Python there, "
            "`slipway rpc-server` serves any system"
        )
    if "writable" not in answers:
        raise DeviceError(f"{host.address}: the home folder there cannot be written")
    version = answers.get("version", "").removeprefix("slipway-server").strip()
    _check_room(host, answers.get("disk", ""))
    return Found(
        answers.get("machine", ""), answers.get("boot", "none"), version, sums,
        "running" in answers,
    )  # fmt: skip


def _check_room(host: Host, line: str) -> None:
    """`line` is the last one of ``df -Pk``: blocks, used, free, share, where."""
    found = re.search(r"\s(\d+)\s+(?:\d+%|-)\s", line)
    if found and int(found[1]) * 1024 < _SPARE_BYTES:
        raise DeviceError(
            f"{host.address}: the disk of the home folder is full ({found[1]} KB are free, the "
            "server needs 1 MB); free some space there"
        )


def plan(
    host: Host, *, key: str | None = None, port: int = 9090, tracker: str | None = None,
    token: str | None = None, custom_address: str | None = None, replace: bool = False,
    build: Callable[[str], Path] = native.build_device_server,
) -> Plan:  # fmt: skip
    """Look at a machine and return what would make it a device; nothing is changed yet.

    Without a token, and without a tracker, it gets a token of its own.  `replace` allows to put
    an older server in the place of a newer one.
    """
    at = _tracker_address(host, tracker, token)
    if not 0 < port < 65536:
        raise ArgumentValueError(f"--port {port}: a port is a number from 1 to 65535")
    if at is not None:
        connect_tracker(*at, token=token).close()  # before anything is changed on the machine
    found = look(host)
    try:
        architecture = architecture_of(found.machine)
        zig.musl_target(architecture)
    except ToolchainError:
        raise DeviceError(
            f"{host.address}: no static server is for its processor, {found.machine!r}; there are "
            "those for aarch64, armv7, riscv64 and x86_64. With Python there: slipway rpc-server"
        ) from None
    if _is_newer(found.version) and not replace:
        raise DeviceError(
            f"{host.address} has slipway-server {found.version}, which is newer than {VERSION} "
            "here; update this machine, or give --replace"
        )
    name = architecture if key is None else key
    if not name or key_problem(name):
        raise ArgumentValueError(f"--key {name!r}: {key_problem(name) or 'it is empty'}")
    known = Known(
        host.address, name, architecture, port, at and address_text(*at), host.port, host.identity,
        host.network_name(), custom_address,
    )  # fmt: skip
    own = known.own_token() if token is None and at is None else None
    token = token or own or (secrets.token_hex(16) if at is None else None)
    options = place.Options(name, port, known.tracker, custom_address, token is not None)
    return Plan(
        host, found, known, _steps(found, build(f"{architecture}-linux"), options, token), token
    )


def _steps(
    found: Found, server: Path, options: place.Options, token: str | None
) -> list[RemoteCommand]:
    steps = []

    def write(path: str, data: bytes, why: str, script: str, name: str = "") -> None:
        if found.sums.get(path) != hashlib.sha256(data).hexdigest():
            steps.append(
                RemoteCommand(
                    why, script, data, name or f"({path.rpartition('/')[2]}, written here)"
                )
            )

    write(place.SERVER, server.read_bytes(), "copy the server", place.SERVER_WRITTEN, str(server))
    if token is not None:
        write(place.TOKEN, f"{token}\n".encode(), "copy the token", place.TOKEN_WRITTEN)
    start = options.start_script().encode()
    write(place.START, start, "write how it is started", place.START_WRITTEN)
    if found.boot == "systemd":
        write(place.UNIT, place.UNIT_TEXT.encode(), "start it at boot", place.UNIT_WRITTEN)
    if not steps and found.is_running:
        return []
    steps.insert(0, RemoteCommand("make its folder", place.FOLDER_MADE))
    if found.boot == "systemd":
        steps.append(
            RemoteCommand("end one that runs by itself", place.CRON_REMOVED + "; " + place.STOPPED)
        )
        steps.append(RemoteCommand("start it", place.UNIT_STARTED))
        steps.append(RemoteCommand("let it start before a login", place.LINGER))
    else:
        steps.append(
            RemoteCommand("end the one that runs", place.UNIT_REMOVED + "; " + place.STOPPED)
        )
        if found.boot == "cron":
            steps.append(RemoteCommand("start it at boot", place.CRON_WRITTEN))
        steps.append(RemoteCommand("start it", place.STARTED))
    return steps


def _is_newer(version: str) -> bool:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", text))

    return bool(version) and numbers(version) > numbers(VERSION)


def is_loopback(host: str) -> bool:
    """Whether a name or address means the machine that asks."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _tracker_address(host: Host, tracker: str | None, token: str | None) -> tuple[str, int] | None:
    if tracker is None:
        return None
    at = address_of(tracker, TRACKER_PORT)
    if os.environ.get(CA_VARIABLE):
        raise ArgumentValueError(
            "the static server speaks no TLS, so it cannot register with a tracker that asks for "
            "it; with Python on the device, `slipway rpc-server --tls-ca` can"
        )
    if is_loopback(at[0]):
        if not is_loopback(host.network_name()):
            raise ArgumentValueError(
                f"--tracker {tracker} is this machine only, which {host.address} cannot reach; "
                "name it as the device sees it, and start it with --host 0.0.0.0 and a token"
            )
    elif token is None:
        raise ArgumentValueError(
            "a tracker asks devices of a network for its token: give --token-file, or set "
            "SLIPWAY_RPC_TOKEN"
        )
    return at


def listed(known: Known, token: str | None) -> list[dict[str, Any]]:
    """Return the tracker's entries that are this device, offline ones too."""
    assert known.tracker is not None
    at = address_of(known.tracker, TRACKER_PORT)
    with connect_tracker(*at, token=token) as tracker:
        devices = tracker.summary()["farm"]["devices"]
    same = [d for d in devices if d["key"] == known.key and d["port"] == known.port]
    addresses = {known.custom_address, known.network_name}
    try:
        addresses |= {str(a[4][0]) for a in socket.getaddrinfo(known.network_name, None)}
    except OSError:  # known to ssh only, behind a machine that it goes through
        return same
    return [d for d in same if d["address"] in addresses]


def wait_until_it_serves(made: Plan, timeout_s: float = REGISTER_S) -> str:
    """Return the state of the new device, once it registered or answers.

    Raises RPCConnectionError with the last words of its server when it does neither in time.
    """
    known = made.known
    deadline = time.monotonic() + timeout_s
    why = ""
    while time.monotonic() < deadline:
        try:
            state = state_of(known, made.token)
            if state != "offline":
                return state
            why = f"the tracker {known.tracker} has not heard of it"
        except RPCError as error:
            why = str(error)
        time.sleep(0.3)
    said = made.host.run(place.LOG).strip() or "nothing"
    raise RPCConnectionError(
        f"the server is on {known.address} and will go on trying, but {why}; its last words: "
        f"{said[-600:]}. `slipway doctor {known.network_name}:{known.port}` goes the way to it"
    )


def state_of(known: Known, token: str | None) -> str:
    """Return the tracker's word for a device (free, busy, ..., offline), or "serves".

    Raises RPCError when the tracker, or the device without one, does not answer.
    """
    if known.tracker is not None:
        states = [str(entry["state"]) for entry in listed(known, token)]
        return next((state for state in states if state != "offline"), "offline")
    host = known.custom_address or known.network_name
    with connect(host, known.port, timeout=5.0, token=token) as session:
        session.ping(b"")
    return "serves"


def removal() -> list[RemoteCommand]:
    """Return the steps that take away all that `plan` puts on a machine."""
    return [
        RemoteCommand("take it out of systemd", place.UNIT_REMOVED),
        RemoteCommand("take back that it starts before a login", place.LINGER_REMOVED),
        RemoteCommand("take it out of the crontab", place.CRON_REMOVED),
        RemoteCommand("end it", place.STOPPED),
        RemoteCommand("remove its folder", place.FOLDER_REMOVED),
    ]
