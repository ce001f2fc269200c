"""SelectBranches: an If without effects becomes both of its branches and a choice between them.

``if (%c) { exp(%x) } else { %y }  ->  where(%c, exp(%x), %y)``

Operators have no effects and none ends the process (an integer division by zero has a result), so
the branch that is not taken costs time only: less than a choice where both are small and simple.
Others stay for OutlineBranches where the target has branches.  A branch that calls a function
stays, because the function may be the one it stands in, which ends only where it is not taken.
"""

from __future__ import annotations

import math
from math import prod

from slipway.ir.visit import post_order_by
from slipway.relay import op_registry
from slipway.relay.dims import usual
from slipway.relay.expr import Call, Expr, Function, If, Op, Tuple, TupleGetItem
from slipway.relay.op_registry import OpPattern
from slipway.relay.types import TupleType, flatten
from slipway.relay.visit import evaluated_before, post_order, rewrite

SMALL = 4096  # elements that both branches compute together


def select_branches(function: Function, all_sizes: bool = True) -> Function:
    """Return `function` with a `where` in place of every If whose branches call operators only.

    Without `all_sizes` only where the branches are small, and fuse with what is around them.
    """
    outside = post_order_by([function.body], evaluated_before)
    known = {id(e) for e in outside}

    def rule(expr: Expr) -> Expr | None:
        if not isinstance(expr, If):
            return None
        elements = 0.0
        for branch in (expr.true_branch, expr.false_branch):
            for inner in post_order(branch):
                if not isinstance(inner, Call):
                    continue
                if not isinstance(inner.op, Op):
                    return None
                if id(inner) not in known:
                    elements += _elements(inner)
        if elements > SMALL and not all_sizes:
            return None
        return _chosen(expr.cond, expr.true_branch, expr.false_branch)

    made: Function = rewrite(function, rule)
    return made


def _elements(call: Call) -> float:
    """Return how many elements an operator computes; no limit for one that does not fuse."""
    if op_registry.get(call.op.name).pattern > OpPattern.INJECTIVE:
        return math.inf
    return sum(usual(prod(t.shape)) for t in flatten(call.checked_type))


def _chosen(condition: Expr, one: Expr, other: Expr) -> Expr:
    if one is other:
        return one
    if isinstance(one.type, TupleType):
        count = len(one.type.fields)
        return Tuple(
            tuple(_chosen(condition, _field(one, i), _field(other, i)) for i in range(count))
        )
    made: Expr = op_registry.make("where")(condition, one, other)
    return made


def _field(value: Expr, index: int) -> Expr:
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)
