"""Walks over relay graphs with an explicit stack: any depth, shared nodes visited once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from slipway.ir.visit import post_order_by
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)


def children(expr: Any) -> tuple[Expr, ...]:
    """Return the expressions directly inside `expr`, in order of evaluation.

    A called Function is a child of its Call; operators and module functions are not.
    """
    kind = type(expr)  # most are of these three, and most passes walk over all of them
    if kind is Call:
        op = expr.op
        return expr.args if type(op) is Op or not isinstance(op, Expr) else (op, *expr.args)
    if kind is Var or kind is Constant:
        return ()
    match expr:
        case Call():
            return (expr.op, *expr.args) if _is_local(expr.op) else expr.args
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple_value,)
        case Function():
            return (*expr.params, expr.body)
        case Let():
            return (expr.value, expr.var, expr.body)
        case If():
            return (expr.cond, expr.true_branch, expr.false_branch)
        case Var() | Constant() | Op():
            return ()
        case _:
            raise TypeError(f"{type(expr).__name__} is not a relay expression")


def evaluated_before(expr: Expr) -> tuple[Expr, ...]:
    """Return the children whose values `expr` needs: no body of a function or Let, no branch."""
    match expr:
        case Function() | Let():
            return ()
        case If():
            return (expr.cond,)
        case Call() if isinstance(expr.op, Function):
            return (*expr.args, expr.op)
        case _:
            return children(expr)


def _is_local(op: Any) -> bool:
    return isinstance(op, Expr) and not isinstance(op, Op)


def post_order(root: Expr, into_functions: bool = True) -> list[Expr]:
    """Return every expression under `root` once, children before parents, `root` last.

    Without `into_functions`, a Function other than `root` is listed, but not entered.
    """
    if into_functions:
        return post_order_by([root], children)

    def below(expr: Expr) -> tuple[Expr, ...]:
        return () if isinstance(expr, Function) and expr is not root else children(expr)

    return post_order_by([root], below)


def rebuild(expr: Any, new: Callable[[Expr], Any]) -> Any:
    """Return `expr` with each child c replaced by ``new(c)``; the same object when none changed."""
    match expr:
        case Call():
            op = new(expr.op) if _is_local(expr.op) else expr.op
            args = tuple(new(a) for a in expr.args)
            if op is expr.op and all(a is b for a, b in zip(args, expr.args, strict=True)):
                return expr
            return Call(op, args, expr.attrs, expr.span)
        case Tuple():
            fields = tuple(new(f) for f in expr.fields)
            same = all(a is b for a, b in zip(fields, expr.fields, strict=True))
            return expr if same else Tuple(fields)
        case TupleGetItem():
            value = new(expr.tuple_value)
            if value is expr.tuple_value:
                return expr
            if isinstance(value, Tuple):
                return value.fields[expr.index]
            return TupleGetItem(value, expr.index)
        case Function():
            params, body = tuple(new(p) for p in expr.params), new(expr.body)
            same = all(a is b for a, b in zip(params, expr.params, strict=True))
            if same and body is expr.body:
                return expr
            return Function(params, body, None, expr.attrs)
        case Let():
            return expr.replace(var=new(expr.var), value=new(expr.value), body=new(expr.body))
        case If():
            return expr.replace(
                cond=new(expr.cond),
                true_branch=new(expr.true_branch),
                false_branch=new(expr.false_branch),
            )
        case Var() | Constant() | Op():
            return expr
        case _:
            assert_never(expr)


def rewrite(root: Expr, rule: Callable[[Any], Expr | None], into_functions: bool = False) -> Any:
    """Apply `rule` to every expression after its children; None from the rule keeps it.

    Shared expressions are rewritten once.  Functions called inside are left as they are, unless
    `into_functions`; `root` itself is always entered.
    """
    order = post_order(root, into_functions)
    changed: dict[int, Expr] = {}  # by the ids of what lies in `order`

    def new(child: Expr) -> Expr:
        return changed.get(id(child), child)

    for expr in order:
        inside = into_functions or expr is root or type(expr) is not Function
        fresh = rebuild(expr, new) if changed and inside else expr
        result = rule(fresh)
        if result is not None:
            fresh = result
        if fresh is not expr:
            changed[id(expr)] = fresh
    return new(root)


def substitute(root: Expr, mapping: Mapping[Any, Expr]) -> Any:
    """Replace expressions (usually Vars) by others."""
    if not mapping:
        return root
    table = {id(old): new for old, new in mapping.items()}
    done: dict[int, Expr] = {}
    for expr in post_order(root):
        known = table.get(id(expr))
        done[id(expr)] = (
            known if known is not None else rebuild(expr, lambda child: done[id(child)])
        )
    return done[id(root)]


def free_vars(root: Expr) -> list[Var]:
    """Return the variables that `root` uses and does not bind, in order of first use."""
    bound: set[int] = set()
    order = post_order(root)
    for expr in order:
        if isinstance(expr, Function):
            bound.update(id(p) for p in expr.params)
        elif isinstance(expr, Let):
            bound.add(id(expr.var))
    return [e for e in order if isinstance(e, Var) and id(e) not in bound]


def use_counts(root: Expr) -> dict[int, int]:
    """Return, by id, how often each expression under `root` is used as a child."""
    counts: dict[int, int] = {id(root): 1}
    for expr in post_order(root, into_functions=False):
        if isinstance(expr, Function) and expr is not root:
            continue
        for child in children(expr):
            counts[id(child)] = counts.get(id(child), 0) + 1
    return counts
