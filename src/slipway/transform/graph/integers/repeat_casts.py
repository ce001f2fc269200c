"""RepeatCasts: each reader of a small integer widens it itself.

    w = cast(x, int32); (sum(w), multiply(w, g))
        ->  (sum(cast(x, int32)), multiply(cast(x, int32), g))

A widened tensor that two kernels read lies in memory with four or eight bytes an element, where
the one that it comes from has one or two; to widen it is one instruction, often part of the load.
"""

from __future__ import annotations

from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import OpPattern, call_definition, is_call_of
from slipway.relay.visit import rewrite

_SMALL = ("int8", "uint8", "int16")


def repeat_casts(function: Function) -> Function:
    """Return `function` with widened integers, less their zero points, of each reader's own."""
    return rewrite(function, _repeat)  # type: ignore[no-any-return]


def _repeat(expr: Expr) -> Expr | None:
    """Return a reader with copies of what it reads widened; products read tensors of memory."""
    definition = call_definition(expr)
    if definition is None or definition.pattern > OpPattern.COMM_REDUCE or _is_widened(expr):
        return None
    assert isinstance(expr, Call)
    copies = {id(arg): _copied(arg) for arg in expr.args if _is_widened(arg)}
    if not copies:
        return None
    args = tuple(copies.get(id(arg), arg) for arg in expr.args)
    return Call(expr.op, args, expr.attrs, expr.span)


def _is_widened(expr: Expr) -> bool:
    """Return whether an expression is a small integer cast to a larger type, perhaps shifted."""
    while is_call_of(expr, "subtract", "add", "left_shift"):
        if not (isinstance(expr.args[1], Constant) and expr.args[1].array.size == 1):
            return False
        expr = expr.args[0]
    while is_call_of(expr, "cast") and expr.attrs.dtype in ("int32", "int64"):
        expr = expr.args[0]
        if expr.tensor_type.dtype in _SMALL:
            return True
    return False


def _copied(expr: Expr) -> Expr:
    if not _is_widened(expr):
        return expr
    assert isinstance(expr, Call)
    return Call(expr.op, (_copied(expr.args[0]), *expr.args[1:]), expr.attrs, expr.span)
