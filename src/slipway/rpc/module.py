"""Functions and modules that live on the device."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.rpc.protocol import Code, Tag
from slipway.rpc.values import Remote, get_result, put_args

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession

ENTRY_NAME = "__tvm_main__"
_CALL = struct.Struct("<QII")
_TIME = struct.Struct("<QQIIiiiiii")
_GET = struct.Struct("<QII")


class RemoteFunction(Remote):
    """A function on the device; call it with numbers, text, and tensors of its session."""

    __slots__ = ()
    _tag = int(Tag.FUNCTION)

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


class RemoteModule(Remote):
    """A module loaded on the device: ``remote.load_module("model.tar")``."""

    __slots__ = ("_functions",)
    _tag = int(Tag.MODULE)
    entry_name = ENTRY_NAME
    type_key = "rpc"

    def __init__(self, session: RPCSession, handle: int) -> None:
        super().__init__(session, handle)
        self._functions: dict[str, RemoteFunction] = {}

    def get_function(self, name: str, query_imports: bool = False) -> RemoteFunction:
        """Return function `name`; AttributeError if the module has none of that name."""
        del query_imports
        function = self._functions.get(name)
        if function is None:
            function = get_function(self.session, self.handle, name)
            if function is None:
                raise AttributeError(f"the remote module {self!r} has no function {name!r}.")
            self._functions[name] = function
        return function

    def __getitem__(self, name: str) -> RemoteFunction:
        return self.get_function(name)

    @property
    def entry_func(self) -> RemoteFunction:
        """The module's main function."""
        return self.get_function(ENTRY_NAME)

    def __call__(self, *args: Any) -> Any:
        """Call the entry function."""
        return self.get_function(ENTRY_NAME)(*args)

    @property
    def imported_modules(self) -> list[RemoteModule]:
        """Modules imported into this one; the device keeps them inside."""
        return []

    def time_evaluator(
        self,
        func_name: str,
        dev: Any = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
    ) -> Any:
        """Return a function that runs `func_name` on the device and times it there.

        Parameters are those of the local ``Module.time_evaluator``; one round trip measures all.
        """
        from slipway.runtime.timing import BenchmarkResult

        del dev, cache_flush_bytes
        session = self.session
        function = self.get_function(func_name)
        preproc = get_function(session, 0, f_preproc) if f_preproc else None

        def evaluate(*args: Any) -> BenchmarkResult:
            link = session.link
            with link.lock:
                session.begin_call()
                _TIME.pack_into(
                    link.request, 0, function.handle, preproc.handle if preproc else 0,
                    session.call_timeout_ms, len(args), number, repeat, min_repeat_ms,
                    cooldown_interval_ms, repeats_to_cooldown, limit_zero_time_iterations,
                )  # fmt: skip
                size = put_args(session, _TIME.size, args)
                raw = get_result(session, link.call(Code.TIME, size))
            return BenchmarkResult(np.frombuffer(raw, "<f8").tolist())

        return evaluate

    def __repr__(self) -> str:
        return f"RemoteModule({self.handle & 0xFFFFFFFF} on {self.session})"
