"""Remote devices, under the path that RPC had before it was a package; see `slipway.rpc`."""

from slipway.rpc import Server, connect

__all__ = ["Server", "connect"]
