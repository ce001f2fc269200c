"""Functions and modules that live on the device."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import ExecutionError
from slipway.rpc import checks
from slipway.rpc.array import RemoteNDArray, allocate
from slipway.rpc.link import REPLY, UNSENT
from slipway.rpc.protocol import NAME_MAX_BYTES, Code, Tag
from slipway.rpc.values import MAKERS, Remote, get_result, put_args
from slipway.runtime.function_table import MAIN, FunctionTable
from slipway.runtime.graph.input_values import call_kernel
from slipway.runtime.ndarray import NDArray
from slipway.runtime.timing import BenchmarkResult

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession
    from slipway.rpc.device import RemoteDevice

_CALL = struct.Struct("<QII")
_TIME = struct.Struct("<QQIIiiiiii")
_GET = struct.Struct("<QII")
_PLAIN = frozenset((int, float, bool, type(None)))


class RemoteFunction(Remote):
    """A function on the device; call it with numbers, text, and tensors of its session."""

    __slots__ = ("__weakref__", "handle", "needed", "session")
    _tag = int(Tag.FUNCTION)

    def __init__(self, session: RPCSession, handle: int) -> None:
        self.session = session
        self.handle = handle
        self.needed: list[RemoteModule] = []  # modules with the kernels that it launches

    def __call__(self, *args: Any) -> Any:
        """Run the function on the device and return its result.

        As for a kernel here, arrays of NumPy's default dtypes are converted if that loses nothing.
        """
        if any(type(a) is RemoteNDArray and a.dtype in ("float64", "int64") for a in args):
            return call_kernel(self._call, args, _beside)
        return self._call(*args)

    def _call(self, *args: Any) -> Any:
        session = self.session
        link = session.link
        with link.lock:
            session.begin_call()
            if _PLAIN.issuperset(map(type, args)):
                result = link.call_plain(self.handle, session.call_timeout_ms, args)
                if result is REPLY:
                    return get_result(session, link.reply_at())
                if result is not UNSENT:
                    return result
            return get_result(session, link.call(Code.CALL, put_call(session, self.handle, args)))


def _beside(given: RemoteNDArray, made: NDArray) -> RemoteNDArray:
    """Return a copy of an array on the device that another one lies on."""
    device = given.device
    shape = tuple(made.shape)
    there = allocate(given.session, shape, made.dtype, device.device_type, device.device_id)
    return there.copyfrom(made)


def put_call(session: RPCSession, function: int, args: tuple[Any, ...]) -> int:
    """Write a CALL's payload into the request buffer; return its size."""
    _CALL.pack_into(session.link.request, 0, function, session.call_timeout_ms, len(args))
    return put_args(session, 16, args)


def get_function(session: RPCSession, module: int, name: str) -> RemoteFunction | None:
    """Look a function up in module handle `module`, or (0) among the device's global ones."""
    raw = checks.text(name, "a function's name").encode()
    if len(raw) > NAME_MAX_BYTES:
        return None  # a longer name cannot be asked for, and nothing has it
    with session.link.lock:
        session.begin_step()
        request = session.link.request
        _GET.pack_into(request, 0, module, len(raw), 0)
        size = (16 + len(raw) + 1 + 7) & ~7
        request[16:size] = raw + bytes(size - 16 - len(raw))
        function = get_result(session, session.link.call(Code.GET_FUNCTION, size))
    if not isinstance(function, RemoteFunction | None):
        raise session.link.broken("something else than a function")
    return function


class RemoteModule(Remote, FunctionTable):
    """A module loaded on the device, with the methods of a local one.

    Got from ``remote.load_module("model.tar")``, or from a function that makes one.
    """

    __slots__ = ("__weakref__", "_functions", "handle", "imported_modules", "session")
    _tag = int(Tag.MODULE)
    type_key = "rpc"
    entry_name = MAIN

    def __init__(self, session: RPCSession, handle: int) -> None:
        self.session = session
        self.handle = handle
        self.imported_modules = []
        self._functions = {}

    def get_function(self, name: str, query_imports: bool = False) -> RemoteFunction:
        """Return the function `name`; with `query_imports` also look into imported modules.

        Raises AttributeError if there is none.
        """
        function = self._lookup(name, query_imports)
        if not isinstance(function, RemoteFunction):
            raise AttributeError(f"the remote module {self!r} has no function {name!r}.")
        return function

    def _find_function(self, name: str) -> RemoteFunction | None:
        function = get_function(self.session, self.handle, name)
        if function is not None:
            function.needed = self.imported_modules
        return function

    def __getitem__(self, name: str) -> RemoteFunction:
        return self.get_function(name)

    def __call__(self, *args: Any) -> Any:
        """Call the entry function."""
        return self.get_function(MAIN)(*args)

    def import_module(self, module: RemoteModule) -> None:
        """Make another remote module's functions available through `query_imports`."""
        self.imported_modules.append(module)

    def time_evaluator(
        self,
        func_name: str,
        dev: RemoteDevice | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str | Callable[..., Any] = "",
        ctx: RemoteDevice | None = None,
    ) -> Callable[..., BenchmarkResult]:
        """Return a function that runs `func_name` on the device and times it there.

        Parameters are those of the local `Module.time_evaluator`; `f_preproc` is a function of
        the device.  One round trip measures everything.
        """
        del dev, ctx
        for what, count in {
            "number": number,
            "repeat": repeat,
            "min_repeat_ms": min_repeat_ms,
            "limit_zero_time_iterations": limit_zero_time_iterations,
            "cooldown_interval_ms": cooldown_interval_ms,
            "repeats_to_cooldown": repeats_to_cooldown,
        }.items():
            checks.whole(count, what, -(2**31), 2**31 - 1)
        session = self.session
        function = self.get_function(func_name)
        preproc = (
            session.get_function(f_preproc)
            if isinstance(f_preproc, str) and f_preproc
            else (f_preproc or None)
        )
        if not isinstance(preproc, RemoteFunction | None):
            raise ExecutionError("f_preproc must be a function of the device, or its name there.")
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
            if not isinstance(blob, bytes) or len(blob) != 8 * repeat:
                raise link.broken("something else than times")
            return BenchmarkResult(np.frombuffer(blob, "<f8").tolist())

        return evaluate

    def __repr__(self) -> str:
        return f"<RemoteModule on {self.session}>"


MAKERS.update({Tag.FUNCTION: RemoteFunction, Tag.MODULE: RemoteModule})
