"""DeadCodeElimination: Lets whose variable is not used disappear.

A dataflow graph holds no dead calls by construction: what nothing reads is not reachable.
"""

from __future__ import annotations

from slipway.relay.expr import Expr, Function, Let, Var
from slipway.relay.visit import post_order, rewrite


def eliminate_dead_code(function: Function) -> Function:
    """Return `function` without unused Lets."""

    def rule(expr: Expr) -> Expr | None:
        return expr.body if isinstance(expr, Let) and not _uses(expr) else None

    return rewrite(function, rule)  # type: ignore[no-any-return]


def _uses(let: Let) -> bool:
    return any(e is let.var for e in post_order(let.body) if isinstance(e, Var))
