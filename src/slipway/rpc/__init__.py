"""Sessions on remote devices, and servers for them.

``connect`` opens a session; ``Server`` serves one machine from Python;
``python -m slipway.exec.rpc_server`` does so from a shell.
"""

from typing import Any

from slipway.arguments import COMMON, explain_all
from slipway.classic.names import missing
from slipway.lazy import load
from slipway.rpc.array import RemoteNDArray
from slipway.rpc.client import RPCSession, connect
from slipway.rpc.device import RemoteDevice
from slipway.rpc.local import LocalSession, PopenSession
from slipway.rpc.module import RemoteFunction, RemoteModule
from slipway.rpc.server import Server, ServerOptions
from slipway.rpc.tracker_client import TrackerSession, connect_tracker
from slipway.rpc.tracker_process import Proxy, Tracker

__all__ = [
    "LocalSession",
    "PopenSession",
    "Proxy",
    "RPCSession",
    "RemoteDevice",
    "RemoteFunction",
    "RemoteModule",
    "RemoteNDArray",
    "Server",
    "ServerOptions",
    "Tracker",
    "TrackerSession",
    "connect",
    "connect_tracker",
]

explain_all(globals(), __all__, COMMON)


def __getattr__(name: str) -> Any:
    if name in ("proxy", "tracker"):  # servers, which a client does without
        return load(f"slipway.rpc.{name}")
    raise AttributeError(missing("slipway.rpc", name, __all__))
