"""Calls in the reference interpreter: the meaning of each intrinsic, and functions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir.hardware import HARDWARE
from slipway.ir.interpreter.tiles import tile_call
from slipway.ir.interpreter.values import numpy_dtype, round_bfloat16
from slipway.ir.intrin import INTRINSICS

if TYPE_CHECKING:
    from slipway.ir.interpreter.interpret import Machine

Closure = Callable[[], Any]


class ReturnError(Exception):
    """A call of "ret" ends the function."""

    def __init__(self, value: int | float) -> None:
        super().__init__()
        self.value = value


def compile_call(m: Machine, node: E.Call) -> Closure:
    """Return the closure that runs the call `node`."""
    op = node.op
    if op == "if_then_else":
        return _if_then_else(m, node)
    if op == "ret":
        value = m.compile(node.args[0])

        def leave() -> None:
            raise ReturnError(plain(np.asarray(value())))

        return leave
    if op in ("call_packed", "call_extern", "call_pure_extern"):
        return lambda: m.call_by_name(node)
    if op in ("prefetch", "storage_sync"):
        return lambda: 0
    if op in ("address_of", "access_ptr", "tensor_view"):
        return lambda: m.pointer(node)
    if op == "hardware":
        return _hardware(m, node)
    if op.startswith("tile_"):
        return tile_call(m, node)
    args = [m.compile(a) for a in node.args]
    kind, code = numpy_dtype(dtypes.scalar_of(node.dtype)), dtypes.code_of(node.dtype)
    if op == "reinterpret":
        source = numpy_dtype(dtypes.scalar_of(node.args[0].dtype))
        shape = () if node.lanes == 1 else (node.lanes,)
        return lambda: plain(np.atleast_1d(np.asarray(args[0](), source)).view(kind).reshape(shape))
    entry = INTRINSICS.get(op)
    if entry is None or entry.reference is None:
        function = m.packed.get(op)
        if function is None:
            raise LoweringError(f"the interpreter has no meaning for the call {op}")
        return lambda: function(*(a() for a in args))
    reference = entry.reference
    kinds = [numpy_dtype(dtypes.scalar_of(a.dtype)) for a in node.args]

    def run_call() -> Any:
        given = (np.asarray(a(), dtype=k)[()] for a, k in zip(args, kinds, strict=True))
        result = np.asarray(reference(*given))
        return round_bfloat16(result) if code == "bfloat" else plain(result.astype(kind))

    return run_call


def _hardware(m: Machine, node: E.Call) -> Closure:
    entry = HARDWARE[node.args[0].value]  # type: ignore[attr-defined]
    operands = [m.compile(x) for x in node.args[1:]]

    def run_instruction() -> Any:
        result = entry.reference(*(x() for x in operands))
        return result if node.lanes > 1 else plain(result[0])

    return run_instruction


def plain(value: Any) -> Any:
    """Return a zero-dimensional array as the machine keeps scalars."""
    if value.ndim:
        return value
    return int(value) if value.dtype.kind in "iu" else value[()]


def _if_then_else(m: Machine, node: E.Call) -> Closure:
    condition, yes, no = (m.compile(a) for a in node.args)

    def run_choice() -> Any:
        test = condition()
        if np.ndim(test) == 0:
            return yes() if test else no()
        return np.where(test, yes(), no())

    return run_choice
