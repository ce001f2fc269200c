"""Ends of a loop between which conditions on its variable hold, and what guards a padding.

``i - 1 >= 0 and i < w + 1`` in a loop over ``range(n)`` hold from max(0, 1) to min(n, w + 1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.transform.loop.decide import conjuncts

INDEX_TYPES = ("int32", "int64")
Decisions = dict[int, tuple[Any, bool]]  # {id(condition): (condition, it holds)}


class Ends(NamedTuple):
    """The first step and the one after the last; `known` are the conditions they make true."""

    first: Linear
    last: Linear
    known: Decisions


def difference_of(an: Analyzer, condition: Any) -> Linear | None:
    """Return the left side of a comparison minus the right one; None where that is unknown."""
    if not isinstance(condition, (E.LT, E.LE, E.GT, E.GE)):
        return None
    if condition.a.dtype not in INDEX_TYPES:
        return None
    difference = an.recombine(an.linear(condition.a).minus(an.linear(condition.b)))
    return difference if all(a.pure for a in difference.terms) else None


def ends_of(
    an: Analyzer, atom: Atom, span: tuple[Linear, Linear], conditions: Iterable[Any],
    inner: Collection[Atom],
) -> Ends:  # fmt: skip
    """Return the part of a loop, from `span` to its end, in which conditions on `atom` hold.

    Those in which variables of `inner` loops have a say are left out.
    """
    first, last = span
    dtype = first.dtype
    known: Decisions = {}
    for condition in conditions:
        difference = difference_of(an, condition)
        if difference is None or atom not in difference.terms:
            continue
        step = difference.terms[atom]
        others = difference.minus(Linear({atom: step}, 0, dtype))
        if any(atom in a.variables or not a.variables.isdisjoint(inner) for a in others.terms):
            continue
        if isinstance(condition, (E.LT, E.LE)):
            step, others = -step, others.scaled(-1)
        if isinstance(condition, (E.LT, E.GT)):
            others = others.shifted(-1)
        # Now the condition is step * var + others >= 0.
        if step > 0:
            first = an.maximum(first, an.floordiv(others.scaled(-1).shifted(step - 1), step))
        else:
            last = an.minimum(last, an.floordiv(others, -step).shifted(1))
        known[id(condition)] = (condition, True)
    return Ends(first, last, known)


def guards_of(body: S.Stmt) -> list[Any]:
    """Return the conditions under which what is stored reads a tensor, as with padding.

    Where a condition fails another number stands there, or an element of the same tensor; what is
    joined of several tensors is no padding.
    """
    found: list[Any] = []
    for node in walk(body.value) if isinstance(body, S.BufferStore) else ():
        if isinstance(node, E.Call) and node.op == "if_then_else":
            condition, inside, outside = node.args
            if _tensors(outside) <= _tensors(inside):
                found += conjuncts(condition)
    return found


def _tensors(value: E.PrimExpr) -> set[Any]:
    return {n.buffer for n in walk(value) if isinstance(n, E.BufferLoad)}
