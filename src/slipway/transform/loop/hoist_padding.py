"""Hoist padding: what a sum takes outside of an image is asked before the loops that keep it.

before::

    for x in range(3):
        for c in range(16):
            S[0] = S[0] + if_then_else(y + x >= 1, A[...], 5) * W[...]

after::

    for x in range(3):
        if y + x >= 1:
            for c in range(16):
                S[0] = S[0] + A[...] * W[...]
        else:
            for c in range(16):
                S[0] = S[0] + 5 * W[...]

A window that hangs over the edge of an image asks for each of its rows and columns then, and not
for each channel, of which a core without vectors does little else.  Where integers are multiplied
by 0 outside there is no second loop.
"""

from __future__ import annotations

from functools import reduce
from itertools import islice
from typing import Any, TypeGuard

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.structural import structural_equal
from slipway.ir.visit import map_children, walk
from slipway.transform.loop.decide import conjuncts

_MOST_NODES = 400  # of a store that is written twice


def hoist_padding(func: PrimFunc) -> PrimFunc:
    """Return `func` with the conditions of sums outside of the serial loops that keep them."""
    if not any(_is_choice(n) for n in walk(func.body)):
        return func
    body = _visit(func.body)
    return func if body is func.body else func.replace(body=body)


def _is_choice(node: Any) -> TypeGuard[E.Call]:
    return isinstance(node, E.Call) and node.op == "if_then_else"


def _visit(node: Any) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    made = _hoisted(node) if isinstance(node, S.For) else None
    return map_children(node, _visit) if made is None else made


def _hoisted(loop: S.For) -> S.Stmt | None:
    """Return a nest around one sum with a condition that it keeps before it; None without any."""
    inner: set[int] = set()
    stmt: S.Stmt = loop
    while isinstance(stmt, S.For):
        if stmt.kind not in (S.ForKind.SERIAL, S.ForKind.UNROLLED):
            return None
        inner.add(id(stmt.loop_var))
        stmt = stmt.body
    added = _added(stmt) if isinstance(stmt, S.BufferStore) else None
    nodes = [] if added is None else list(islice(walk(added), _MOST_NODES + 1))
    if added is None or len(nodes) > _MOST_NODES:
        return None
    inner |= {id(node.var) for node in nodes if isinstance(node, E.Let)}
    for choice in [node for node in nodes if _is_choice(node)]:
        condition, inside, outside = choice.args
        parts = conjuncts(condition)
        kept = [c for c in parts if not any(_changes(p, inner) for p in walk(c))]
        if not kept:
            continue
        rest = [c for c in parts if not any(c is other for other in kept)]
        left = ops.if_then_else(reduce(E.And, rest), inside, outside) if rest else inside
        nothing = ops.as_int(outside) == 0 and any(choice is c for c in _factors(added))
        return S.IfThenElse(
            reduce(E.And, kept),
            _visit(_with(loop, choice, left)),
            None if nothing else _visit(_with(loop, choice, outside)),
        )
    return None


def _with(node: Any, old: E.PrimExpr, new: E.PrimExpr) -> Any:
    """Return a statement with one of its expressions replaced."""
    if node is old:
        return new
    return map_children(node, lambda child: _with(child, old, new))


def _added(store: S.BufferStore) -> E.PrimExpr | None:
    """Return what a store adds to the element that it writes; None where it does something else."""
    value = store.value
    if not isinstance(value, E.Add):
        return None
    for sum_, added in ((value.a, value.b), (value.b, value.a)):
        if (
            isinstance(sum_, E.BufferLoad)
            and sum_.buffer is store.buffer
            and len(sum_.indices) == len(store.indices)
            and all(map(structural_equal, sum_.indices, store.indices))
        ):
            return added
    return None


def _factors(value: E.PrimExpr) -> list[E.PrimExpr]:
    """Return what must not be 0 where an integer is not: none of floats, of which some are NaN."""
    if not dtypes.is_integral(value.dtype):
        return []
    if isinstance(value, E.Cast):
        return _factors(value.value)
    if isinstance(value, E.Mul):
        return [*_factors(value.a), *_factors(value.b)]
    return [value]


def _changes(part: Any, inner: set[int]) -> bool:
    """Return whether a part of a condition may differ from step to step."""
    if isinstance(part, E.Var):
        return id(part) in inner
    return isinstance(part, (E.BufferLoad, E.Call, E.Let))
