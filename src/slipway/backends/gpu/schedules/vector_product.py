"""Products of few rows: the threads of a result add up its parts, neighbours read neighbours.

A layer of one row, which a network without a batch has, reads each weight once: what counts is
that the threads of a warp read weights that lie beside each other.  A thread for each result would
read a row of weights by itself, each from another line of memory.  So a result is a row of
`rows.py`, the products of one row of weights, as many as the sum has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from slipway.backends.gpu.limits import most_threads
from slipway.backends.gpu.schedules.rows import (
    RowOfThreadsKnobs,
    Rows,
    legal_knobs,
    row_cost,
    row_space,
    schedule_rows,
)
from slipway.backends.gpu.schedules.shared import product_sizes
from slipway.backends.gpu.warps import exchanging_threads, runs_in_step
from slipway.backends.strategy import Problem, register_strategy
from slipway.relay.types import flatten
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU


def _applies(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    sizes = product_sizes(in_types, attrs)
    if sizes is None or not runs_in_step(target) or most_threads(target) < 64:
        return False
    return sizes.rows <= ANY_GPU.vector_rows and sizes.depth >= ANY_GPU.vector_depth


def _rows_of(problem: Problem) -> Rows:
    (out,) = flatten(problem.out_types[0])
    return Rows(prod(out.shape), int(problem.in_types[1].shape[-1]), True)


def _cost(problem: Problem, knobs: RowOfThreadsKnobs) -> float:
    return row_cost(_rows_of(problem), knobs, exchanging_threads(problem.target))


def _default(problem: Problem) -> RowOfThreadsKnobs:
    return min(legal_knobs(problem.target), key=lambda knobs: _cost(problem, knobs))


register_strategy(
    "nn.dense", "nn.batch_matmul", name="threads.rows", priority=15, applies=_applies,
    default=_default, space=row_space, cost=_cost,
)(schedule_rows)  # fmt: skip
