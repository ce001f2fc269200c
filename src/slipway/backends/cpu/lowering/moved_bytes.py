"""MovedBytes: bytes are stored with the sign that the products that read them want.

    v = cast(clip(y, a, b), int8);  cast(cast(v, int16) + 128, uint8)
        ->  cast(clip(y + 128, a + 128, b + 128), uint8)

where all other readers widen the byte, which then is 128 less; and a move that several products
want is made once.  Two constants that are added one after the other are one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.visit import children, post_order, rebuild

OFFSET = 128
OTHER = {"int8": "uint8", "uint8": "int8"}
MOVE = {"int8": OFFSET, "uint8": -OFFSET}  # what is added to bytes of this sign


def moved_bytes(function: Function) -> Function:
    """Return `function` with the same integers, its bytes moved where they are made."""
    exprs = post_order(function, into_functions=False)
    readers: dict[int, list[Expr]] = {}
    for expr in exprs:
        for child in children(expr):
            readers.setdefault(id(child), []).append(expr)
    moves = {id(e): _source(e.args[0].args[0].args[0]) for e in exprs if _is_move(e)}
    if not moves:
        return function
    sources = {id(v): v for v in moves.values()}
    chosen = {i for i, v in sources.items() if _is_stored_moved(v, readers, moves)}
    done: dict[int, Expr] = {}
    once: dict[int, Expr] = {}  # the move of each value
    for expr in exprs:
        if id(expr) in moves and id(moves[id(expr)]) in once:
            fresh = _in_shape_of(expr, once[id(moves[id(expr)])])
        elif id(expr) in chosen:
            fresh = once[id(expr)] = _stored(expr, done[id(expr.args[0].args[0])])
        elif is_call_of(expr, "cast") and id(_source(expr.args[0])) in chosen:
            fresh = _widened(expr, done[id(expr.args[0])])
        else:
            fresh = _one_constant(rebuild(expr, lambda child: done[id(child)]))
            if id(expr) in moves:
                once[id(moves[id(expr)])] = fresh
        done[id(expr)] = fresh
    return done[id(function)]  # type: ignore[return-value]


def _is_move(expr: Any) -> bool:
    """Return whether bytes of one sign become those of the other, 128 apart."""
    if not is_call_of(expr, "cast") or not is_call_of(expr.args[0], "add"):
        return False
    wide, amount = expr.args[0].args
    if not is_call_of(wide, "cast") or not isinstance(amount, Constant):
        return False
    given = wide.args[0].tensor_type.dtype
    return (
        wide.attrs.dtype == "int16"
        and expr.attrs.dtype == OTHER.get(given)
        and amount.array.ndim == 0
        and int(amount.array) == MOVE[given]
        and not (expr.attrs.saturate or wide.attrs.saturate)
    )


def _source(value: Any) -> Any:
    """Return what is reshaped."""
    while is_call_of(value, "reshape"):
        value = value.args[0]
    return value


def _in_shape_of(expr: Any, value: Any) -> Expr:
    shape = expr.tensor_type.shape
    if value.tensor_type.shape == shape:
        return value  # type: ignore[no-any-return]
    with op_registry.span(expr.span):
        return op_registry.make("reshape")(value, shape)  # type: ignore[no-any-return]


def _is_stored_moved(value: Any, readers: dict[int, list[Expr]], moves: dict[int, Any]) -> bool:
    """Return whether a clipped integer may be stored with the other sign: all readers widen it."""
    if not is_call_of(value, "cast") or not is_call_of(value.args[0], "clip"):
        return False
    clip, bounds = value.args[0], np.iinfo(value.tensor_type.dtype)
    fits = bounds.min <= clip.attrs.a_min and clip.attrs.a_max <= bounds.max
    return (
        fits
        and clip.tensor_type.dtype == "int32"
        and all(_only_moves(r, readers, moves) for r in readers[id(value)])
    )


def _only_moves(reader: Any, readers: dict[int, list[Expr]], moves: dict[int, Any]) -> bool:
    if is_call_of(reader, "reshape"):
        further = readers.get(id(reader), [])
        return bool(further) and all(_only_moves(r, readers, moves) for r in further)
    if not is_call_of(reader, "cast"):
        return False
    if reader.attrs.dtype == "int32":
        return True
    sums = readers.get(id(reader), [])
    return bool(sums) and all(id(m) in moves for s in sums for m in readers.get(id(s), [s]))


def _stored(value: Any, number: Expr) -> Expr:
    clip, move = value.args[0], MOVE[value.tensor_type.dtype]
    make = op_registry.make
    with op_registry.span(value.span):
        moved = _one_constant(make("add")(number, const(move, "int32")))
        clipped = make("clip")(moved, clip.attrs.a_min + move, clip.attrs.a_max + move)
        return make("cast")(clipped, OTHER[value.tensor_type.dtype])  # type: ignore[no-any-return]


def _widened(cast: Any, stored: Any) -> Expr:
    make, move = op_registry.make, MOVE[cast.args[0].tensor_type.dtype]
    with op_registry.span(cast.span):
        wide = make("cast")(stored, cast.attrs.dtype)
        return make("subtract")(wide, const(move, cast.attrs.dtype))  # type: ignore[no-any-return]


def _one_constant(expr: Any) -> Expr:
    """Return a sum with one constant for two, in int32; a sum with 0 is what it is of."""
    if not is_call_of(expr, "add", "subtract") or expr.tensor_type.dtype != "int32":
        return expr  # type: ignore[no-any-return]
    inner, outer = expr.args
    if not isinstance(outer, Constant):
        return expr  # type: ignore[no-any-return]
    total = _added(expr)
    while is_call_of(inner, "add", "subtract") and isinstance(inner.args[1], Constant):
        total = total + _added(inner)
        inner = inner.args[0]
    if inner is expr.args[0]:
        return expr  # type: ignore[no-any-return]
    total = total.astype(np.int32).astype(np.int64)  # sums wrap
    if not total.any() and inner.type == expr.type:
        return inner  # type: ignore[no-any-return]
    return op_registry.get("add")(inner, const(total.astype(np.int32)), span=expr.span)  # type: ignore[no-any-return]


def _added(call: Any) -> Any:
    value = call.args[1].array.astype(np.int64)
    return -value if is_call_of(call, "subtract") else value
