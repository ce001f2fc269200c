"""Remote devices, under the path that RPC had before it was a package; see `slipway.rpc`."""

from slipway.rpc import RPCSession, Server, Tracker, connect, connect_tracker

__all__ = ["RPCSession", "Server", "Tracker", "connect", "connect_tracker"]
