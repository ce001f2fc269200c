"""SelectBranches: an If without effects becomes both of its branches and a choice between them.

``if (%c) { exp(%x) } else { %y }  ->  where(%c, exp(%x), %y)``

Operators have no effects and none ends the process (an integer division by zero has a result), so
the branch that is not taken costs time only.  A branch that calls a function stays, because the
function may be the one it stands in, which ends only where the branch is not taken.
"""

from __future__ import annotations

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function, If, Op, Tuple, TupleGetItem
from slipway.relay.types import TupleType
from slipway.relay.visit import post_order, rewrite


def select_branches(function: Function) -> Function:
    """Return `function` with a `where` in place of every If whose branches call operators only."""

    def rule(expr: Expr) -> Expr | None:
        if not isinstance(expr, If):
            return None
        for branch in (expr.true_branch, expr.false_branch):
            for inner in post_order(branch):
                if isinstance(inner, Call) and not isinstance(inner.op, Op):
                    return None
        return _chosen(expr.cond, expr.true_branch, expr.false_branch)

    made: Function = rewrite(function, rule)
    return made


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
