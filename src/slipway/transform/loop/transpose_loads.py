"""Transpose loads: what neighbouring statements read across memory comes in whole vectors.

before: ``B[...] = A[ramp(x, 64, 8)]; B[...] = A[ramp(x + 1, 64, 8)]; ...`` eight such
after:  eight loads ``A[ramp(x + 64 * k, 1, 8)]``, transposed in registers, and the eight stores

A load of lanes that lie apart takes as many single loads.  As many of them as they have lanes,
each one element further, read a square tile, whose rows are vectors.  The rows are transposed by
shuffles of pairs: within four lanes first, then fours among each other, which is one instruction
each where registers consist of such fours; rows of elements of 8 and 16 bits are zipped.  Only for
code that has vectors (LLVM).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from slipway import dtypes
from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import Linear
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.visit import children, map_children, walk
from slipway.target.capability import capability_of

SIZES = (4, 8, 16)
_NO_LOADS = frozenset((E.Var, E.SizeVar, E.IntImm, E.FloatImm))
ITEM_BITS = (8, 16, 32)


def transpose_loads(func: PrimFunc) -> PrimFunc:
    """Return `func` with square tiles of loads across memory read by rows."""
    target = func.attr("target")
    if target is None or not capability_of(target).shuffles or not func.attr("noalias", True):
        return func
    if not _loads_across(func.body):
        return func
    return func.replace(body=_visit(func.body))  # type: ignore[no-any-return]


def _loads_across(body: S.Stmt) -> bool:
    """Return whether any load under `body` is `_across`.

    Most functions have none, and unrolled bodies are large: the common nodes are taken apart here
    rather than by the generic walk.
    """
    seen: set[int] = set()
    stack: list[Any] = [body]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _NO_LOADS or id(node) in seen:
            continue
        seen.add(id(node))
        if kind is E.BufferLoad:
            if _across(node):
                return True
            stack += node.indices
        elif isinstance(node, E.BinaryOp):
            stack += (node.a, node.b)
        elif kind is S.BufferStore:
            stack.append(node.value)
            stack += node.indices
        else:
            stack += children(node)
    return False


def _across(node: Any) -> TypeGuard[E.BufferLoad]:
    """Return whether a node loads lanes further apart than their number, or at an open distance."""
    if not isinstance(node, E.BufferLoad) or len(node.indices) != 1 or node.buffer.strides:
        return False
    (index,) = node.indices
    return (
        isinstance(index, E.Ramp)
        and index.num_lanes in SIZES
        and dtypes.bits_of(node.dtype) in ITEM_BITS
        and not dtypes.is_bool(node.dtype)
        and (not isinstance(index.stride, E.IntImm) or index.stride.value >= index.num_lanes)
    )


def _visit(node: Any) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    node = map_children(node, _visit)
    if isinstance(node, S.SeqStmt) and all(isinstance(s, S.BufferStore) for s in node.stmts):
        return _transposed(node)
    return node


def _transposed(block: S.SeqStmt) -> S.Stmt:
    """A block of stores whose tiles are loaded first, those that are whole and not stored to."""
    stored = {id(store.buffer) for store in block.stmts}  # type: ignore[attr-defined]
    found: dict[Any, dict[int, list[E.BufferLoad]]] = {}
    starts: dict[Any, tuple[Linear, Linear]] = {}
    an = Analyzer()
    for load in walk(block):
        if _across(load) and id(load.buffer) not in stored:
            (index,) = load.indices
            assert isinstance(index, E.Ramp)
            base = an.linear(index.base)
            apart = base.shifted(-base.const)
            stride = an.linear(index.stride)
            key = id(load.buffer), apart.key, stride.key, index.num_lanes
            starts[key] = apart, stride
            found.setdefault(key, {}).setdefault(base.const, []).append(load)
    values: dict[Any, Any] = {}
    lets: list[tuple[E.Var, E.PrimExpr]] = []
    for key, columns in found.items():
        apart, stride = starts[key]
        lanes = key[-1]
        for first in sorted(columns):
            tile = range(first, first + lanes)
            if not all(position in columns for position in tile):
                continue
            buffer = columns[first][0].buffer
            start = apart.shifted(first)
            rows = [an.to_expr(start.plus(stride.scaled(k))) for k in range(lanes)]
            for position, column in zip(tile, _load_tile(buffer, rows, lets), strict=True):
                values.update((id(load), column) for load in columns.pop(position))
    if not values:
        return block

    def replaced(node: Any) -> Any:
        known = values.get(id(node))
        return map_children(node, replaced) if known is None else known

    done: S.Stmt = S.seq(replaced(store) for store in block.stmts)
    for var, value in reversed(lets):
        done = S.LetStmt(var, value, done)
    return done


def _load_tile(buffer: Buffer, starts: Sequence[E.PrimExpr], lets: list[Any]) -> list[E.Var]:
    """Load rows, as many as one has lanes; return the columns.  `lets` gets the steps between."""
    lanes = len(starts)

    def keep(value: E.PrimExpr) -> E.Var:
        var = E.Var("row", value.dtype)
        lets.append((var, value))
        return var

    one = ops.const(1, starts[0].dtype)
    rows = [keep(E.BufferLoad(buffer, (E.Ramp(start, one, lanes),))) for start in starts]

    def pick(a: E.Var, b: E.Var, picks: Sequence[int]) -> E.Var:
        return keep(E.Shuffle((a, b), tuple(picks)))

    if dtypes.bits_of(rows[0].dtype) < 32:
        return _zipped(rows, pick)
    fours = range(0, lanes, 4)

    def within_fours(order: Sequence[int]) -> list[int]:
        """Positions of a pair (a, b): those below 4 are of a's four, the others of b's."""
        return [q + p if p < 4 else lanes + q + p - 4 for q in fours for p in order]

    for half, orders in ((1, ((0, 4, 1, 5), (2, 6, 3, 7))), (2, ((0, 1, 4, 5), (2, 3, 6, 7)))):
        transposed = list(rows)
        for i in range(lanes):
            if not i & half:
                a, b = rows[i], rows[i + half]
                transposed[i], transposed[i + half] = (pick(a, b, within_fours(o)) for o in orders)
        rows = transposed
    # Row 4 * g + s now has, in its four number q, rows 4 * g .. 4 * g + 3 of column 4 * q + j.
    columns: dict[int, E.Var] = {}
    for position, j in enumerate((0, 2, 1, 3)):
        blocks = _transpose_fours([rows[g + position] for g in fours], lanes, pick)
        columns.update((4 * q + j, block) for q, block in enumerate(blocks))
    return [columns[c] for c in range(lanes)]


def _zipped(rows: list[E.Var], pick: Any) -> list[E.Var]:
    """Transpose vectors, as many as each has lanes, by zipping those half of all rows apart.

    A position (row, lane) as one number of binary digits is rotated by one digit in each round; as
    many rounds as a lane has digits exchange the two.
    """
    lanes = len(rows)
    half = lanes // 2
    low = [n // 2 + lanes * (n % 2) for n in range(lanes)]
    high = [n + half for n in low]
    for _ in range(lanes.bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [pick(a, b, order) for a, b in pairs for order in (low, high)]
    return rows


def _transpose_fours(parts: list[E.Var], lanes: int, pick: Any) -> list[E.Var]:
    """Transpose the fours of as many vectors as each has."""
    if len(parts) == 1:
        return parts

    def fours(*numbers: int) -> list[int]:
        return [4 * n + p for n in numbers for p in range(4)]

    if len(parts) == 2:
        return [pick(*parts, fours(0, 2)), pick(*parts, fours(1, 3))]
    a, b, c, d = parts
    even = pick(a, b, fours(0, 2, 4, 6)), pick(c, d, fours(0, 2, 4, 6))
    odd = pick(a, b, fours(1, 3, 5, 7)), pick(c, d, fours(1, 3, 5, 7))
    first, third = pick(*even, fours(0, 2, 4, 6)), pick(*even, fours(1, 3, 5, 7))
    second, fourth = pick(*odd, fours(0, 2, 4, 6)), pick(*odd, fours(1, 3, 5, 7))
    return [first, second, third, fourth]
