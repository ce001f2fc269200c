"""A device with an RPC server: its name, the way to it, its server, and what it can do."""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.doctor.finding import Finding, Findings, absent, ok, wrong
from slipway.doctor.kernel import BOARD_FILE_NAME, BOARD_SIZE, FILE_NAME, TARGETS, examine_kernel
from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError, SlipwayError
from slipway.micro.board import Board
from slipway.micro.board_tools import missing_for
from slipway.micro.device_rpc import DeviceRPCSession
from slipway.rpc.about import about_of
from slipway.rpc.client import RPCSession, connect
from slipway.rpc.protocol import Failure
from slipway.version import VERSION

TIMEOUT_S = 5.0  # for each step
PINGS = 7
# An upload to measure the rate with: it grows until it takes long enough to tell.
PROBE_BYTES = (1 << 10, 4 << 10, 32 << 10, 256 << 10, 1 << 20)
PROBE_S = 0.2
LITTLE_DISK_BYTES = 64 << 20
LITTLE_MEMORY_BYTES = 32 << 20
CLOCK_APART_S = 60.0  # from here on, certificates and logs suffer
START = (
    "./slipway-server --host 0.0.0.0 --port {port} --token-file token.txt "
    "(`slipway device-server` writes that file)"
)


def examine_device(
    host: str, port: int, token: str | None = None, step_s: float | None = None
) -> Findings:
    """Yield what there is to say of the device at an address; stops at what blocks the rest.

    `step_s`: the longest wait of each step.
    """
    limit_s = TIMEOUT_S if step_s is None else step_s
    here = yield from _the_way(host, port, limit_s)
    if not here:
        return
    try:
        session = connect(host, port, token=token, timeout=limit_s)
    except RPCError as error:
        yield refusal(error)
        return
    with session:
        yield from examine_session(session, f"{host}:{port}")


