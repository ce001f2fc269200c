"""What type checkers see of slipway.rpc; written by tools/stubs.py."""

from slipway.rpc.array import RemoteNDArray as RemoteNDArray
from slipway.rpc.client import RPCSession as RPCSession
from slipway.rpc.client import connect as connect
from slipway.rpc.device import RemoteDevice as RemoteDevice
from slipway.rpc.local import LocalSession as LocalSession
from slipway.rpc.local import PopenSession as PopenSession
from slipway.rpc.module import RemoteFunction as RemoteFunction
from slipway.rpc.module import RemoteModule as RemoteModule
from slipway.rpc.server import Server as Server
from slipway.rpc.server import ServerOptions as ServerOptions
from slipway.rpc.tracker_client import TrackerSession as TrackerSession
from slipway.rpc.tracker_client import connect_tracker as connect_tracker
from slipway.rpc.tracker_process import Proxy as Proxy
from slipway.rpc.tracker_process import Tracker as Tracker

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
