"""A device over RPC: found by its address, and given a model."""

from __future__ import annotations

import hashlib
from pathlib import Path

from slipway.errors import ExecutionError
from slipway.rpc.client import RPCSession, connect
from slipway.rpc.tracker_client import connect_tracker
from slipway.runtime.graph_executor import GraphModule

DEVICE_PORT = 9090
TRACKER_PORT = 9190


def open_session(
    where: str | RPCSession, *, key: str = "", tracker: str | None = None, token: str | None = None
) -> tuple[RPCSession, str]:
    """Return the session with the device at "host:port" and what to call the device.

    With a tracker, `where` (or `key`) is the kind of device to wait for; a session stays the
    caller's.  Raises ExecutionError for an address that cannot be read, RPCError when nothing
    answers.
    """
    if isinstance(where, RPCSession):
        return where, "the device of the session"
    if tracker is not None:
        host, port = address_of(tracker, TRACKER_PORT)
        return connect_tracker(host, port, token=token).request(key or where), (
            f"{key or where} of {tracker}"
        )
    host, port = address_of(where, DEVICE_PORT)
    return connect(host, port, key=key, token=token), f"{host}:{port}"


def executor_there(session: RPCSession, artifact: Path, stem: str) -> GraphModule:
    """Upload an exported ``.tar`` and return its executor on the device."""
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()[:12]
    name = f"{stem}-{digest}.tar"  # so that two models of one name do not replace each other
    session.upload(str(artifact), name)
    return GraphModule(session.load_module(name)["default"](session.cpu(0)))


def address_of(text: str, default_port: int) -> tuple[str, int]:
    """Return (host, port) of "host:port", "host" or "[::1]:port"."""
    if not isinstance(text, str) or not text.strip():
        raise ExecutionError(f"{text!r} is no address; write host:port, raspberrypi.local:9090 say")
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ExecutionError(f"{text!r}: {port!r} is no port; write host:port, host:9090 say")
    return host, int(port) if port else default_port
