"""Functions that any language can call: Python's registered in one table, compiled ones wrapped.

The functions themselves are tvm-ffi's.  `PackedFunc` adds what classic scripts expect of them:
arrays arrive and return as `NDArray`, functions as `PackedFunc`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, overload

import numpy as np

from slipway.errors import ArgumentTypeError, ArgumentValueError, did_you_mean
from slipway.lazy import Late
from slipway.runtime.devices import Device
from slipway.runtime.libraries.native_library import native_runtime, tvm_ffi
from slipway.runtime.ndarray import NDArray


class Modules(Late, package="slipway.runtime"):
    """What a function gives that is a module; modules are made of functions."""

    NativeModule: Callable[[Any], Any]


MODULES = Modules()
EXTENSIONS: set[type] = set()  # classes of scripts' own, whose `_tvm_handle` is an array


class PackedFunc:
    """A function in the calling convention, callable from Python.

    Arguments may be numbers, strings, bytes, None, devices, `NDArray`, anything with DLPack (NumPy
    arrays too), functions, and lists of these.
    """

    __slots__ = ("__weakref__", "_function", "_keep_alive")

    def __init__(self, function: Any, keep_alive: object = None) -> None:
        self._function = function
        self._keep_alive = keep_alive

    def __call__(self, *args: Any) -> Any:
        """Call it; an error keeps the class it was raised with, where Python knows that class."""
        for arg in args:
            if (not isinstance(arg, NDArray) and callable(arg)) or type(arg) in EXTENSIONS:
                args = tuple(_as_argument(item) for item in args)
                break
        result = self._function(*args)
        return result if result is None else from_ffi(result)

    def __tvm_ffi_object__(self) -> Any:
        return self._function

    def __repr__(self) -> str:
        return f"<PackedFunc at {self._function.__chandle__():#x}>"


Function = PackedFunc


def from_ffi(value: Any) -> Any:
    """Return what a user expects for a value that came through tvm-ffi."""
    ffi = tvm_ffi()
    if isinstance(value, ffi.Tensor):
        return NDArray(value if value.__chandle__() else _as_object(value))
    if isinstance(value, ffi.Function):
        return PackedFunc(value)
    if isinstance(value, _Carried):
        return value.value
    if isinstance(value, ffi.Device):
        return Device(value.dlpack_device_type(), value.index)
    if isinstance(value, ffi.Module) and _is_ours(value):
        return MODULES.NativeModule(value)
    if isinstance(value, ffi.core.String):
        return str(value)
    if isinstance(value, ffi.core.Bytes):
        return bytes(value)
    if isinstance(value, ffi.Map) and not isinstance(next(iter(value), ""), str | int | ffi.Object):
        return dict(value.items())  # tvm-ffi carries Python's objects, and does not find them
    return value


def _as_object(borrowed: Any) -> Any:
    """Return a tensor over the memory of one that compiled code lends for a call.

    tvm-ffi's own view of that has no object behind it, and cannot be handed on.
    """
    dtype = str(borrowed.dtype)
    if borrowed.device.dlpack_device_type() != 1 or not borrowed.is_contiguous():
        return borrowed
    try:
        kind = np.dtype(dtype)
    except TypeError:  # vectors, and floats that NumPy has not
        return borrowed
    count = math.prod(borrowed.shape)
    if not count:
        return tvm_ffi().from_dlpack(np.empty(tuple(borrowed.shape), kind))
    memory = (ctypes.c_byte * (count * kind.itemsize)).from_address(borrowed.data_ptr())
    whole = np.frombuffer(memory, kind).reshape(tuple(borrowed.shape))
    return tvm_ffi().from_dlpack(whole)


def _is_ours(module: Any) -> bool:
    """Return whether a module is one of the C runtime, which tvm-ffi cannot look into."""
    handle = ctypes.c_void_p(module.__chandle__())
    return bool(native_runtime().lib.slw_object_is_module(handle))


def to_ffi_function(function: Callable[..., Any]) -> Any:
    """Return `function` as a tvm_ffi Function; a Python one will see our arrays and functions."""
    if isinstance(function, PackedFunc):
        return function._function
    ffi = tvm_ffi()
    if isinstance(function, ffi.Function):
        return function

    def callback(*args: Any) -> Any:
        try:
            result = function(*(from_ffi(arg) for arg in args))
        except Exception as error:
            _make_known(type(error))
            raise
        return _as_argument(result) if callable(result) else result

    return ffi.convert(callback)


def _make_known(cls: type[Exception]) -> None:
    """Let an exception of this class come out of a compiled caller as what it was."""
    core = tvm_ffi().core
    if cls not in core.ERROR_TYPE_TO_NAME:
        name = cls.__name__
        if name in core.ERROR_NAME_TO_TYPE:
            name = f"{cls.__module__}.{cls.__qualname__}"
        tvm_ffi().register_error(name, cls)


class _Carried:
    """A Python object on its way through tvm-ffi, which would make a function of a callable one."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _as_argument(value: Any) -> Any:
    if type(value) in EXTENSIONS:
        return value._tvm_handle
    if isinstance(value, NDArray | PackedFunc) or not callable(value):
        return value
    if getattr(value, "IS_PROGRAM", False):  # a graph that can be called, but is data
        return _Carried(value)
    if hasattr(value, "__tvm_ffi_object__") or hasattr(value, "__dlpack__"):
        return value
    return to_ffi_function(value)


