"""Functions that differ by target: ``generic_func`` and its relatives of classic TVM.

::

    @generic_func
    def tile(): return 8

    @tile.register(["arm_cpu"])
    def _(): return 4

    with Target("llvm -device=arm_cpu"):
        tile()  # 4
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from slipway.errors import ArgumentValueError, TargetError
from slipway.target.target import Target

Keys: TypeAlias = str | Sequence[str]
_NATIVE: dict[str, GenericFunc] = {}


class GenericFunc:
    """A function that calls the one registered for a key of the current target."""

    def __init__(self, name: str, default: Callable[..., Any] | None = None) -> None:
        self.name = name
        self._default = default
        self._of: dict[str, Callable[..., Any]] = {}

    def set_default(self, func: Callable[..., Any], allow_override: bool = False) -> None:
        """Set what is called where no key of the target has a function."""
        if self._default is not None and not allow_override:
            raise ArgumentValueError(f"generic function {self.name!r} has a default already")
        self._default = func

    def register(
        self,
        func: Callable[..., Any] | Keys,
        key_list: Keys = (),
        allow_override: bool = False,
        override: bool = False,
    ) -> Any:
        """Register a function for keys; given keys alone, return a decorator."""
        if not callable(func):
            names = func
            return lambda later: self.register(later, names, allow_override or override)
        keys = [key_list] if isinstance(key_list, str) else list(key_list)
        for key in keys:
            if key in self._of and not (allow_override or override):
                raise ArgumentValueError(
                    f"generic function {self.name!r} has a function for {key!r} already; pass "
                    "override=True"
                )
            self._of[key] = func
        return func

    def get_packed_func(self) -> Callable[..., Any]:
        """Return the function for the current target."""
        target = Target.current(allow_none=True)
        for key in target.keys if target is not None else ():
            if key in self._of:
                return self._of[key]
        if self._default is None:
            known = ", ".join(self._of) or "none"
            raise TargetError(
                f"generic function {self.name!r} has no default, and nothing for {target}; there "
                f"are functions for the keys {known}"
            )
        return self._default

    def __call__(self, *args: Any) -> Any:
        """Call the function for the current target."""
        return self.get_packed_func()(*args)


def get_native_generic_func(name: str) -> GenericFunc:
    """Return the generic function of a name, made on first use."""
    return _NATIVE.setdefault(name, GenericFunc(name))


def override_native_generic_func(func_name: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: the function becomes the default of the generic function of a name."""

    def decorate(default: Callable[..., Any]) -> Any:
        generic = get_native_generic_func(func_name)
        generic.set_default(default, allow_override=True)
        return _callable(default, generic)

    return decorate


def generic_func(fdefault: Callable[..., Any]) -> Any:
    """Decorate a function: `register` gives it others for keys of targets."""
    return _callable(fdefault, GenericFunc(fdefault.__name__, fdefault))


def _callable(default: Callable[..., Any], generic: GenericFunc) -> Any:
    @functools.wraps(default)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        return generic.get_packed_func()(*args, **kwargs)

    dispatch.register = functools.partial(_register, generic)  # type: ignore[attr-defined]
    dispatch.get_packed_func = generic.get_packed_func  # type: ignore[attr-defined]
    dispatch.fdefault = default  # type: ignore[attr-defined]
    dispatch.generic_func_node = generic  # type: ignore[attr-defined]
    return dispatch


def _register(
    generic: GenericFunc, key: Keys, func: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    if func is None:
        return lambda later: generic.register(later, key, override)
    return generic.register(func, key, override)
