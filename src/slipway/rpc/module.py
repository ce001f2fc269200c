"""Functions and modules that live on the device."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import ExecutionError
from slipway.rpc.device import RemoteDevice
from slipway.rpc.protocol import Code, Tag
from slipway.rpc.values import Remote, get_result, put_args
from slipway.runtime.benchmark_result import BenchmarkResult
from slipway.runtime.device import Device
from slipway.runtime.module import Module

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession

_CALL = struct.Struct("<QII")
_TIME = struct.Struct("<QQIIiiiiii")
_GET = struct.Struct("<QII")


class RemoteFunction(Remote):
    """A function on the device; call it with numbers, text, and tensors of its session."""

    __slots__ = ("__weakref__", "handle", "session")
    _tag = int(Tag.FUNCTION)

    def __init__(self, session: RPCSession, handle: int) -> None:
        self.session = session
        self.handle = handle

    def __call__(self, *args: Any) -> Any:
        """Run the function on the device and return its result."""
        session = self.session
        link = session.link
        with link.lock:
            session.begin_call()
            _CALL.pack_into(link.request, 0, self.handle, session.call_timeout_ms, len(args))
            size = put_args(session, 16, args)
            return get_result(session, link.call(Code.CALL, size))


def get_function(session: RPCSession, module: int, name: str) -> RemoteFunction | None:
    """Look a function up in module handle `module`, or (0) among the device's global ones."""
    raw = name.encode()
    with session.link.lock:
        session.begin_step()
        request = session.link.request
        _GET.pack_into(request, 0, module, len(raw), 0)
        size = (16 + len(raw) + 1 + 7) & ~7
        request[16:size] = raw + bytes(size - 16 - len(raw))
        function: RemoteFunction | None = get_result(
            session, session.link.call(Code.GET_FUNCTION, size)
        )
    return function


class RemoteModule(Remote, Module):
    """A module loaded on the device: ``remote.load_module("model.tar")``.

    Attributes: `device`, where a graph executor's inputs are made.
    """

    _tag = int(Tag.MODULE)
    type_key = "rpc"

    def __init__(self, session: RPCSession, handle: int) -> None:
        super().__init__()
        self.session = session
        self.handle = handle
        self.device: Device = RemoteDevice(session, 1, 0)

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        return get_function(self.session, self.handle, name)

    def create_graph(self, blob: bytes, dev: Device) -> RemoteModule:
        """Make a graph executor on the device from flat tables and this module's functions."""
        create = self.session.get_function("slipway.graph_create")
        made: RemoteModule = create(self, blob, dev)
        return made

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str | Callable[..., Any] = "",
    ) -> Callable[..., BenchmarkResult]:
        """Return a function that runs `func_name` on the device and times it there.

        Parameters are those of the local `Module.time_evaluator`; `f_preproc` is a function of
        the device.  One round trip measures everything.
        """
        del dev
        session = self.session
        function = self.get_function(func_name)
        preproc = (
            session.get_function(f_preproc)
            if isinstance(f_preproc, str) and f_preproc
            else (f_preproc or None)
        )
        if not isinstance(preproc, RemoteFunction | None):
            raise ExecutionError("f_preproc must be a function of the device, or its name there.")
        if not isinstance(function, RemoteFunction):
            raise ExecutionError(f"{func_name!r} is not a function of the device.")
        before = preproc.handle if preproc is not None else 0

        def evaluate(*args: Any) -> BenchmarkResult:
            link = session.link
            with link.lock:
                session.begin_call()
                _TIME.pack_into(
                    link.request, 0, function.handle, before, session.call_timeout_ms, len(args),
                    number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown,
                    limit_zero_time_iterations,
                )  # fmt: skip
                size = put_args(session, _TIME.size, args)
                blob = get_result(session, link.call(Code.TIME, size))
            return BenchmarkResult(np.frombuffer(blob, "<f8").tolist())

        return evaluate

    def __repr__(self) -> str:
        return f"<RemoteModule on {self.session}>"
