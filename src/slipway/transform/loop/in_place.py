"""Whether a statement may write one buffer over another.

It may where every element it writes takes its value, as far as the other buffer goes, from the
element at the same place, and where each place is written once::

    for i in 8: for j in 16: B[i * 16 + j] = exp(A[i * 16 + j]) * C[j]
"""

from __future__ import annotations

from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.visit import children, walk


def is_in_place(step: S.Stmt, old: Buffer, new: Buffer) -> bool:
    """Return whether `step`, last to read `old` and first to write `new`, may do so in place.

    Both are buffers of one dimension.
    """
    found = _only_store(step, new, [])
    if found is None or _takes_address(step, (old.data, new.data)):
        return False
    store, loops = found
    an = Analyzer()
    for loop in loops:
        an.bind_range(loop.loop_var, E.Range(loop.min, loop.extent))
    target = an.linear(store.indices[0])
    reads = [n for n in walk(step) if isinstance(n, E.BufferLoad)]
    own = [n for n in reads if n.buffer.data is old.data]
    if not own or any(n.buffer.data is new.data for n in reads):
        return False
    same = all(an.linear(n.indices[0]).key == target.key for n in own)
    return same and _each_once(an, target.terms, loops)


def _takes_address(step: S.Stmt, pointers: tuple[E.Var, ...]) -> bool:
    """Return whether a pointer stands elsewhere than in the buffer of a load or a store."""
    known = {id(pointer) for pointer in pointers}
    for node in walk(step):
        if isinstance(node, E.Call) and node.op == "address_of":
            return True
        if not isinstance(node, Buffer) and any(id(c) in known for c in children(node)):
            return True
    return False


def _only_store(
    step: S.Stmt, buffer: Buffer, loops: list[S.For]
) -> tuple[S.BufferStore, list[S.For]] | None:
    """Return the one store of `buffer` and the loops around it, through loops and conditions."""
    if isinstance(step, S.BufferStore):
        return (step, loops) if step.buffer.data is buffer.data else None
    if isinstance(step, S.For):
        return _only_store(step.body, buffer, [*loops, step])
    if isinstance(step, S.IfThenElse) and step.else_case is None:
        return _only_store(step.then_case, buffer, loops)
    if isinstance(step, S.AttrStmt):
        return _only_store(step.body, buffer, loops)
    return None


def _each_once(an: Analyzer, terms: dict[Any, int], loops: list[S.For]) -> bool:
    """Return whether no two steps of the loops have the same index: digits of a mixed radix."""
    digits = []
    inner = set()
    for loop in loops:
        extent = ops.as_int(loop.extent)
        atom = an.var_atom(loop.loop_var)
        inner.add(atom)
        if extent is None:
            return False
        if extent > 1:
            digits.append((abs(terms.get(atom, 0)), extent))
    if any(atom not in inner and not atom.variables.isdisjoint(inner) for atom in terms):
        return False
    reach = 0
    for step, extent in sorted(digits):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True
