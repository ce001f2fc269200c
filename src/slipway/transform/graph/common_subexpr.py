"""EliminateCommonSubexpr: equal calls on equal arguments become one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.ir.structural import leaf_key
from slipway.relay.expr import Call, Constant, Expr, Function, Op, TupleGetItem
from slipway.relay.visit import post_order, rebuild

# Constants up to this size are compared by value; larger ones by identity.
SMALL_CONSTANT_BYTES = 1024


def eliminate_common_subexpr(
    function: Function, skips: Callable[[Expr], Any] | None = None
) -> Function:
    """Return `function` with every repeated operator call shared, unless ``skips(call)``."""
    done: dict[int, Expr] = {}
    known: dict[Any, Expr] = {}
    for expr in post_order(function, into_functions=False):
        if isinstance(expr, Function) and expr is not function:
            done[id(expr)] = expr
            continue
        fresh: Any = rebuild(expr, lambda child: done[id(child)])
        skipped = skips is not None and isinstance(fresh, Call) and skips(fresh)
        key = None if skipped else _key(fresh)
        done[id(expr)] = fresh if key is None else known.setdefault(key, fresh)
    return done[id(function)]  # type: ignore[return-value]


def _key(expr: Expr) -> Any:
    match expr:
        case Constant() if expr.array.nbytes <= SMALL_CONSTANT_BYTES:
            return leaf_key(expr.array)
        case TupleGetItem():
            return "field", id(expr.tuple_value), expr.index
        case Call() if isinstance(expr.op, Op):
            attrs = expr.attrs
            fields = attrs and tuple(leaf_key(getattr(attrs, name)) for name in attrs.FIELDS)
            return expr.op.name, fields, tuple(id(a) for a in expr.args)
        case _:
            return None
