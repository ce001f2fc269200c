"""Register tiles: how many accumulators of a kernel fit a target, and which shape they take.

The inner loop of a convolution or matrix product keeps `rows` x `vectors` accumulators in
registers; each step loads `vectors` vectors of weights, broadcasts `rows` values of data, and does
rows * vectors multiply-adds.  Its speed is bound by the multiply-add units as long as loads are
rarer than multiply-adds and there are enough independent accumulators to cover their latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slipway.target import Target


@dataclass(frozen=True)
class Tile:
    """`rows` output positions by `vectors` vectors of output channels."""

    rows: int
    vectors: int


def vector_registers(target: Target) -> int:
    """Return the number of architectural vector registers."""
    arch = target.arch
    if arch.startswith("x86"):
        return 32 if "avx512f" in target.features else 16
    if arch.startswith(("aarch64", "arm64", "riscv")):
        return 32
    return 16


def accumulators(target: Target) -> int:
    """Return how many accumulators a tile may have: registers less those for operands.

    x86 multiplies by a broadcast memory operand, so only weights need registers; ARM needs the
    data in a register too.
    """
    return vector_registers(target) - 4


def choose_tile(positions: int, chunks: int, target: Target) -> Tile:
    """Choose the tile for `positions` output positions in a row and `chunks` channel blocks.

    Among the tiles that divide both and fit the registers, take the one with the fewest loads for
    each multiply-add, (rows + vectors) / (rows * vectors); a row count that does not divide
    `positions` is used only when every divisor is poor, and then the last tile is guarded.
    """
    limit = accumulators(target)
    best, best_cost = Tile(1, 1), float("inf")
    for vectors in (1, 2, 3, 4):
        if chunks % vectors:
            continue
        for rows in range(1, min(positions, limit // vectors) + 1):
            waste = -(-positions // rows) * rows / positions
            if positions % rows and (rows < 4 or waste > 1.1):
                continue
            cost = (rows + vectors) / (rows * vectors) * waste + (0.05 if positions % rows else 0)
            # Too few independent chains leave the multiply-add units waiting for each other.
            cost += max(0, 8 - rows * vectors) * 0.05
            if cost < best_cost - 1e-9:
                best, best_cost = Tile(rows, vectors), cost
    return best


def choose_padded_tile(rows: int, chunks: int, target: Target) -> Tile:
    """Choose the tile of a product whose operands are padded to whole tiles.

    The cost is that of `choose_tile`, times the work done on padding.
    """
    limit = accumulators(target)
    best, best_cost = Tile(1, 1), float("inf")
    for vectors in (1, 2, 3, 4):
        for height in range(1, min(rows, limit // vectors) + 1):
            waste = -(-rows // height) * height / rows * (-(-chunks // vectors) * vectors / chunks)
            cost = (height + vectors) / (height * vectors) * 0.5 + 1
            cost = cost * waste + max(0, 8 - height * vectors) * 0.1
            if cost < best_cost - 1e-9:
                best, best_cost = Tile(height, vectors), cost
    return best
