"""A device over RPC: found by its address, and given a model."""

from __future__ import annotations

import hashlib
from pathlib import Path

from slipway.errors import RPCConnectionError, did_you_mean
from slipway.rpc.addresses import DEVICE_PORT, TRACKER_PORT, address_of
from slipway.rpc.client import CONNECT_TIMEOUT_S, RPCSession, connect
from slipway.rpc.tracker_client import REQUEST_TIMEOUT_S, connect_tracker
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.model_devices import ModelDevices


def open_session(
    where: str | RPCSession,
    *,
    key: str = "",
    tracker: str | None = None,
    token: str | None = None,
    timeout: float | None = None,
) -> tuple[RPCSession, str]:
    """Return the session with the device at "host:port" and what to call the device.

    With a tracker, `where` (or `key`) is the kind of device to wait for; a session stays the
    caller's.  `timeout`: seconds to wait for a free device, or for each step of connecting.
    Raises RPCArgumentError for what is no address, RPCConnectionError for a kind that the tracker
    does not have, RPCError when nothing answers.
    """
    if isinstance(where, RPCSession):
        return where, "the device of the session"
    if tracker is not None:
        address = address_of(tracker, TRACKER_PORT)
        kind = key or where
        return request_device(address, kind, token=token, timeout=timeout), f"{kind} of {tracker}"
    host, port = address_of(where, DEVICE_PORT)
    limit_s = CONNECT_TIMEOUT_S if timeout is None else timeout
    return connect(host, port, key=key, token=token, timeout=limit_s), f"{host}:{port}"


def request_device(
    address: tuple[str, int], kind: str, *, token: str | None = None, timeout: float | None = None
) -> RPCSession:
    """Return a session with a device of that kind, waiting `timeout` seconds until one is free.

    A kind that the tracker has never had is an RPCConnectionError at once: nobody would come.
    """
    session = connect_tracker(*address, token=token)
    kinds = session.summary()["farm"]["kinds"]
    states = ("free", "busy", "assigned", "drained", "offline")
    known = sorted(name for name, counts in kinds.items() if any(counts[s] for s in states))
    if kind not in known:
        session.close()
        raise RPCConnectionError(
            f"the tracker {address[0]}:{address[1]} has no device of kind {kind!r}; it has "
            f"{', '.join(map(repr, known)) or 'none at all'}.{did_you_mean(kind, known)} "
            f"`slipway doctor {kind} --tracker {address[0]}:{address[1]}` tells more"
        )
    return session.request(kind, timeout=REQUEST_TIMEOUT_S if timeout is None else timeout)


def executor_there(
    session: RPCSession, artifact: Path, stem: str, devices: ModelDevices
) -> GraphModule:
    """Upload an exported ``.tar`` and return its executor on the device."""
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()[:12]
    name = f"{stem}-{digest}.tar"  # so that two models of one name do not replace each other
    session.upload(str(artifact), name)
    return GraphModule(session.load_module(name)["default"](*devices.each))
