"""The places of a graph where a pattern matches, such that each can be cut out.

Groups are looked for from the results towards the inputs.  What lies inside of one is in no other
group, and used by nothing outside; where that does not hold, the match is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slipway.ir.visit import post_order_by
from slipway.relay.dataflow_pattern.matching import find, inputs_of
from slipway.relay.dataflow_pattern.patterns import (
    CallPattern,
    ConstantPattern,
    DFPattern,
    DominatorPattern,
    FunctionPattern,
    TuplePattern,
    is_leaf,
)
from slipway.relay.expr import Call, Constant, Expr, Function, Op
from slipway.relay.visit import children


@dataclass(frozen=True)
class MatchedGroup:
    """One match: its result, what it reads, and what lies between, the result included."""

    root: Any
    inputs: tuple[Any, ...]
    inside: frozenset[int]
    found: dict[DFPattern, list[Any]]


def find_groups(
    pattern: DFPattern, expr: Expr, check: Callable[[Expr], bool] = lambda x: True
) -> list[MatchedGroup]:
    """Return the groups of `pattern` in `expr` whose result passes `check`."""
    order = post_order_by([expr], _outside_of_groups)
    users: dict[int, list[int]] = {}
    for user in order:
        for child in children(user):
            users.setdefault(id(child), []).append(id(user))
    taken: set[int] = set()
    groups = []
    for root in reversed(order):
        if id(root) in taken or isinstance(root, (Op,)):
            continue
        found = find(pattern, root)
        if found is None:
            continue
        group = _group(pattern, root, found)
        exposed = any(
            inner != id(root) and any(user not in group.inside for user in users.get(inner, ()))
            for inner in group.inside
        )
        if exposed or group.inside & taken or not check(root):
            continue
        taken |= group.inside
        groups.append(group)
    return groups


def _outside_of_groups(expr: Expr) -> tuple[Expr, ...]:
    """Return the children; what an earlier pattern has cut out is not looked into."""
    if isinstance(expr, Function) and expr.attr("PartitionedFromPattern") is not None:
        return ()
    return children(expr)


def _group(pattern: DFPattern, root: Any, found: dict[DFPattern, list[Any]]) -> MatchedGroup:
    between = _on_paths(pattern, found)
    leaves: dict[int, Any] = {}
    embedded: set[int] = set()
    for part in _in_order(pattern):
        for expr in found.get(part, ()):
            if isinstance(part, ConstantPattern):
                embedded.add(id(expr))
            elif is_leaf(part) and not isinstance(expr, (Op, Function)) and id(expr) not in between:
                leaves.setdefault(id(expr), expr)
            elif _takes_any(part):
                for read in inputs_of(expr):
                    if not isinstance(read, Constant):
                        leaves.setdefault(id(read), read)
    for expr in between.values():
        for read in inputs_of(expr):
            known = {id(e) for exprs in found.values() for e in exprs}
            if id(read) not in between and id(read) not in known:
                leaves.setdefault(id(read), read)
    for number in embedded:
        leaves.pop(number, None)
    leaves.pop(id(root), None)
    inside, reached, waiting = set(), set(), [root]
    while waiting:
        expr = waiting.pop()
        if id(expr) in leaves:
            reached.add(id(expr))
            continue
        if id(expr) in inside or isinstance(expr, (Constant, Op)):
            continue
        inside.add(id(expr))
        if not isinstance(expr, Function):
            waiting += [expr.op, *expr.args] if isinstance(expr, Call) else children(expr)
    inputs = tuple(expr for number, expr in leaves.items() if number in reached)
    return MatchedGroup(root, inputs, frozenset(inside), found)


def _takes_any(part: DFPattern) -> bool:
    """Return whether a pattern leaves open what its expression reads."""
    return (isinstance(part, CallPattern) and part.args is None) or (
        isinstance(part, TuplePattern) and part.fields is None
    )


def _on_paths(pattern: DFPattern, found: dict[DFPattern, list[Any]]) -> dict[int, Any]:
    """Return what the paths of dominators matched, with both of their ends."""
    return {
        id(expr): expr
        for part in _in_order(pattern)
        if isinstance(part, DominatorPattern)
        for end in part.parts()
        for expr in found.get(end, ())
    }


def _in_order(pattern: DFPattern) -> list[DFPattern]:
    """Return all parts of a pattern, inner ones first, each once."""
    done: dict[int, DFPattern] = {}

    def walk(part: DFPattern) -> None:
        if id(part) in done:
            return
        if not isinstance(part, FunctionPattern):  # what its body reads is its own
            for inner in part.parts():
                walk(inner)
        done[id(part)] = part

    walk(pattern)
    return list(done.values())
