"""MoveActivations: bytes between quantize and dequantize get the sign that instructions take.

    dequantize(quantize(x, s, z, int8), s, z)
        ->  dequantize(quantize(x, s, z + 128, uint8), s, z + 128)

or the other way.  The real numbers are the same, and so is every integer that is computed from
them, less its zero point.  Instructions that multiply unsigned data by signed weights (x86's
vpdpbusd), or signed by signed (ARM's sdot), then read what the layer before has stored as it is.
"""

from __future__ import annotations

from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.visit import children, post_order, rebuild

OFFSET = 128


def move_activations(function: Function, dtype: str) -> Function:
    """Return `function` with its activations of bytes stored as `dtype`, int8 or uint8.

    Those that anything but dequantize reads stay as they are.
    """
    exprs = post_order(function, into_functions=False)
    readers: dict[int, list[Expr]] = {}
    for expr in exprs:
        for child in children(expr):
            readers.setdefault(id(child), []).append(expr)
    chosen = {id(e) for e in exprs if _is_between(e, readers.get(id(e), []), dtype)}
    if not chosen:
        return function
    done: dict[int, Expr] = {}
    for expr in exprs:
        fresh = rebuild(expr, lambda child: done[id(child)])
        if id(expr) in chosen:
            fresh = _moved(fresh, dtype, out_dtype=dtype)
        elif is_call_of(expr, "qnn.dequantize") and id(expr.args[0]) in chosen:
            fresh = _moved(fresh, dtype)
        done[id(expr)] = fresh
    return done[id(function)]  # type: ignore[return-value]


def _is_between(expr: Any, readers: list[Expr], dtype: str) -> bool:
    """Return whether `expr` quantises to bytes of the other sign that only dequantize reads."""
    return (
        is_call_of(expr, "qnn.quantize")
        and expr.attrs.out_dtype == {"int8": "uint8", "uint8": "int8"}[dtype]
        and not isinstance(expr.args[0], Constant)
        and isinstance(expr.args[2], Constant)
        and expr.args[2].array.ndim == 0
        and bool(readers)
        and all(_reads_as_stored(r, expr) for r in readers)
    )


def _reads_as_stored(reader: Any, stored: Any) -> bool:
    return (
        is_call_of(reader, "qnn.dequantize")
        and reader.args[0] is stored
        and isinstance(reader.args[2], Constant)
        and reader.args[2].array.ndim == 0
        and reader.args[1] is not stored
    )


def _moved(call: Any, dtype: str, **changes: Any) -> Expr:
    """Return quantize or dequantize with its zero point moved to where `dtype` has it."""
    data, scale, zero = call.args
    moved = const(int(zero.array) + (OFFSET if dtype == "uint8" else -OFFSET), "int32")
    attrs = call.attrs.replace(**changes) if changes else call.attrs
    made: Call = op_registry.get(call.op.name)(data, scale, moved, attrs=attrs, span=call.span)
    return made
