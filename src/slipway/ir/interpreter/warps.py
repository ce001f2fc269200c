"""What threads of a warp do together in the interpreter: shuffles, and products of matrices.

A product's operands are pieces of the rows of `a` and of `b`; a `LaneShare` says which pieces and
which sums a thread has, as the modules of ``ir/instructions`` describe them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.errors import ExecutionError, LoweringError
from slipway.ir import expr as E
from slipway.ir.instructions.amd_products import AMD_PRODUCTS, AmdProduct
from slipway.ir.instructions.simdgroup_products import SIMDGROUP_PRODUCTS, SimdgroupProduct
from slipway.ir.instructions.warp_products import WARP, WARP_PRODUCTS, WarpProduct

Cell = tuple[int, int]


@dataclass(frozen=True)
class LaneShare:
    """What a thread has to do with a product.

    `a` and `b` are, for each operand, the row (of `b`, the column of the result) and the first of
    the steps that it holds, `steps` of them; `sums` the rows and columns of the result.
    """

    a: tuple[Cell, ...]
    b: tuple[Cell, ...]
    steps: tuple[int, int]
    sums: tuple[tuple[Cell, ...], ...]  # for each of the last operands


def _of_nvidia(entry: WarpProduct, lane: int) -> LaneShare:
    g, t = divmod(lane, 4)
    rows, first = (2 * g, 2 * g + 1), t * entry.fetched
    sums = tuple(((row, 2 * t), (row, 2 * t + 1)) for row in rows)
    return LaneShare(
        tuple((r, first) for r in rows), ((g, first),), (entry.fetched, entry.fetched), sums
    )


def _of_apple(entry: SimdgroupProduct, lane: int) -> LaneShare:
    row = ((lane >> 2) & 4) + ((lane >> 1) & 3)
    column = ((lane >> 3) & 1) * 4 + (lane & 1) * 2
    return LaneShare(
        ((row, column),),
        ((column, row), (column + 1, row)),
        (2, 1),
        (((row, column),), ((row, column + 1),)),
    )


def _of_amd(entry: AmdProduct, lane: int) -> LaneShare:
    part, j = divmod(lane, 16)
    first = part * entry.steps if entry.in_parts else 0
    if entry.in_parts:
        rows = [entry.sums * part + at for at in range(entry.sums)]
    else:
        rows = [2 * at + part for at in range(entry.sums)]
    sums = tuple(((row, j),) for row in rows)
    return LaneShare(((j, first),), ((j, first),), (entry.steps, entry.steps), sums)


def share_of(name: str) -> tuple[Any, int, Callable[[int], LaneShare]]:
    """Return a product by its name, the threads that compute it, and the share of each.

    Raises LoweringError for one that has no model here.
    """
    if name in WARP_PRODUCTS:
        entry = WARP_PRODUCTS[name]
        return entry, WARP, lambda lane: _of_nvidia(entry, lane)
    if name in SIMDGROUP_PRODUCTS:
        apples = SIMDGROUP_PRODUCTS[name]
        return apples, WARP, lambda lane: _of_apple(apples, lane)
    if name in AMD_PRODUCTS:
        amds = AMD_PRODUCTS[name]
        return amds, amds.wave, lambda lane: _of_amd(amds, lane)
    raise LoweringError(
        f"the interpreter has no model of the product {name!r}: nothing says which elements of its "
        "matrices a thread has"
    )


def product(name: str, brought: Sequence[Sequence[Any]]) -> list[list[list[Any]]]:
    """Return the sums of each thread of a warp, an operand and an element after the other.

    `brought` has for each thread the pieces of `a` and `b`, and its sums so far.
    """
    entry, count, share = share_of(name)
    shares = [share(lane) for lane in range(count)]
    wide: Any = np.float32 if entry.c_dtype == "float32" else np.int64
    sides = [1 + max(s.sums[-1][-1][axis] for s in shares) for axis in range(2)]
    depth = entry.depth
    left, right = (np.zeros((side, depth), wide) for side in sides)
    for own, pieces in zip(shares, brought, strict=True):
        for (row, first), piece in zip(own.a, pieces, strict=False):
            left[row, first : first + own.steps[0]] = piece
        for (row, first), piece in zip(own.b, pieces[len(own.a) :], strict=False):
            right[row, first : first + own.steps[1]] = piece
    result = left @ right.T
    made = []
    for own, pieces in zip(shares, brought, strict=True):
        before = pieces[len(own.a) + len(own.b) :]
        added = [
            [result[cell] + old for cell, old in zip(cells, olds, strict=True)]
            for cells, olds in zip(own.sums, before, strict=True)
        ]
        made.append(added)
    if wide is np.int64:
        made = [[[_wrapped(v) for v in row] for row in thread] for thread in made]
    return made


def _wrapped(value: Any) -> int:
    return (int(value) + (1 << 31)) % (1 << 32) - (1 << 31)


def shuffle(call: E.Call, brought: dict[int, tuple[Any, ...]], who: str) -> dict[int, Any]:
    """Return what each thread of a warp gets, by its lane; `brought` are the call's operands.

    Raises ExecutionError where a thread asks for the value of one that has not come.
    """
    results: dict[int, Any] = {}
    for lane, (_, value, position, width, _) in brought.items():
        position, width = int(position), int(width)
        row = lane // width * width
        wanted = {
            "warp_shuffle": row + position % width,
            "warp_shuffle_up": lane - position,
            "warp_shuffle_down": lane + position,
        }[call.op]
        if not row <= wanted < row + width:
            results[lane] = value
            continue
        if wanted not in brought:
            raise ExecutionError(
                f"{who}: thread {lane} of a warp asks thread {wanted} for a value by {call.op}, "
                "which has not come to it. All threads of a warp have to come to it together"
            )
        results[lane] = brought[wanted][1]
    return results
