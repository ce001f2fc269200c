"""`rewrite` replaces the matches of patterns; `partition` makes functions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slipway.errors import LoweringError
from slipway.ir.function import IRModule
from slipway.ir.structural import structural_equal
from slipway.relay.dataflow_pattern.groups import MatchedGroup, find_groups
from slipway.relay.dataflow_pattern.patterns import ENGINE, DFPattern
from slipway.relay.expr import Call, Expr, Function, Op, Tuple, TupleGetItem, TupleWrapper, Var
from slipway.relay.visit import post_order, rebuild, substitute

MAX_ROUNDS = 100


class DFPatternCallback:
    """What to put in the place of a match: set `pattern`, and override `callback`.

    `rewrite_once` leaves what the replacement itself matches; `require_type` is kept for scripts:
    expressions are typed here anyway.
    """

    pattern: DFPattern

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def rewrite(self, expr: Expr) -> Expr:
        """Return `expr` with every match replaced."""
        return rewrite(self, expr)

    def callback(self, pre: Expr, post: Expr, node_map: Any) -> Expr:
        """Return what replaces a match: `pre` as it was, `post` with what lies before replaced.

        ``node_map[pattern][0]`` is what a part of the pattern stands for.
        """
        raise NotImplementedError(f"{type(self).__name__} has no callback")


def rewrite(
    callbacks: DFPatternCallback | Iterable[DFPatternCallback],
    expr: Expr,
    mod: IRModule | None = None,
) -> Expr:
    """Return `expr` after the callbacks, again and again until none changes anything.

    Raises LoweringError after 100 rounds: two replacements that undo each other have no end.
    """
    given = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    again = given
    for _ in range(MAX_ROUNDS):
        before = expr
        for callback in again:
            expr = _replaced(callback, expr)
        again = [c for c in given if not c.rewrite_once]
        if expr is before or not again or structural_equal(before, expr):
            return expr
    raise LoweringError(
        f"rewriting does not end: after {MAX_ROUNDS} rounds {type(given[0]).__name__} still "
        "replaces something. Give it rewrite_once=True, or a pattern that its result does not match"
    )


def _replaced(callback: DFPatternCallback, expr: Expr) -> Expr:
    groups = {id(group.root): group for group in find_groups(callback.pattern, expr)}
    if not groups:
        return expr
    done: dict[int, Any] = {}

    def new(child: Any) -> Any:
        return done.get(id(child), child)

    for part in post_order(expr):
        fresh = rebuild(part, new)
        group = groups.get(id(part))
        if group is not None:
            done[id(part)] = fresh  # the pattern's own root stands for what it is now
            node_map = {p: [new(e) for e in found] for p, found in group.found.items()}
            made = callback.callback(part, fresh, node_map)
            if isinstance(made, TupleWrapper):
                made = made.astuple()
            if not isinstance(made, Expr):
                raise LoweringError(
                    f"the callback of {type(callback).__name__} returned "
                    f"{type(made).__name__}, not an expression"
                )
            fresh = made
        done[id(part)] = fresh
    return done[id(expr)]  # type: ignore[no-any-return]


def partition(
    pattern: DFPattern,
    expr: Expr,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[Expr], bool] = lambda x: True,
) -> Expr:
    """Return `expr` with each match of `pattern` that passes `check` a function, called there.

    The functions have `attrs`, and "PartitionedFromPattern" with the names of what they hold.
    """
    groups = {id(group.root): group for group in find_groups(pattern, expr, check)}
    if not groups:
        return expr
    done: dict[int, Any] = {}
    for part in post_order(expr):
        group = groups.get(id(part))
        if group is None:
            done[id(part)] = rebuild(part, lambda child: done[id(child)])
            continue
        function = as_function(group, dict(attrs or {}))
        done[id(part)] = Call(function, tuple(done[id(e)] for e in group.inputs))
    return done[id(expr)]  # type: ignore[no-any-return]


ENGINE.partition = partition


def as_function(group: MatchedGroup, attrs: dict[str, Any]) -> Function:
    """Return a match as a function of its inputs."""
    params = tuple(Var(f"FunctionVar_{i}", e.type) for i, e in enumerate(group.inputs))
    body = substitute(group.root, dict(zip(group.inputs, params, strict=True)))
    named = {**attrs, "PartitionedFromPattern": _description(body)}
    return Function(params, body, None, tuple(named.items()))


def _description(body: Expr) -> str:
    text = ""
    for part in post_order(body):
        match part:
            case Call(op=Op(name=name)):
                text += f"{name}_"
            case Call(op=Function()):
                text += "FunctionCall_"
            case Tuple():
                text += "Tuple_"
            case TupleGetItem(index=index):
                text += f"TupleGetItem{index}_"
            case _:
                pass
    return text
