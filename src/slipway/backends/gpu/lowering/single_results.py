"""A single number that threads sum together gets the block whose threads they are.

before: ``total[] = 0``, then ``for k in range(52): threadIdx.x for t in range(32): total[] += ...``
after:  both inside of ``blockIdx.x for b in range(1)``

A schedule binds a data axis to blocks, and a result without axes has none: its first statement
would stand outside of all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.visit import map_children, walk

BLOCK = "blockIdx.x"


def give_blocks(node: Any) -> Any:
    """Return statements whose sums by threads alone stand in a block, with what begins them."""
    if not isinstance(node, S.Stmt) or (isinstance(node, S.For) and node.kind == S.ForKind.THREAD):
        return node
    if not isinstance(node, S.SeqStmt):
        return map_children(node, give_blocks)
    found: list[S.Stmt] = []
    for one in node.stmts:
        begun = found[-1] if found else None
        if isinstance(begun, S.BufferStore) and _is_sum_of_threads(one, begun.buffer):
            found[-1] = _in_block(S.seq([begun, one]))
        else:
            found.append(give_blocks(one))
    return S.seq(found)


def beginnings_joined(stmts: Sequence[S.Stmt]) -> list[S.Stmt]:
    """Return statements with what begins a number and what one thread adds to it as one.

    Of those without threads, one without loops is joined to its neighbour: a launch less.  Two
    with loops are not: some drivers end what takes too many steps.
    """
    found: list[S.Stmt] = []
    for one in stmts:
        pair = [*found[-1:], one]
        if len(pair) == 2 and any(map(_is_plain, pair)) and all(map(_is_unbound, pair)):
            found[-1] = S.seq(pair)
        else:
            found.append(one)
    return found


def _is_unbound(node: S.Stmt) -> bool:
    """Return whether a statement computes something, and no threads are in it."""
    kinds = [n.kind for n in walk(node) if isinstance(n, S.For)]
    return S.ForKind.THREAD not in kinds and any(isinstance(n, S.BufferStore) for n in walk(node))


def _is_plain(node: S.Stmt) -> bool:
    return not any(isinstance(n, (S.For, S.While)) for n in walk(node))


def _is_sum_of_threads(node: S.Stmt, buffer: Any) -> bool:
    """Return whether serial loops hold threads that sum into a buffer, and nothing else."""
    loops = [n for n in walk(node) if isinstance(n, S.For) and n.kind == S.ForKind.THREAD]
    sums = [any(key == S.REDUCES for key, _ in loop.annotations) for loop in loops]
    stored = [n.buffer for n in walk(node) if isinstance(n, S.BufferStore)]
    return bool(loops) and all(sums) and all(one is buffer for one in stored)


def _in_block(body: S.Stmt) -> S.For:
    zero, one = ops.const(0, "int32"), ops.const(1, "int32")
    axis = E.IterVar(E.Range(zero, one), E.Var(BLOCK, "int32"), "thread", BLOCK)
    return S.For(axis.var, zero, one, S.ForKind.THREAD, body, axis)
