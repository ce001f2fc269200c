"""Which outputs of a kernel may take over which of its inputs, read off the kernel's loops.

The proof is by running the loops' index arithmetic: one NumPy array per loop nest holds, for each
execution of the store in order, the byte that is written, and for each load the byte that is read.
With end(t) the end of what execution t writes and read(t) the lowest byte that t or a later
execution reads, the output is safe when it starts

    lead = max over t of  end(t) - lowest_read(t)

bytes below the input.  This holds for the order in which the C code runs; a kernel outside the
pattern (several stores to the output, a loop nest too large, an index that is not arithmetic of
loop variables) allows nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.backends.in_place import Overlap
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.structural import structural_equal
from slipway.ir.visit import walk

MOST_STEPS = 4_000_000
Indices = np.ndarray[Any, np.dtype[np.int64]]


class _NotArithmeticError(Exception):
    """An index that this analysis does not follow."""


@dataclass(frozen=True)
class _Nest:
    """A store or a statement with loads, under its loops, and its place in program order."""

    loops: tuple[S.For, ...]
    order: tuple[int, ...]  # position of each ancestor in its sequence, loop by loop
    store: S.BufferStore


def overlaps_of(func: PrimFunc, operands: Collection[int]) -> list[Overlap]:
    """Return what the kernel allows for those operands, one share for each (output, operand)."""
    buffers = [func.buffer_of(p) for p in func.params]
    nests = list(_nests(func.body, (), ()))
    if not nests or any(b is None for b in buffers):
        return []
    stores: dict[int, list[_Nest]] = {}
    for nest in nests:
        stores.setdefault(id(nest.store.buffer.data), []).append(nest)
    found = []
    outputs = [i for i, b in enumerate(buffers) if b is not None and id(b.data) in stores]
    first_output = min(outputs, default=len(buffers))
    for output in outputs:
        for operand in sorted(o for o in operands if o < first_output):
            lead = _lead(buffers[output], buffers[operand], nests)
            if lead is not None:
                found.append(Overlap(operand, output - first_output, lead, False))
    return found


def _nests(stmt: S.Stmt, loops: tuple[S.For, ...], order: tuple[int, ...]) -> Iterator[_Nest]:
    match stmt:
        case S.SeqStmt(stmts):
            for number, inner in enumerate(stmts):
                yield from _nests(inner, loops, (*order, number))
        case S.For():
            yield from _nests(stmt.body, (*loops, stmt), (*order, -1))
        case S.Allocate() | S.AttrStmt() | S.LetStmt():
            yield from _nests(stmt.body, loops, order)
        case S.IfThenElse():
            yield from _nests(stmt.then_case, loops, order)
            if stmt.else_case is not None:
                yield from _nests(stmt.else_case, loops, order)
        case S.BufferStore():
            yield _Nest(loops, order, stmt)
        case _:
            return


def _lead(output: Any, operand: Any, nests: list[_Nest]) -> int | None:
    """Return the lead in bytes (at least 0), or None when no overlap is safe or useful."""
    writes = [n for n in nests if n.store.buffer.data is output.data]
    reads = [n for n in nests if _loads(n.store, operand)]
    if len(reads) != 1 or not writes:
        return None
    # Everything happens under the loops that the reading statement and the stores share.
    shared = reads[0].loops
    for nest in writes:
        shared = _common(shared, nest.loops)
    try:
        return _lead_under(shared, output, operand, reads[0], writes)
    except _NotArithmeticError:
        return None


def _common(a: tuple[S.For, ...], b: tuple[S.For, ...]) -> tuple[S.For, ...]:
    count = 0
    while count < min(len(a), len(b)) and a[count] is b[count]:
        count += 1
    return a[:count]


def _lead_under(
    shared: tuple[S.For, ...], output: Any, operand: Any, read: _Nest, writes: list[_Nest]
) -> int | None:
    """Per execution of the shared loops: the highest byte written, the lowest read from then on.

    Inside one execution a write may come before a read, so both count for the same step, unless
    `_reads_first` says otherwise.
    """
    steps = _count(shared)
    out_bytes = dtypes.bits_of(output.dtype) // 8
    in_bytes = dtypes.bits_of(operand.dtype) // 8
    lowest = np.full(steps, np.iinfo(np.int64).max)
    for load in _loads(read.store, operand):
        low, _ = _range_per_step(load.indices[0], read.loops, steps)
        lowest = np.minimum(lowest, low * in_bytes)
    highest = np.zeros(steps, np.int64)
    for nest in writes:
        _, high = _range_per_step(nest.store.indices[0], nest.loops, steps)
        highest = np.maximum(highest, (high + 1) * out_bytes)
    lowest = np.maximum(0, lowest)  # padding reads nothing
    remaining = np.minimum.accumulate(lowest[::-1])[::-1]
    written = np.maximum.accumulate(highest)
    if _reads_first(shared, read, writes, in_bytes == out_bytes):
        remaining = np.append(remaining[1:], np.iinfo(np.int64).max)
    lead = int(np.max(written - np.minimum(remaining, written.max())))  # 0 at the last, or more
    whole = output.size_bytes()
    return lead if whole is not None and lead < whole else None


def _reads_first(
    shared: tuple[S.For, ...], read: _Nest, writes: list[_Nest], same_width: bool
) -> bool:
    """Return whether each execution of the shared loops has read before it writes."""
    if all(read.order < nest.order and nest.store is not read.store for nest in writes):
        return True  # a loop nest of its own, ahead of those that write
    if len(writes) != 1 or writes[0].store is not read.store or len(shared) != len(read.loops):
        return False
    if read.store.value.lanes == 1:
        return True
    # Lanes are computed one after the other: each must read only its own element.
    index = read.store.indices[0]
    loads = [n for n in walk(read.store.value) if isinstance(n, E.BufferLoad)]
    return same_width and all(structural_equal(n.indices[0], index) for n in loads)


def _count(loops: tuple[S.For, ...]) -> int:
    total = 1
    for loop in loops:
        if not isinstance(loop.extent, E.IntImm) or not isinstance(loop.min, E.IntImm):
            raise _NotArithmeticError
        total *= loop.extent.value
    if total > MOST_STEPS or total == 0:
        raise _NotArithmeticError
    return total


def _range_per_step(
    index: E.PrimExpr, loops: tuple[S.For, ...], steps: int
) -> tuple[Indices, Indices]:
    """Return the lowest and highest element index for each execution of the shared loops."""
    total = _count(loops)
    values: dict[int, Indices] = {}
    stride = total
    positions = np.arange(total, dtype=np.int64)
    for loop in loops:
        extent, start = loop.extent.value, loop.min.value  # type: ignore[attr-defined]
        stride //= extent
        values[id(loop.loop_var)] = positions // stride % extent + start
    low, high = _evaluate(index, values)
    shape = (steps, total // steps)
    return (
        np.broadcast_to(low, (total,)).reshape(shape).min(axis=1),
        np.broadcast_to(high, (total,)).reshape(shape).max(axis=1),
    )


def _evaluate(node: E.PrimExpr, values: dict[int, Indices]) -> tuple[Any, Any]:
    """Return the index at every execution: the range it covers, for vector indices."""
    match node:
        case E.IntImm():
            return np.int64(node.value), np.int64(node.value)
        case E.Var() if id(node) in values:
            return values[id(node)], values[id(node)]
        case E.Ramp():
            base, _ = _evaluate(node.base, values)
            stride, _ = _evaluate(node.stride, values)
            span = stride * (node.lanes - 1)
            return base + np.minimum(span, 0), base + np.maximum(span, 0)
        case E.Broadcast():
            return _evaluate(node.value, values)
        case E.Cast():
            return _evaluate(node.value, values)
        case E.Add() | E.Sub() | E.Mul() | E.FloorDiv() | E.FloorMod() | E.Min() | E.Max():
            a, a_high = _evaluate(node.a, values)
            b, b_high = _evaluate(node.b, values)
            if a is not a_high and not np.array_equal(a, a_high):
                raise _NotArithmeticError
            if b is not b_high and not np.array_equal(b, b_high):
                raise _NotArithmeticError
            result = _OPERATIONS[type(node)](a, b)
            return result, result
        case _:
            raise _NotArithmeticError


_OPERATIONS: dict[type, Any] = {
    E.Add: np.add,
    E.Sub: np.subtract,
    E.Mul: np.multiply,
    E.FloorDiv: np.floor_divide,
    E.FloorMod: np.mod,
    E.Min: np.minimum,
    E.Max: np.maximum,
}


def _loads(store: S.BufferStore, buffer: Any) -> list[E.BufferLoad]:
    return [
        node
        for node in walk(store.value)
        if isinstance(node, E.BufferLoad) and node.buffer.data is buffer.data
    ]