def _the_way(host: str, port: int, limit_s: float) -> Any:
    """Yield name, route and port; return whether there is a server to talk to."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        yield wrong(
            "name",
            f"{host} is no address and no name that this machine knows: {reason}",
            "look for a slip of the pen; `ping` another machine to see that the network is there; "
            "or give the device's address instead: 192.168.1.7:9090",
        )
        return False
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    yield ok("name", f"{host} is {', '.join(addresses[:3])}")
    start = time.perf_counter()
    try:
        socket.create_connection((host, port), timeout=limit_s).close()
    except ConnectionRefusedError:
        yield ok("route", "the machine is there")
        yield wrong(
            "port",
            f"nothing listens at port {port}",
            f"start the server on the device: {START.format(port=port)}; or look up its port",
        )
        return False
    except TimeoutError:
        yield wrong(
            "route",
            f"no answer from {addresses[0]} port {port} within {limit_s:g} s",
            "is the device on, and in a network that this machine reaches? A firewall that drops "
            "packets looks the same: allow the port there",
        )
        return False
    except OSError as error:
        yield wrong(
            "route",
            f"{addresses[0]} cannot be reached: {error.strerror or error}",
            "join a network from which the device can be reached; a device that only calls out "
            "needs `slipway rpc-proxy`",
        )
        return False
    yield ok("route", f"connected in {(time.perf_counter() - start) * 1e3:.1f} ms")
    yield ok("port", f"a server listens at port {port}")
    return True


def refusal(error: RPCError) -> Finding:
    """Return what a failed greeting says, under the name of what it failed for."""
    if error.failure == Failure.AUTH:
        return wrong(
            "token",
            str(error),
            "set SLIPWAY_RPC_TOKEN here to what the server's --token-file holds",
        )
    if error.failure == Failure.VERSION:
        return wrong("version", str(error), "install the same release of Slipway on both")
    if error.failure == Failure.BUSY:
        return wrong("session", str(error), "wait until its session is over, or use a tracker")
    if isinstance(error, RPCTimeoutError | RPCConnectionError):
        return wrong(
            "server",
            str(error),
            "something else listens there, or the server hangs, or it speaks TLS: then set "
            "SLIPWAY_RPC_TLS_CA",
        )
    return wrong("server", str(error), "ask for a device server's port, not for another program's")


def examine_session(session: RPCSession, where: str) -> Findings:
    """Yield what a device with which a session is open says of itself, and whether it works."""
    yield ok("server", session.description + (f", key {session.key!r}" if session.key else ""))
    given = bool(os.environ.get("SLIPWAY_RPC_TOKEN"))
    yield ok("token", "both ends have the same" if given else "none is asked for from here")
    try:
        about = about_of(session)
        yield _version(session.description)
        if about:
            yield from _condition(about)
        yield _link(session)
        yield _kernel(session, about, where)
    except RPCError as error:
        yield wrong("session", str(error), "look at what the server printed on the device")


def _version(description: str) -> Finding:
    if VERSION in description.split():
        return ok("version", f"{VERSION}, as here")
    return wrong(
        "version",
        f"the server says {description!r}, and this is Slipway {VERSION}",
        "what both speak still works; for the rest install this release there: "
        "`slipway device-server`",
    )


def _condition(about: Mapping[str, str]) -> Findings:
    if "clock_ahead_s" in about:
        ahead = float(about["clock_ahead_s"])
        text = f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        yield ok("clock", text) if abs(ahead) < CLOCK_APART_S else wrong(
            "clock", text, "set it (a board without a battery asks the network: "
            "`timedatectl set-ntp true`); certificates and logs are wrong until then",
        )  # fmt: skip
    board = about.get("board", "").strip("\0")
    parts = [board, about.get("architecture", ""), f"{about.get('cores', '?')} cores",
             about.get("system", "")]  # fmt: skip
    yield ok("processor", ", ".join(part for part in parts if part))
    if features := about.get("features", "").strip(" ,"):
        yield ok("features", features.replace("+", "").replace(",", ", "))
    if "memory_free_bytes" in about:
        yield _room("memory", about, LITTLE_MEMORY_BYTES, "end other programs there")
    if "disk_free_bytes" in about:
        yield _room("disk", about, LITTLE_DISK_BYTES, "make room where the server runs")


def _room(name: str, about: Mapping[str, str], minimum: int, advice: str) -> Finding:
    free, total = int(about[f"{name}_free_bytes"]), int(about.get(f"{name}_bytes", "0"))
    text = f"{free / 1e6:,.0f} of {total / 1e6:,.0f} MB free"
    return ok(name, text) if free >= minimum else wrong(name, text, advice)


def _link(session: RPCSession) -> Finding:
    times = []
    for _ in range(PINGS):
        start = time.perf_counter()
        session.ping()
        times.append(time.perf_counter() - start)
    text = f"{statistics.median(times) * 1e3:.2f} ms there and back"
    rate = 0.0
    for size in PROBE_BYTES:
        try:
            start = time.perf_counter()
            session.upload(bytes(size), "slipway-doctor.bin")
            took = time.perf_counter() - start
            session.remove("slipway-doctor.bin")
        except RPCError as error:
            advice = (
                "the line loses what is sent, or the device's machine is busy: try again"
                if isinstance(error, RPCTimeoutError)
                else "make room there"
            )
            return wrong("link", f"{text}; an upload of {size >> 10} KB fails: {error}", advice)
        rate = size / took
        if took > PROBE_S:
            break
    speed = f"{rate / 1e6:.1f} MB/s" if rate >= 1e5 else f"{rate / 1e3:.1f} KB/s"
    return ok("link", f"{text}, {speed} upwards")


def _kernel(session: RPCSession, about: Mapping[str, str], where: str) -> Finding:
    if isinstance(session, DeviceRPCSession) and (board := session.find_board()) is not None:
        return _kernel_of_board(session, board, where)
    target = TARGETS.get(about.get("architecture", ""))
    if target is None:
        kind = about.get("architecture", "its processor, which it does not tell")
        return absent("kernel", f"not tried on {kind}", "`slipway run` tries a model of yours")

    def load(path: Path) -> tuple[Any, Any]:
        session.upload(str(path), FILE_NAME)
        return session.load_module(FILE_NAME), session.cpu(0)

    try:
        return examine_kernel(target, load, where)
    finally:
        _remove(session)


def _kernel_of_board(session: DeviceRPCSession, board: Board, where: str) -> Finding:
    if package := missing_for(board, emulate=False):
        return absent("kernel", "not tried: its compiler is not here", f"apt-get install {package}")

    def load(path: Path) -> tuple[Any, Any]:
        return session.load(path), session.cpu(0)

    return examine_kernel(board.target, load, where, BOARD_SIZE, BOARD_FILE_NAME)


def _remove(session: RPCSession) -> None:
    try:
        session.remove(FILE_NAME)
    except SlipwayError:
        return  # it was not uploaded, or the session is over: its folder goes with it
