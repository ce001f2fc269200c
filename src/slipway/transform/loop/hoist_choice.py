"""Hoist choices: a condition that a loop of vectors cannot change is asked once, before it.

before::

    for i in range(64):
        for j in range(49):
            for v in vectorized(4): C[i, j * 4 + v] = if_then_else(i < 32, A[...], B[...])

after::

    for i in range(64):
        if i < 32:
            for j in range(49):
                for v in vectorized(4): C[i, j * 4 + v] = A[...]
        else:
            for j in range(49):
                for v in vectorized(4): C[i, j * 4 + v] = B[...]

So joined tensors are copied one after the other, and rows outside of an image are zeros without
asking.  Only nests around a single store are written twice; of conditions joined by "and" each is
moved by itself.  Of several conditions on one sum the middle one goes first: n tensors joined are
found with log n comparisons, and made in n log n steps.  Where the code generator chooses between
addresses instead (`codegen/llvm/chosen_load.py`), more than a few tensors stay one nest, if its
loops are long enough for the n comparisons of that.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.codegen.chosen_loads import FEW, chosen_loads
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, walk
from slipway.target.capability import capability_of
from slipway.transform.loop.decide import comparable, conjuncts, given

_MOST_NODES = 400  # of a nest that is written twice
_MOST_NESTS = 64  # that one becomes
_FEW_NESTS = FEW  # more are compiled as they stand: unrolled, they take LLVM ten times as long
_KINDS = (S.ForKind.SERIAL, S.ForKind.UNROLLED, S.ForKind.VECTORIZED)


def hoist_choice(func: PrimFunc) -> PrimFunc:
    """Return `func` with the conditions of if_then_else outside of the loops they stay the same in.

    A loop around vectors is one, and so are vectors whose number is open; vectors themselves, and
    loops that are unrolled, are not.
    What a condition says decides others on the same sum: where i < 32 holds, i < 48 does.  So n
    tensors joined become n nests, however often their elements are read.
    """
    if not any(isinstance(n, E.Call) and n.op == "if_then_else" for n in walk(func.body)):
        return func
    target = func.attr("target")
    by_address = target is not None and capability_of(target).chooses_addresses
    return func.replace(body=_visit(func.body, by_address))  # type: ignore[no-any-return]


def _visit(node: Any, by_address: bool) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.For) and _goes_on(node):
        nests = _Nests(by_address)
        made = nests.visit(node)
        return _as_they_stand(made) if nests.made > _FEW_NESTS else made
    return map_children(node, lambda child: _visit(child, by_address))


def _goes_on(loop: S.For) -> bool:
    """Return whether a loop is one at run time: serial, or of vectors whose number is open."""
    if loop.kind == S.ForKind.VECTORIZED:
        return ops.as_int(loop.extent) is None
    return loop.kind == S.ForKind.SERIAL


def _as_they_stand(node: Any) -> Any:
    """Return a statement whose loops no code generator is to unroll by itself."""
    if not isinstance(node, S.Stmt):
        return node
    node = map_children(node, _as_they_stand)
    if not isinstance(node, S.For) or node.kind != S.ForKind.SERIAL or ops.as_int(node.extent) == 1:
        return node
    return node.replace(annotations=(*node.annotations, S.KEEP_LOOP))


class _Nests:
    """What one nest becomes: as many as its conditions have outcomes, to a limit."""

    def __init__(self, by_address: bool) -> None:
        self.made = 1
        # Conditions of choices that stay, as choices of addresses, in this nest; the ids' nodes.
        self.kept: dict[int, E.PrimExpr] | None = {} if by_address else None

    def visit(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For) and _goes_on(node) and self.made < _MOST_NESTS:
            condition = _unchanged(node, self.kept)
            if condition is not None:
                self.made += 1
                return S.IfThenElse(
                    condition,
                    self.visit(given(node, condition, True)),
                    self.visit(given(node, condition, False)),
                )
        return map_children(node, self.visit)


def _unchanged(loop: S.For, kept: dict[int, E.PrimExpr] | None) -> E.PrimExpr | None:
    """Return a condition in a nest around one store of vectors that none of its loops changes.

    Those of choices between addresses are left out, and added to `kept`, unless that is None.
    """
    inner: set[int] = set()
    vectors = False
    steps = 1
    stmt: S.Stmt = loop
    while isinstance(stmt, S.For) and stmt.kind in _KINDS:
        inner.add(id(stmt.loop_var))
        vectors = vectors or stmt.kind == S.ForKind.VECTORIZED
        if stmt.kind != S.ForKind.VECTORIZED:
            steps *= ops.as_int(stmt.extent) or 1
        stmt = stmt.body
    if not vectors or not isinstance(stmt, S.BufferStore):
        return None
    nodes = list(islice(walk(stmt), _MOST_NODES + 1))
    if len(nodes) > _MOST_NODES:
        return None
    inner |= {id(node.var) for node in nodes if isinstance(node, E.Let)}
    found = [
        condition
        for node in nodes
        if isinstance(node, E.Call) and node.op == "if_then_else"
        for condition in conjuncts(node.args[0])
        if not isinstance(condition, E.IntImm)
        and not any(_changes(part, inner) for part in walk(condition))
    ]
    if kept is not None and found:
        kept.update(_of_addresses(nodes, found, steps))
        found = [condition for condition in found if id(condition) not in kept]
    if not found:
        return None
    alike = comparable(found)
    return alike[len(alike) // 2]


def _of_addresses(
    nodes: list[Any], unchanged: list[E.PrimExpr], steps: int
) -> dict[int, E.PrimExpr]:
    """Return, by id, the conditions of choices between loads at one place of many memories.

    All of a choice's conditions are `unchanged`, and it is between no more memories than the loops
    around it have `steps`.
    """
    found: dict[int, E.PrimExpr] = {}
    same = {id(condition) for condition in unchanged}
    an = Analyzer()
    for node in nodes:  # the outermost of choices in each other comes first
        if isinstance(node, E.Call) and node.op == "if_then_else":
            among = None if id(node.args[0]) in found else chosen_loads(node)
            if among is None or len(among[0]) > steps:
                continue
            conditions = {id(choice.args[0]): choice.args[0] for choice in among[1]}
            if not conditions.keys() <= same or any(len(load.indices) != 1 for load in among[0]):
                continue
            first, *others = (an.linear(load.indices[0]) for load in among[0])
            if all(other.minus(first).is_const for other in others):
                found.update(conditions)
    return found


def _changes(part: Any, inner: set[int]) -> bool:
    """Return whether a part of a condition may differ where the variables of `inner` do."""
    if isinstance(part, E.Var):
        return id(part) in inner
    return isinstance(part, (E.BufferLoad, E.Call, E.Let))
