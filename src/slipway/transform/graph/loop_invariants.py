"""What the body of a scan computes anew at each step and what it need not.

    closed      an expression over outer values becomes a body, with these as its `others`
    sink        constants among the others go into the body, where graph passes see them
    lift        what depends on no state and no sequence leaves the body: computed once

Between `sink` and `lift` the body is a graph like any other: its weights are folded and packed as
constants, and then come into the loop as what they have become.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, Var
from slipway.relay.ops.recurrence import LoopAttrs, body_of
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order, rebuild, rewrite, substitute
from slipway.transform.graph.fuse_ops import is_inlined_constant


def closed(params: Sequence[Var], result: Expr, constants: bool = False) -> tuple[Function, Tuple]:
    """Return the body over `params` and more, and what the others stand for outside.

    The others are the largest parts of `result` that none of `params` has a say in: those that
    depend on a variable, and with `constants` the others too, scalars inside excepted.
    """
    own = {id(p) for p in params}
    moving = set(own)
    outside: set[int] = set()  # depends on variables that are not ours
    order = post_order(result)
    for expr in order:
        below = children(expr)
        if any(id(c) in moving for c in below):
            moving.add(id(expr))
        elif (isinstance(expr, Var) and id(expr) not in moving) or any(
            id(c) in outside for c in below
        ):
            outside.add(id(expr))
    others: dict[int, tuple[Var, Expr]] = {}
    done: dict[int, Expr] = {}

    def inside(expr: Expr, is_result: bool = False) -> Expr:
        """What stands for `expr` where something of the body reads it."""
        known = others.get(id(expr))
        if known is not None:
            return known[0]
        lifted = id(expr) in outside or (
            constants and (is_result or not is_inlined_constant(expr)) and id(expr) not in moving
        )
        if lifted and isinstance(expr.type, TensorType):
            var = Var(f"other{len(others)}", expr.type)
            others[id(expr)] = var, expr
            return var
        return done[id(expr)]

    for expr in order:
        if id(expr) in own or isinstance(expr, Op):
            done[id(expr)] = expr
        elif id(expr) in moving or not isinstance(expr.type, TensorType):
            done[id(expr)] = rebuild(expr, partial(inside, is_result=expr is result))
        else:
            done[id(expr)] = expr
    body = inside(result, True)
    found = list(others.values())
    return Function((*params, *(v for v, _ in found)), body), Tuple(tuple(e for _, e in found))


def sink(call: Call) -> Call:
    """Return the scan with its constant others inside its body."""
    attrs: LoopAttrs = call.attrs
    states, sequences, others = call.args
    fixed = attrs.states + attrs.sequences
    params = attrs.body.params
    pairs = list(zip(params[fixed:], _fields(others), strict=True))
    known = {p: value for p, value in pairs if isinstance(value, Constant)}
    if not known:
        return call
    rest = [(p, value) for p, value in pairs if p not in known]
    body = Function((*params[:fixed], *(p for p, _ in rest)), substitute(attrs.body.body, known))
    shared = Tuple(tuple(value for _, value in rest))
    return Call(call.op, (states, sequences, shared), attrs.replace(body=body), call.span)


def lift(call: Call) -> Call:
    """Return the scan with all that is the same at each step computed outside."""
    attrs: LoopAttrs = call.attrs
    states, sequences, others = call.args
    fixed = attrs.states + attrs.sequences
    params = attrs.body.params
    body, shared = closed(params[:fixed], attrs.body.body, constants=True)
    outer = substitute(shared, dict(zip(params[fixed:], _fields(others), strict=True)))
    return Call(call.op, (states, sequences, outer), attrs.replace(body=body), call.span)


def optimize_loops(
    function: Function,
    optimized: Callable[[Function], Function],
    fused: Callable[[Function], Function],
) -> Function:
    """Return `function` with the body of each scan `optimized` as a graph, and made of kernels."""

    def rule(expr: Any) -> Expr | None:
        if body_of(expr) is None:
            return None
        call = sink(expr)
        call = lift(_with_body(call, optimized(call.attrs.body)))
        return _with_body(call, fused(call.attrs.body))

    return rewrite(function, rule)  # type: ignore[no-any-return]


def _with_body(call: Call, body: Function) -> Call:
    return Call(call.op, call.args, call.attrs.replace(body=body), call.span)


def _fields(expr: Expr) -> Sequence[Expr]:
    """The others of a scan; passes keep them a Tuple, as they rebuild one from its fields."""
    assert isinstance(expr, Tuple)
    return expr.fields
