"""Watching the values of an expression while a kernel runs: ``tir.trace``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.errors import ArgumentTypeError
from slipway.ir.calls import call_packed
from slipway.ir.ops import as_expr
from slipway.runtime.libraries.library_functions import TRACED, register
from slipway.runtime.packed_func import register_func


def trace(args: Sequence[Any], trace_action: str = "tvm.default_trace_action") -> Any:
    """Return an expression that hands `args` to the packed function `trace_action`.

    Its value is what the function returns, or the last of `args` where that is None.  The function
    is looked up in the process that runs the kernel, which needs Python there.
    """
    if not isinstance(args, (list, tuple)) or not args:
        raise ArgumentTypeError(f"trace takes a list of at least one expression, got {args!r}")
    register(register_func)
    values = [as_expr(value) for value in args]
    return call_packed(TRACED, trace_action, *values, dtype=values[-1].dtype)
