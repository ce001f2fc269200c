"""`micro.Session`: a session with firmware, with the interface of any remote session."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

from slipway.errors import ArgumentTypeError, RPCConnectionError, RPCError, SlipwayError
from slipway.micro.board import Board, find_board
from slipway.micro.device_rpc import DeviceRPCSession
from slipway.micro.serial_link import SerialLink
from slipway.micro.transport import TransportTimeouts, start_timeout_s
from slipway.rpc.device import RemoteDevice
from slipway.rpc.link import Link
from slipway.rpc.module import RemoteModule
from slipway.rpc.protocol import greet
from slipway.runtime.graph.graph_executor import GraphModule

if TYPE_CHECKING:
    from slipway.runtime.devices import AnyDevice


_START_TIMEOUT_S = 10.0
_CALL_TIMEOUT_S = 60.0
SessionTerminatedError = RPCConnectionError  # the device's end, or the line's, ends a session


class Session:
    """A session with a device behind a transport.

    Use it as a context manager; `transport` is a project's (``project.transport()``), or anything
    with `read` and `write`.  `timeout_override` bounds one call, in seconds; classic's
    `TransportTimeouts` bound the session's start, too, and 0 there is no bound.  `timeout` is
    another name of it.  `board` (a name or a .toml file) is what code for the device is linked
    with; by default the project's, else what the firmware calls itself.
    """

    def __init__(
        self,
        transport_context_manager: Any = None,
        session_name: str = "micro",
        timeout_override: TransportTimeouts | float | None = None,
        *,
        timeout: float | None = _CALL_TIMEOUT_S,
        transport: Any = None,
        board: str | Board | None = None,
    ) -> None:
        self._board = board
        self._transport = transport_context_manager if transport is None else transport
        if self._transport is None:
            raise ArgumentTypeError("Session needs a transport, for example project.transport()")
        self._name = session_name
        self._timeouts: TransportTimeouts | None = None
        if isinstance(timeout_override, TransportTimeouts):
            self._timeouts = timeout_override
            timeout = timeout_override.session_established_timeout_sec or None
        elif timeout_override is not None:
            timeout = timeout_override
        self._timeout = timeout
        self._line: SerialLink | None = None
        self._rpc: DeviceRPCSession | None = None
        self._opened_transport = False

    @property
    def rpc(self) -> DeviceRPCSession:
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

    def load(self, module: Any, name: str = "module") -> RemoteModule:
        """Link a built module into the device's RAM and return it as a module there.

        `module` is what tvm.build or relay.build returned for this board's target, or the path of
        an exported .o, .a or Model Library Format .tar.  Functions are called by name; a model has
        ``["default"](session.device)``.  Nothing is flashed; the memory is free again when the
        module's last reference is gone.  Raises ToolchainError or ArtifactError when it cannot be
        linked or is too large.
        """
        return self.rpc.load(module, name)

    def upload(self, path: Any, target: str | None = None) -> None:
        """Link an exported file for the device and send it; `load_module` opens it by name."""
        self.rpc.upload(path, target)

    def load_module(self, name: str) -> RemoteModule:
        """Return the module of an uploaded file."""
        return self.rpc.load_module(name)

    def _find_board(self) -> Board | None:
        """Return the board whose compiler makes code for the device; None is this machine."""
        if isinstance(self._board, Board):
            return self._board
        given = self._board or getattr(self._transport, "board_file", None) or self.rpc.key
        return None if given == "host" else find_board(str(given))

    def __enter__(self) -> Session:
        if hasattr(self._transport, "__enter__"):
            self._transport.__enter__()
            self._opened_transport = True
        try:
            limits = self._timeouts
            if limits is None and hasattr(self._transport, "timeouts"):
                limits = self._transport.timeouts()
            start_s = start_timeout_s(limits) or _START_TIMEOUT_S
            self._line = SerialLink(self._transport, self._name, start_s)
            self._line.socket.settimeout(start_s)
            welcome = greet(
                self._line.socket, key="", session_timeout_s=0, token=None, peer=self._name
            )
            link = Link(self._line.socket, welcome, self._name)
            self._rpc = DeviceRPCSession(link, welcome.key, welcome.description, welcome.timeout_ms)
            self._rpc.find_board = self._find_board
            self._rpc.reset_device = self._reset
            self._rpc.timeout = self._timeout
        except BaseException as error:
            fault = self._close()
            if fault and isinstance(error, RPCConnectionError | RPCError):
                raise RPCConnectionError(f"{self._name}: {fault}") from error
            raise
        return self

    def _reset(self) -> NoReturn:
        """Let the device end the session and begin anew; what was open on it is gone."""
        if self._line is not None:
            self._line.close()
        raise SessionTerminatedError(f"{self._name}: the device was reset; open a new session")

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

    def __exit__(self, kind: object, value: BaseException | None, trace: object) -> None:
        fault = self._close()
        if fault and isinstance(value, RPCConnectionError):
            raise RPCConnectionError(f"{self._name}: {fault}") from value


def create_local_graph_executor(graph_json: str, mod: Any, device: AnyDevice | None) -> GraphModule:
    """Return a GraphModule of the executor that firmware runs for its own model.

    The graph is compiled into the firmware, so `graph_json` is only what the caller keeps.
    """
    del graph_json, device
    return GraphModule(mod["default"]())


create_local_debug_executor = create_local_graph_executor


def create_local_aot_executor(session: Session) -> GraphModule:
    """Return a GraphModule of the firmware's model, compiled ahead of time."""
    return GraphModule(session.create_aot_executor())
