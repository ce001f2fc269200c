"""OutlineBranches: an If becomes the operator branch, over functions of all that it reads.

    if (%c) { nn.dense(%x, %w) } else { %y }
        ->  branch(%c, (%x, %y), then_body=fn(x, y) {(nn.dense(x, %w),)}, else_body=fn(x, y) {(y,)})

What is computed for the branch alone goes into its function, and is computed where the branch is
taken; what something outside reads, the condition or both branches, is computed before.  So is a
size that values decide (relay.sized), as no size is set while a branch runs: in a run that does not
take the branch it has its lower end.  Small branches of simple operators are chosen between by
SelectBranches, which comes first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slipway.ir.visit import post_order_by
from slipway.relay import op_registry
from slipway.relay.dims import SymbolDim
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from slipway.relay.types import TensorType, TupleType, Type
from slipway.relay.visit import children, evaluated_before, post_order, rebuild


def outline_branches(function: Function) -> Function:
    """Return `function` without an If, but where a branch calls a function."""
    if not any(isinstance(e, If) for e in post_order(function, into_functions=False)):
        return function
    body = _outlined(_sizes_by_choice(function.body))
    return Function(function.params, body, None, function.attrs)


def _outlined(root: Expr) -> Expr:
    """Return an expression with each If that is evaluated with it as a branch, and those inside."""
    known = {id(e) for e in post_order_by([root], _evaluated)}
    read: dict[int, list[Expr]] = {}

    def before(expr: Expr) -> tuple[Expr, ...]:
        if not isinstance(expr, If) or _calls_functions(expr):
            return _evaluated(expr)
        # What one branch reads and something after the If, too, comes before the If.
        read[id(expr)] = _read(expr, known)
        return (expr.cond, *read[id(expr)])

    done: dict[int, Expr] = {}
    for expr in post_order_by([root], before):
        if id(expr) in read:
            assert isinstance(expr, If)
            done[id(expr)] = _branch(expr, read[id(expr)], done)
        else:
            done[id(expr)] = rebuild(expr, lambda child: done.get(id(child), child))
    return done[id(root)]


def _evaluated(expr: Expr) -> tuple[Expr, ...]:
    """Return what is evaluated before an expression: before an If also what both branches need."""
    if not isinstance(expr, If):
        return evaluated_before(expr)
    one, other = (
        post_order_by([b], evaluated_before) for b in (expr.true_branch, expr.false_branch)
    )
    needed = {id(e) for e in other}
    both = (e for e in one if id(e) in needed and not isinstance(e, Op))
    return (expr.cond, *both, *_telling(expr.true_branch), *_telling(expr.false_branch))


def _telling(body: Expr) -> list[Call]:
    """Return what tells a size in a branch, at any depth."""
    return [
        e for e in post_order(body) if isinstance(e, Call) and op_registry.is_call_of(e, "sized")
    ]


def _sizes_by_choice(root: Expr) -> Expr:
    """Return an expression in which sizes of branches that are not taken have their lower ends."""
    eager = {id(e) for e in post_order_by([root], evaluated_before)}
    counts: dict[int, tuple[Call, Expr]] = {}  # by what tells the size
    for choice in post_order(root):  # those inside of a branch before it
        if not isinstance(choice, If):
            continue
        sides = [_telling(body) for body in (choice.true_branch, choice.false_branch)]
        shared = {id(e) for e in sides[0]} & {id(e) for e in sides[1]}
        for side, is_taken in zip(sides, (True, False), strict=True):
            for call in side:
                if id(call) in eager or id(call) in shared:
                    continue
                _, count = counts.get(id(call), (call, call.args[1]))
                counts[id(call)] = call, _count(call, count, choice.cond, is_taken)
    if not counts:
        return root
    done: dict[int, Expr] = {}
    for expr in post_order_by([root, *(count for _, count in counts.values())], children):
        made = rebuild(expr, lambda child: done.get(id(child), child))
        if id(expr) in counts:
            assert isinstance(made, Call)
            count = counts[id(expr)][1]
            made = Call(made.op, (made.args[0], done.get(id(count), count)), made.attrs)
        done[id(expr)] = made
    return done[id(root)]


def _count(call: Call, count: Expr, condition: Expr, is_taken: bool) -> Expr:
    """Return a count where the condition holds (or does not), elsewhere the least allowed."""
    type_ = call.args[1].checked_type
    assert isinstance(type_, TensorType)
    size = call.attrs.size
    minimum = size.low if isinstance(size, SymbolDim) else size
    low = Constant(np.full(type_.shape, minimum, type_.dtype))
    where = op_registry.make("where")
    made: Expr = where(condition, count, low) if is_taken else where(condition, low, count)
    return made


def _calls_functions(choice: If) -> bool:
    order = post_order_by([choice.true_branch, choice.false_branch], children)
    return any(isinstance(e, Call) and not isinstance(e.op, Op) for e in order)


def _read(choice: If, known: set[int]) -> list[Expr]:
    """Return the tensors outside of its branches that an If reads; `known` is what is evaluated."""
    leaves = [_leaves(body, known) for body in (choice.true_branch, choice.false_branch)]
    return list({id(e): e for found in leaves for e in found}.values())


def _branch(choice: If, outer: list[Expr], done: dict[int, Expr]) -> Expr:
    """Return the branch in place of an If that reads `outer`."""
    bodies = []
    for body in (choice.true_branch, choice.false_branch):
        params = {id(e): Var(f"x{i}", e.checked_type) for i, e in enumerate(outer)}
        inner = _outlined(_replaced(body, params))
        bodies.append(Function(tuple(params.values()), Tuple(tuple(_flat(inner)))))
    others = [done[id(e)] for e in outer]
    made = op_registry.make("branch")(done[id(choice.cond)], *bodies, others)
    results = iter(made)
    return _nested(choice.checked_type, lambda: next(results))


def _leaves(body: Expr, known: set[int]) -> list[Expr]:
    """Return the tensors outside of a branch that it reads."""

    def is_leaf(expr: Expr) -> bool:
        return isinstance(expr.type, TensorType) and (
            id(expr) in known
            or isinstance(expr, Var)
            or (isinstance(expr, TupleGetItem) and _is_outside(expr.tuple_value, known))
        )

    def below(expr: Expr) -> tuple[Expr, ...]:
        return () if is_leaf(expr) and not isinstance(expr, Constant) else children(expr)

    return [
        e for e in post_order_by([body], below) if is_leaf(e) and not isinstance(e, (Constant, Op))
    ]


def _is_outside(value: Expr, known: set[int]) -> bool:
    """Return whether a tuple is computed outside, by more than being put together."""
    return not isinstance(value, Tuple) and (id(value) in known or isinstance(value, Var))


def _replaced(body: Expr, table: dict[int, Var]) -> Expr:
    done: dict[int, Expr] = {}
    for expr in post_order_by([body], lambda e: () if id(e) in table else children(e)):
        known = table.get(id(expr))
        done[id(expr)] = known if known is not None else rebuild(expr, lambda c: done[id(c)])
    return done[id(body)]


def _flat(value: Expr) -> list[Expr]:
    """Return the tensors of a result, one after the other."""
    type_ = value.checked_type
    if not isinstance(type_, TupleType):
        return [value]
    fields = (
        value.fields
        if isinstance(value, Tuple)
        else [TupleGetItem(value, i) for i in range(len(type_.fields))]
    )
    return [leaf for field in fields for leaf in _flat(field)]


def _nested(type_: Type, take: Callable[[], Expr]) -> Expr:
    if isinstance(type_, TupleType):
        return Tuple(tuple(_nested(field, take) for field in type_.fields))
    return take()
