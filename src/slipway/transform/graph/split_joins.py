"""SplitJoins: a join of more than some hundred tensors becomes a join of joins.

    concatenate((a0, ..., a999))  ->  concatenate((concatenate((a0, ..., a499)), concatenate(...)))

The kernel of a join has code for each part, and code generators take more than twice the time for
twice the code: 0.7 s for 400 parts, 1.7 s for 800, 12 s for 1,600.  The further copy is cheaper.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function, Tuple
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import flatten
from slipway.relay.visit import rewrite

MOST = 512  # parts of one join
WIDE = 64  # parts of a join that is fused, where each part of a larger one is copied by itself


def split_joins(function: Function, most: int = MOST) -> Function:
    """Return `function` with `most` parts, two or more, in a join at most."""
    return rewrite(function, lambda expr: _rule(expr, most))  # type: ignore[no-any-return]


def parts_of_join(expr: Expr) -> int:
    """Return how many tensors an expression joins; 0 for one that is no join."""
    if not is_call_of(expr, "concatenate", "stack"):
        return 0
    assert isinstance(expr, Call)
    (parts,) = expr.args
    return len(flatten(parts.checked_type))


def _rule(expr: Expr, most: int) -> Expr | None:
    if not is_call_of(expr, "concatenate", "stack"):
        return None
    assert isinstance(expr, Call)
    (parts,) = expr.args
    if not isinstance(parts, Tuple) or len(parts.fields) <= most:
        return None
    fields = parts.fields
    groups = -(-len(fields) // most)
    cuts = [len(fields) * i // groups for i in range(groups + 1)]
    with op_registry.span(expr.span):
        joined: list[Any] = [
            Call(expr.op, (Tuple(fields[low:high]),), expr.attrs, expr.span)
            for low, high in pairwise(cuts)
        ]
        attrs: Any = expr.attrs
        axis = attrs.axis % expr.tensor_type.rank
        whole: Expr = op_registry.make("concatenate")(Tuple(tuple(joined)), axis)
    return _rule(whole, most) or whole
