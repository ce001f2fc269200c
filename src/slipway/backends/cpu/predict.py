"""Predicted cycles of kernels that multiply by weights: multiply-adds, by what a tile's steps take.

A weight is multiplied once for every position of the result, whatever blocks it lies in; so the
multiply-adds of a kernel are its weights times the positions.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from slipway.backends.cpu.knobs import size_bytes
from slipway.backends.cpu.tile import step_cost
from slipway.backends.strategy import Problem


def positions_of(problem: Problem) -> int:
    """Return the elements of the result for each of its channels or units."""
    shape = problem.out_types[0].shape
    blocked = problem.op.endswith(("_nchwc", "d_pairs"))
    channels = shape[1] * shape[-1] if blocked else shape[-1]
    return int(prod(shape) // max(1, channels))


def weight_products(problem: Problem) -> int:
    """Return the multiply-adds of a kernel whose second input are packed weights."""
    return int(prod(problem.in_types[1].shape) * positions_of(problem))


def product_cycles(
    problem: Problem, products: float, rows: int, vectors: int, at_once: float = 1.0
) -> float:
    """Return the cycles of `products` in tiles of `rows` by `vectors`.

    An instruction does `at_once` of them in each 32-bit lane.  No kernel is faster than its
    weights, or its second matrix, come from the second-level cache.
    """
    target, read = problem.target, size_bytes(problem.in_types[1])
    lanes = max(1, target.vector_bits // 32)
    multiplying = products / lanes / at_once * step_cost(rows, vectors, target)
    return float(max(multiplying, read / target.core.l2_stream_bytes))


def tile_cost(
    at_once: float = 1.0, products: Callable[[Problem], float] = weight_products
) -> Callable[[Problem, Any], float]:
    """Return the cost of a strategy whose knobs are a tile: `rows` by `vectors`."""

    def cost(problem: Problem, knobs: Any) -> float:
        return product_cycles(problem, products(problem), knobs.rows, knobs.vectors, at_once)

    return cost
