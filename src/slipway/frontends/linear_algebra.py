"""Eliminations of small matrices, unrolled: determinants, linear systems, Cholesky factors."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.converter_table import UnsupportedNode
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

MAX_ROWS = 64  # of a matrix whose elimination is unrolled


def _square(a: Expr) -> tuple[Expr, tuple[int, ...], int, int]:
    """Return matrices with one batch axis, the axes they had, their number and their rows."""
    *lead, rows, columns = a.tensor_type.shape
    if rows != columns:
        raise UnsupportedNode(f"the matrices are {rows} x {columns}, not square")
    if rows > MAX_ROWS:
        raise UnsupportedNode(f"the matrices have {rows} rows; up to {MAX_ROWS} are served")
    batch = prod(lead)
    return relay.reshape(a, (batch, rows, rows)), tuple(lead), batch, rows


def _cut(x: Expr, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    return relay.strided_slice(x, [rows[0], columns[0]], [rows[1], columns[1]], axes=[1, 2])


def _pivoted(a: Any, batch: int, size: int, width: int) -> tuple[Any, Any, Any]:
    """Bring the row with the largest first element to the top, by arithmetic.

    Returns that row, the rows below it, and whether it has changed places.
    """
    dtype = a.tensor_type.dtype
    first = relay.reshape(_cut(a, (0, size), (0, 1)), (batch, size))
    position = relay.argmax(relay.abs(first), 1, dtype="int32")
    chosen = relay.reshape(relay.one_hot(position, 1.0, 0.0, size, -1, dtype), (batch, size, 1))
    pivot_row = relay.sum(relay.multiply(chosen, a), 1, keepdims=True)
    # The top row takes the place of the pivot row, which leaves.
    moved = relay.add(a, relay.multiply(chosen, relay.subtract(_cut(a, (0, 1), (0, width)),
                                                               pivot_row)))  # fmt: skip
    below = _cut(moved, (1, size), (0, width)) if size > 1 else None
    return pivot_row, below, relay.not_equal(position, const(0, "int32"))


def determinant(a: Expr) -> Any:
    """Return the determinants of the matrices in the last two axes."""
    dtype = a.tensor_type.dtype
    rows, lead, batch, count = _square(a)
    zero, one = const(0, dtype), const(1, dtype)
    result: Any = relay.ones((batch,), dtype)
    for size in range(count, 0, -1):
        pivot_row, below, swapped = _pivoted(rows, batch, size, size)
        pivot = relay.reshape(_cut(pivot_row, (0, 1), (0, 1)), (batch,))
        result = relay.multiply(result, relay.where(swapped, relay.negative(pivot), pivot))
        if below is None:
            break
        safe = relay.where(relay.equal(pivot, zero), one, pivot)
        factor = relay.divide(
            _cut(below, (0, size - 1), (0, 1)), relay.reshape(safe, (batch, 1, 1))
        )
        rows = relay.subtract(
            _cut(below, (0, size - 1), (1, size)),
            relay.multiply(factor, _cut(pivot_row, (0, 1), (1, size))),
        )
    return relay.reshape(result, lead)


def solution(a: Expr, b: Expr) -> Any:
    """Return x with ``a @ x = b``, all with the same leading axes, by Gauss and Jordan.

    Of a singular matrix it has no finite values.
    """
    rows, lead, batch, count = _square(a)
    sides = b.tensor_type.shape[-1]
    both: Any = relay.concatenate([rows, relay.reshape(b, (batch, count, sides))], 2)
    for done in range(count):
        width = count - done + sides
        size = count - done
        pivot_row, below, _ = _pivoted(_cut(both, (done, count), (0, width)), batch, size, width)
        row = relay.divide(_cut(pivot_row, (0, 1), (1, width)), _cut(pivot_row, (0, 1), (0, 1)))
        others = [_cut(both, (0, done), (0, width))] if done else []
        others += [] if below is None else [below]
        left = [
            relay.subtract(
                _cut(part, (0, part.tensor_type.shape[1]), (1, width)),
                relay.multiply(_cut(part, (0, part.tensor_type.shape[1]), (0, 1)), row),
            )
            for part in others
        ]
        parts = [*left[: 1 if done else 0], row, *left[1 if done else 0 :]]
        both = parts[0] if len(parts) == 1 else relay.concatenate(parts, 1)
    return relay.reshape(both, (*lead, count, sides))


def inverse(a: Expr) -> Any:
    """Return the inverses of the matrices in the last two axes."""
    shape = a.tensor_type.shape
    unit = const(np.eye(shape[-1], dtype=a.tensor_type.dtype))
    return solution(a, relay.broadcast_to(unit, shape))


def cholesky(a: Expr) -> Any:
    """Return lower triangles whose products with their transposes are the matrices."""
    dtype = a.tensor_type.dtype
    rows, lead, batch, count = _square(a)
    columns = []
    for size in range(count, 0, -1):
        first = _cut(rows, (0, size), (0, 1))
        column = relay.divide(first, relay.sqrt(_cut(first, (0, 1), (0, 1))))
        columns.append(relay.nn.pad(column, [(0, 0), (count - size, 0), (0, 0)], 0.0))
        if size > 1:
            tail = _cut(column, (1, size), (0, 1))
            outer = relay.multiply(tail, relay.reshape(tail, (batch, 1, size - 1)))
            rows = relay.subtract(_cut(rows, (1, size), (1, size)), outer)
    made = columns[0] if count == 1 else relay.concatenate(columns, 2)
    return relay.reshape(relay.cast(made, dtype), (*lead, count, count))
