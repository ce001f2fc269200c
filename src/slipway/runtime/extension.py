"""Classes of a script's own that stand for a tensor: ``tvm.register_extension`` (classic)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from slipway.errors import ArgumentTypeError
from slipway.runtime.packed_func import EXTENSIONS

C = TypeVar("C", bound=type)


def register_extension(cls: C, fcreate: Callable[..., Any] | None = None) -> C:
    """Let functions take values of `cls`: its `_tvm_handle` is the tensor they are (a decorator).

    A class that has ``__dlpack__`` needs none of this.  `fcreate` makes values of what functions
    return in TVM; here they return arrays, which the script wraps itself.
    """
    del fcreate
    if not isinstance(cls, type) or not hasattr(cls, "_tvm_handle"):
        raise ArgumentTypeError(
            f"register_extension takes a class with a property `_tvm_handle`, which gives the "
            f"array that a value stands for, not {cls!r}"
        )
    EXTENSIONS.add(cls)
    return cls