_REPLACES: ContextVar[bool] = ContextVar("functions are replaced", default=False)


@overload
def register_func(
    func_name: str, f: None = None, override: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...


@overload
def register_func(
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | None = None,
    override: bool = False,
) -> Any: ...


def register_func(
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | None = None,
    override: bool = False,
) -> Any:
    """Register a function under a global name; usable as a decorator.

    ``@register_func("my.add")``, ``@register_func`` (its own name), or
    ``register_func("my.add", function)``.  Raises ValueError if the name is taken, unless
    `override` is set.
    """
    if callable(func_name):
        named = getattr(func_name, "__name__", None)
        if named is None:
            raise ArgumentTypeError(
                f"{func_name!r} has no name of its own; write register_func('my.name', function)"
            )
        return register_func(named, func_name, override)
    name = func_name
    if f is not None and not callable(f):
        raise ArgumentTypeError(f"register_func({name!r}): {f!r} is no function")
    if f is None:
        return lambda function: register_func(name, function, override)
    override = override or _REPLACES.get()
    if not override and tvm_ffi().get_global_func(name, allow_missing=True) is not None:
        raise ArgumentValueError(
            f"the global function {name!r} is registered already; pass override=True to replace it."
        )
    tvm_ffi().register_global_func(name, to_ffi_function(f), override=override)
    return f


@contextmanager
def replacing_functions() -> Iterator[None]:
    """Let `register_func` replace in the block: what runs again, as an initializer does."""
    token = _REPLACES.set(True)
    try:
        yield
    finally:
        _REPLACES.reset(token)


# Functions that the C runtime offers by name, here and to RPC sessions.
_OF_THE_RUNTIME = {
    "cache_flush_cpu_non_first_arg": "cache_flush",
    "runtime.config_threadpool": "config_threadpool",
}


def register_library_functions() -> None:
    """Register the functions of libraries that classic TVM links, unless somebody has."""
    from slipway.runtime.libraries.library_functions import register

    register(register_func)


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """Return the global function `name`.

    Raises ValueError if there is none, or returns None with `allow_missing`.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"get_global_func takes the name of a function, got {name!r}")
    found = tvm_ffi().get_global_func(name, allow_missing=True)
    if found is None and name.startswith(("tvm.contrib.", "tvm.default_", "runtime.CSource")):
        register_library_functions()
        found = tvm_ffi().get_global_func(name, allow_missing=True)
    if found is None and name in _OF_THE_RUNTIME:
        found = native_runtime().packed(_OF_THE_RUNTIME[name])
    if found is not None:
        return PackedFunc(found)
    if allow_missing:
        return None
    hint = did_you_mean(name, list_global_func_names())
    raise ArgumentValueError(
        f"there is no global function {name!r}.{hint} Register it with register_func({name!r})."
    )


def list_global_func_names() -> list[str]:
    """Return the names of all global functions."""
    return [str(name) for name in tvm_ffi().registry.list_global_func_names()]


def remove_global_func(name: str) -> None:
    """Take a global function out of the table."""
    tvm_ffi().registry.remove_global_func(name)


def convert(value: Any) -> Any:
    """Return `value` in the form that functions take: a Python function becomes a PackedFunc."""
    if callable(value) and not isinstance(value, PackedFunc | NDArray):
        return PackedFunc(to_ffi_function(value))
    return value


def convert_to_packed_func(function: Callable[..., Any]) -> PackedFunc:
    """Return a Python function as a PackedFunc."""
    return PackedFunc(to_ffi_function(function))
