"""DeadCodeElimination: Lets whose variable is not used disappear.

A dataflow graph holds no dead calls by construction: what nothing reads is not reachable.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from slipway.relay.expr import Expr, Function, Let, Var
from slipway.relay.visit import children, post_order, rebuild, rewrite


def eliminate_dead_code(function: Function, inline_once: bool = False) -> Function:
    """Return `function` without unused Lets.

    With `inline_once` a value that is used in one place goes there, unless that is inside a
    function: it may be called often.
    """
    live = _used(function)

    def rule(expr: Expr) -> Expr | None:
        return expr.body if isinstance(expr, Let) and id(expr.var) not in live else None

    result: Function = rewrite(function, rule)
    return _inline_once(result) if inline_once else result


def _used(function: Function) -> set[int]:
    """Return the ids of the variables that the result needs, by itself or by what it needs."""
    used: set[int] = set()
    seen: set[int] = set()
    values: dict[int, Expr] = {}
    waiting: list[Expr] = [function]
    while waiting:
        expr = waiting.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, Var):
            used.add(id(expr))
            if id(expr) in values:
                waiting.append(values[id(expr)])
        elif isinstance(expr, Let):
            values[id(expr.var)] = expr.value
            waiting += [expr.body, expr.value] if id(expr.var) in used else [expr.body]
        else:
            waiting += children(expr)
    return used


def _inline_once(function: Function) -> Function:
    """Return `function` with the values of Lets that are used once in the place of their names."""
    order = post_order(function, into_functions=False)
    uses: Counter[int] = Counter()
    for expr in order:
        if isinstance(expr, Function) and expr is not function:
            uses.update(2 * [id(e) for e in post_order(expr) if isinstance(e, Var)])
        else:
            read = (expr.value, expr.body) if isinstance(expr, Let) else children(expr)
            uses.update(id(e) for e in read if isinstance(e, Var))
    once = {id(e.var): e.value for e in order if isinstance(e, Let) and uses[id(e.var)] == 1}
    done: dict[int, Expr] = {}
    for expr in order:
        fresh: Any = expr
        if id(expr) in once:  # the name of a Let, whose value comes before it
            fresh = done[id(once[id(expr)])]
        elif isinstance(expr, Let) and id(expr.var) in once:
            fresh = done[id(expr.body)]
        elif not isinstance(expr, Function) or expr is function:
            fresh = rebuild(expr, lambda child: done[id(child)])
        done[id(expr)] = fresh
    return done[id(function)]  # type: ignore[return-value]
