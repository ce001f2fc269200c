"""``relay.loops``: loops by Python functions of their variables, as classic scripts write them.

loop = while_loop(lambda i, s: relay.less(i, ten), [i, s], lambda i, s: [i + one, s + i])
last = loop(relay.const(0), relay.const(0))  # a tuple of i and s
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slipway.errors import TypeInferenceError
from slipway.relay.expr import Expr, Function, Tuple, Var
from slipway.relay.op_registry import as_expr
from slipway.relay.ops.build import call
from slipway.relay.visit import free_vars, substitute


def while_loop(
    cond: Callable[..., Any], loop_vars: Sequence[Any], loop_bodies: Callable[..., Any]
) -> Function:
    """Return the function of the variables' first values that gives the last ones as a tuple.

    `cond` and `loop_bodies` are functions of the variables; expressions around them may be used in
    both.  Raises TypeInferenceError where a variable changes its type between iterations: a
    tensor that grows has no place in a loop that is compiled.
    """
    given = [as_expr(v) for v in loop_vars]
    states = [
        Var(v.name if isinstance(v, Var) else f"arg{i}", v.checked_type)
        for i, v in enumerate(given)
    ]
    condition = as_expr(cond(*states))
    bodies = loop_bodies(*states)
    fields = [as_expr(b) for b in (bodies if isinstance(bodies, list | tuple) else [bodies])]
    for state, field in zip(states, fields, strict=True):
        if field.checked_type != state.type:
            raise TypeInferenceError(
                f"while_loop: the variable {state.name!r} is {state.type}, and after one "
                f"iteration {field.checked_type}: a variable of a loop keeps its shape and dtype"
            )
    body = Tuple(tuple(fields))
    others = [v for v in free_vars(Tuple((condition, body))) if v not in states]

    def closed(expr: Expr) -> Function:
        """Return a function of the variables and of what lies around, with names of its own."""
        fresh = {v: Var(v.name, v.type) for v in (*states, *others)}
        return Function(tuple(fresh.values()), substitute(expr, fresh))

    made = call("while_loop", closed(condition), closed(body), Tuple(tuple(states)),
                Tuple(tuple(others)))  # fmt: skip
    return Function(tuple(states), made.astuple())
