"""OwnOutputs: every result of the model is made by a kernel, in memory of its own.

``fn (%x) { (%x, meta[0]) }  ->  fn (%x) { (copy(%x), copy(meta[0])) }``

A result that is an input, a constant, or another result (under a second name or another shape) is
copied, so that an executor may hand out its buffers without the caller's writes being seen
elsewhere.  An empty result has no memory to own.
"""

from __future__ import annotations

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function, Tuple, TupleGetItem
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType, TupleType
from slipway.transform.graph.simplify_expr import RESHAPES


def own_outputs(function: Function) -> Function:
    """Return `function` with copies where a result has no kernel of its own."""
    body = _own(function.body, set())
    if body is function.body:
        return function
    return Function(function.params, body, None, function.attrs)


def _own(result: Expr, seen: set[tuple[int, ...]]) -> Expr:
    if isinstance(result, Tuple):
        fields = tuple(_own(field, seen) for field in result.fields)
        same = all(a is b for a, b in zip(fields, result.fields, strict=True))
        return result if same else Tuple(fields)
    if isinstance(result.type, TupleType):
        parts = tuple(TupleGetItem(result, i) for i in range(len(result.type.fields)))
        owned = tuple(_own(part, seen) for part in parts)
        same = all(a is b for a, b in zip(owned, parts, strict=True))
        return result if same else Tuple(owned)
    if isinstance(result.type, TensorType) and result.type.is_empty:
        return result
    source, path = _memory(result)
    fresh = isinstance(source, Call) and (id(source), *path) not in seen
    seen.add((id(source), *path))
    if fresh:
        return result
    made: Expr = op_registry.make("copy")(result)
    return made


def _memory(expr: Expr) -> tuple[Expr, tuple[int, ...]]:
    """Return the call, input or constant whose memory `expr` is, and which of its results."""
    path: tuple[int, ...] = ()
    while True:
        if isinstance(expr, Call) and is_call_of(expr, *RESHAPES):
            expr = expr.args[0]  # a reshape is the same memory
        elif isinstance(expr, TupleGetItem):
            path = (expr.index, *path)
            expr = expr.tuple_value
        elif isinstance(expr, Tuple):
            expr, path = expr.fields[path[0]], path[1:]
        else:
            return expr, path
