"""What the body of a loop computes anew at each step and what it need not.

    closed      an expression over outer values becomes a body, with these as its `others`
    sink        constants among the others go into the body, where graph passes see them
    lift        what depends on no state and no sequence leaves the body: computed once

Between `sink` and `lift` the body is a graph like any other: its weights are folded and packed as
constants, and then come into the loop as what they have become.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from slipway.ir import expr as E
from slipway.relay.analysis.told_sizes import sizes_of_attributes, spoken_of
from slipway.relay.dims import SymbolDim
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.control import bodies_of, is_branch, while_loop
from slipway.relay.types import TensorType
from slipway.relay.visit import children, post_order, rebuild, rewrite, substitute
from slipway.transform.graph.fuse_ops import is_inlined_constant


def closed(
    params: Sequence[Var], result: Expr, constants: bool = False, told: Sequence[E.Var] = ()
) -> tuple[Function, Tuple]:
    """Return the body over `params` and more, and what the others stand for outside.

    The others are the largest parts of `result` that none of `params` has a say in: those that
    depend on a variable, and with `constants` the others too, scalars inside excepted.  What speaks
    of a size that is `told` inside, or brought by a value there, stays inside.
    """
    own = {id(p) for p in params}
    order = post_order(result)
    moving = _moving(order, own, told)
    outside: set[int] = set()  # depends on variables that are not ours
    for expr in order:
        below = children(expr)
        if id(expr) not in moving and (
            isinstance(expr, Var) or any(id(c) in outside for c in below)
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


def _moving(order: Sequence[Expr], own: set[int], told: Sequence[E.Var]) -> set[int]:
    """Return the ids of what is not the same in each iteration."""
    moving, inside = set(own), set(told)
    while True:
        for expr in order:
            is_of_inside = inside and inside.intersection(_speaks_of(expr))
            if is_of_inside or any(id(c) in moving for c in children(expr)):
                moving.add(id(expr))
        brought = {
            v
            for e in order
            if is_call_of(e, "sized") and id(e) in moving and isinstance(e.attrs.size, SymbolDim)
            for v in e.attrs.size.variables
        }
        if inside >= brought:
            return moving
        inside |= brought


def _speaks_of(expr: Expr) -> list[E.Var]:
    """Return the sizes in the type of an expression, and those that decide where it reads."""
    found = spoken_of(expr)
    if bodies_of(expr) or is_call_of(expr, "sized"):
        return found  # their own sizes are theirs
    return [*found, *(v for size in sizes_of_attributes(expr) for v in size.variables)]


def sink(call: Call) -> Call:
    """Return the loop or branch with its constant others inside its bodies."""
    others = _others(call)
    constant = {i for i, value in enumerate(others) if isinstance(value, Constant)}
    if not constant:
        return call
    bodies = {}
    for name, body in bodies_of(call).items():
        fixed = len(body.params) - len(others)
        own = body.params[fixed:]
        known = {own[i]: others[i] for i in constant}
        rest = (p for i, p in enumerate(own) if i not in constant)
        bodies[name] = Function((*body.params[:fixed], *rest), substitute(body.body, known))
    return _with_others(call, bodies, [v for i, v in enumerate(others) if i not in constant])


def lift(call: Call) -> Call:
    """Return the loop with all that is the same at each step computed outside.

    Of a branch only what is constant: the rest is for the case that it is taken.
    """
    others = _others(call)
    kept = others if is_branch(call) else ()
    size = getattr(call.attrs, "iteration", None)
    parts = []
    for body in bodies_of(call).values():
        fixed = len(body.params) - len(others)
        params = body.params[: fixed + len(kept)]
        told = () if size is None else size.variables
        inner, shared = closed(params, body.body, constants=True, told=told)
        outer = substitute(shared, dict(zip(body.params[fixed:], others, strict=True)))
        parts.append((params, inner, list(outer.fields)))
    bodies = {}
    for name, (params, inner, _) in zip(bodies_of(call), parts, strict=True):
        own = inner.params[len(params) :]
        fresh = [
            var
            for _, part, values in parts
            for var in (own if part is inner else [Var("unused", v.checked_type) for v in values])
        ]
        bodies[name] = Function((*params, *fresh), inner.body)
    return _with_others(call, bodies, [*kept, *(v for _, _, values in parts for v in values)])


def optimize_loops(
    function: Function,
    optimized: Callable[[Function], Function],
    fused: Callable[[Function], Function],
) -> Function:
    """Return `function` with the bodies in it `optimized` as graphs, and made of kernels."""

    def rule(expr: Call) -> Expr | None:
        if not bodies_of(expr):
            return None
        call = lift(_with_bodies(sink(expr), optimized))
        return _with_bodies(call, fused)

    return rewrite(function, rule)  # type: ignore[no-any-return]


def _with_bodies(call: Call, change: Callable[[Function], Function]) -> Call:
    bodies = {name: change(body) for name, body in bodies_of(call).items()}
    return Call(call.op, call.args, call.attrs.replace(**bodies), call.span)


def _with_others(call: Call, bodies: Mapping[str, Function], others: Sequence[Expr]) -> Call:
    args = (*call.args[:-1], Tuple(tuple(others)))
    return Call(call.op, args, call.attrs.replace(**bodies), call.span)


def _others(call: Call) -> tuple[Expr, ...]:
    """The others of a loop or branch; passes keep a Tuple, as they rebuild one from its fields."""
    others = call.args[-1]
    assert isinstance(others, Tuple)
    return others.fields


def looped(
    states: Sequence[Var],
    going: Expr,
    new: Sequence[Expr],
    first: Sequence[Expr],
    iteration: SymbolDim | None = None,
) -> list[Expr]:
    """Return what `first` becomes: the states are `new` of themselves while `going` holds.

    `iteration` is a size that `new` speaks of: the first state.  A state that stays what it is is
    none: exporters carry weights through a loop so, which are constants to its body.
    """
    changing = [i for i, (s, n) in enumerate(zip(states, new, strict=True)) if n is not s]
    if changing and len(changing) < len(states):
        same = {s: f for s, n, f in zip(states, new, first, strict=True) if n is s}
        made = substitute(Tuple((going, *(new[i] for i in changing))), same).fields
        kept = [states[i] for i in changing]
        last = looped(kept, made[0], made[1:], [first[i] for i in changing], iteration)
        return [dict(zip(changing, last, strict=True)).get(i, f) for i, f in enumerate(first)]
    told = () if iteration is None else iteration.variables
    whole, others = closed(states, Tuple((going, *new)), told=told)
    assert isinstance(whole.body, Tuple)
    renamed = {p: Var(p.name, p.checked_type) for p in whole.params}
    condition = Function(tuple(renamed.values()), substitute(whole.body.fields[0], renamed))
    step = Function(whole.params, Tuple(whole.body.fields[1:]))
    return list(while_loop(condition, step, first, others.fields, iteration))
