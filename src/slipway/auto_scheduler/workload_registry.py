"""Computations by name: functions that return their tensors, and the keys of logs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from slipway import te
from slipway.errors import ArgumentTypeError, TuningError, did_you_mean
from slipway.ir.expr import IntImm

Workload = Callable[..., Sequence[te.Tensor]]
WORKLOAD_FUNC_REGISTRY: dict[str, Workload | Sequence[te.Tensor]] = {}


def register_workload(
    func_name: str | Workload, f: Workload | None = None, override: bool = False
) -> Any:
    """Register a function that returns a computation's tensors, inputs first; a decorator too.

    Raises TuningError for a name that another function has, unless `override`.
    """
    name = "" if f is None and callable(func_name) else str(func_name)

    def register(function: Workload) -> Workload:
        known = name or name_of_function(function)
        if known in WORKLOAD_FUNC_REGISTRY and not override:
            raise TuningError(
                f"{known!r} has been registered already: register_workload(name, override=True) "
                "puts another function in its place"
            )
        WORKLOAD_FUNC_REGISTRY[known] = function
        return function

    if f is None and not isinstance(func_name, str):
        return register(func_name)
    return register(f) if f is not None else register


def make_workload_key(func: Workload | str, args: object) -> str:
    """Return the key of a registered function with arguments, as logs have it.

    Raises TuningError for an unknown function, and for arguments that are no JSON.
    """
    name = func if isinstance(func, str) else _name_of(func)
    if name not in WORKLOAD_FUNC_REGISTRY:
        raise TuningError(
            f"there is no workload {name!r}; @auto_scheduler.register_workload makes one."
            f"{did_you_mean(name, WORKLOAD_FUNC_REGISTRY)}"
        )
    given = list(args) if isinstance(args, list | tuple) else [args]
    try:
        return json.dumps([name, *given], default=_plain)
    except (TypeError, ValueError) as error:
        raise TuningError(
            f"the arguments {args!r} of the workload {name!r} are not numbers, words, tensors and "
            f"lists of them ({error})"
        ) from None


def workload_key_to_tensors(workload_key: str) -> list[te.Tensor]:
    """Return the tensors that a key stands for.  Raises TuningError for an unknown one."""
    known = WORKLOAD_FUNC_REGISTRY.get(workload_key)
    args: list[Any] = []
    if known is None:
        try:
            name, *args = json.loads(workload_key)
        except (ValueError, TypeError):
            raise TuningError(f"this is no key of a workload: {workload_key[:80]}") from None
        known = WORKLOAD_FUNC_REGISTRY.get(name) if isinstance(name, str) else None
        if known is None:
            raise TuningError(
                f"the workload {name!r} is not registered: import what registers it first"
            )
    tensors = known(*args) if callable(known) else known
    return list(tensors)


def is_registered(workload_key: str) -> bool:
    """Return whether the computation of a key is known."""
    try:
        name = json.loads(workload_key)[0]
    except (ValueError, TypeError, LookupError):
        name = None
    known = workload_key in WORKLOAD_FUNC_REGISTRY
    return known or (isinstance(name, str) and name in WORKLOAD_FUNC_REGISTRY)


def register_workload_tensors(
    workload_key: str, tensors: Sequence[te.Tensor], override: bool = True
) -> str:
    """Register tensors under a key and return it."""
    if workload_key in WORKLOAD_FUNC_REGISTRY and not override:
        raise TuningError(f"the workload {workload_key!r} has been registered already")
    WORKLOAD_FUNC_REGISTRY[workload_key] = list(tensors)
    return workload_key


def serialize_workload_registry_entry(workload_key: str) -> tuple[str, Any]:
    """Return the name of a key's workload and what is registered, for another process.

    Raises TuningError for an unknown key.
    """
    if not is_registered(workload_key):
        raise TuningError(f"there is no workload of the key {workload_key[:80]}")
    name = workload_key
    if workload_key not in WORKLOAD_FUNC_REGISTRY:
        name = json.loads(workload_key)[0]
    return name, WORKLOAD_FUNC_REGISTRY[name]


def deserialize_workload_registry_entry(data: tuple[str, Any]) -> None:
    """Register what `serialize_workload_registry_entry` returned, unless the name is known."""
    name, value = data
    WORKLOAD_FUNC_REGISTRY.setdefault(name, value)


def hash_of(text: str) -> str:
    """Return the short name of a computation, which its text says."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _name_of(function: Workload) -> str:
    for name, known in WORKLOAD_FUNC_REGISTRY.items():
        if known is function:
            return name
    return name_of_function(function)


def name_of_function(function: Any) -> str:
    """Return what a function is called: where it is defined, too, if that is another function."""
    inner = getattr(function, "func", function)  # of functools.partial
    return str(getattr(inner, "__qualname__", repr(function)))


def _plain(value: Any) -> Any:
    if isinstance(value, te.Tensor):
        return ["TENSOR", [int(n) for n in value.shape], value.dtype]  # type: ignore[call-overload]
    if isinstance(value, IntImm):
        return int(value)
    raise ArgumentTypeError(f"a {type(value).__name__}")
