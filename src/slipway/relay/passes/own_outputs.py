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
from slipway.relay.passes.simplify_expr import RESHAPES
from slipway.relay.types import TensorType


def own_outputs(function: Function) -> Function:
    """Return `function` with copies where a result has no kernel of its own."""
    body = function.body
    seen: set[int] = set()
    if isinstance(body, Tuple):
        new: Expr = Tuple(tuple(_own(field, seen) for field in body.fields))
        changed = any(a is not b for a, b in zip(new.fields, body.fields, strict=True))  # type: ignore[attr-defined]
    else:
        new = _own(body, seen)
        changed = new is not body
    return Function(function.params, new, None, function.attrs) if changed else function


def _own(result: Expr, seen: set[int]) -> Expr:
    empty = isinstance(result.type, TensorType) and result.type.size == 0
    if empty or isinstance(result, Tuple):
        return result
    source: Expr = result
    while isinstance(source, Call) and is_call_of(source, *RESHAPES):
        source = source.args[0]  # a reshape is the same memory
    fresh = isinstance(source, (Call, TupleGetItem)) and id(source) not in seen
    seen.add(id(source))
    if fresh:
        return result
    made: Expr = op_registry.face("copy")(result)
    return made
