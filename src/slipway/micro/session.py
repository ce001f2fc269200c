"""`micro.Session`: a session with firmware, with the interface of any remote session."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any

from slipway.errors import RPCConnectionError, RPCError, SlipwayError
from slipway.micro.serial_link import SerialLink
from slipway.rpc.client import RPCSession
from slipway.rpc.device import RemoteDevice
from slipway.rpc.link import Link
from slipway.rpc.module import RemoteModule
from slipway.rpc.protocol import greet

_START_TIMEOUT_S = 10.0


class Session:
    """A session with a device behind a transport.

    Use it as a context manager; `transport` is a project's (``project.transport()``), or anything
    with `read` and `write`.  `timeout` bounds one call, in seconds.
    """

    def __init__(
        self,
        transport_context_manager: Any = None,
        session_name: str = "micro",
        timeout: float | None = 60.0,
        *,
        transport: Any = None,
    ) -> None:
        self._transport = transport_context_manager if transport is None else transport
        if self._transport is None:
            raise TypeError("Session needs a transport, for example project.transport()")
        self._name = session_name
        self._timeout = timeout
        self._line: SerialLink | None = None
        self._rpc: RPCSession | None = None
        self._opened_transport = False

    @property
    def rpc(self) -> RPCSession:
        """The remote session; raises RPCError before the session is entered."""
        if self._rpc is None:
            raise RPCError("the session is not open; use it in a `with` statement")
        return self._rpc

    @property
    def device(self) -> RemoteDevice:
        """The device's processor."""
        return self.rpc.cpu(0)

    def get_system_lib(self) -> RemoteModule:
        """Return the module of what is linked into the firmware."""
        return self.rpc.system_lib()

    def create_aot_executor(self) -> Any:
        """Return the firmware's model, for `AotModule`."""
        return self.get_system_lib()["default"]()

    create_graph_executor = create_aot_executor

    def __enter__(self) -> Session:
        if hasattr(self._transport, "__enter__"):
            self._transport.__enter__()
            self._opened_transport = True
        try:
            limits = self._transport.timeouts() if hasattr(self._transport, "timeouts") else {}
            start_s = limits.get("session_start_timeout_sec") or _START_TIMEOUT_S
            self._line = SerialLink(self._transport, self._name, start_s)
            self._line.socket.settimeout(start_s)
            welcome = greet(
                self._line.socket, key="", session_timeout_s=0, token=None, peer=self._name
            )
            link = Link(self._line.socket, welcome, self._name)
            self._rpc = RPCSession(link, welcome.key, welcome.description, welcome.timeout_ms)
            self._rpc.timeout = self._timeout
        except BaseException as error:
            fault = self._close()
            if fault and isinstance(error, RPCConnectionError | RPCError):
                raise RPCConnectionError(f"{self._name}: {fault}") from error
            raise
        return self

    def _close(self) -> str:
        """End everything that is open; return what was wrong with the line, if anything."""
        fault = ""
        if self._rpc is not None:
            self._rpc.close()
            self._rpc = None
        if self._line is not None:
            self._line.close()
            fault = self._line.fault
            self._line = None
        if self._opened_transport:
            self._opened_transport = False
            with contextlib.suppress(SlipwayError):
                self._transport.__exit__(None, None, None)
        return fault

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fault = self._close()
        if fault and isinstance(value, RPCConnectionError):
            raise RPCConnectionError(f"{self._name}: {fault}") from value


def create_local_graph_executor(graph_json: str, mod: Any, device: Any) -> Any:
    """Return the executor that firmware runs for its own model; classic signature.

    The graph is compiled into the firmware, so `graph_json` is only what the caller keeps.
    """
    del graph_json, device
    return mod["default"]()


create_local_debug_executor = create_local_graph_executor
