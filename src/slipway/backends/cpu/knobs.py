"""Knobs that many strategies share: of loops over elements, over rows, and of sums.

Their defaults follow from the target (`target.core`); `Space` functions list the legal values.
Predicted cycles come from `streamed_cycles`: what a kernel reads and writes, or what it computes,
whichever takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.backends.strategy import Knobs, Problem, Space
from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.op_registry import OpPattern
from slipway.relay.types import TensorType, flatten

if TYPE_CHECKING:
    from slipway.target import Target

SHARE_FROM = tuple(1 << n for n in range(10, 25))
# What rows may be copied with.
COPY_SPACE: Space = {"lanes": (1, 2, 4, 8, 16, 32, 64), "share_from": SHARE_FROM}


@dataclass(frozen=True)
class LoopKnobs(Knobs):
    """Of loops over elements.

    `group`: registers of 32-bit elements that one vector fills; 0: no vectors.  `unrolled`: nodes
    of expressions in the copies of an unrolled loop, at most.  `share_from`: the elements, if they
    are only copied, from which cores share a loop, in tasks of a quarter of them.
    """

    group: int
    unrolled: int
    share_from: int


@dataclass(frozen=True)
class SumKnobs(LoopKnobs):
    """Also of reductions: `sums` vectors of partial results, `steps` unrolled for each of them."""

    sums: int
    steps: int


@dataclass(frozen=True)
class RowKnobs(Knobs):
    """Of loops over rows: `lanes` of a vector; `share_from` as of `LoopKnobs`."""

    lanes: int
    share_from: int


@dataclass(frozen=True)
class RowSumKnobs(RowKnobs):
    """Also of sums along the rows: as of `SumKnobs`."""

    sums: int
    steps: int


def vector_lanes(target: Target, dtype: str) -> int:
    """Return the lanes of one vector register of `target` for elements of `dtype`."""
    return max(1, target.vector_bits // max(8, dtypes.bits_of(dtype)))


def copied_elements(target: Target) -> int:
    """Return how many elements are copied in the time from which another core helps."""
    return target.core.costs.share_vectors * vector_lanes(target, "float32")


def copy_knobs(problem: Problem) -> RowKnobs:
    """Return what rows are copied with: a register's lanes, shared as elementwise loops are."""
    target, dtype = problem.target, problem.out_types[0].dtype
    return RowKnobs(vector_lanes(target, dtype), copied_elements(target))


def dividing_lanes(extent: int, most: int) -> int:
    """Return the widest vector, of `most` lanes halved and halved again, that divides `extent`."""
    while extent % most:
        most //= 2
    return most


def widest_lanes(extent: int, lanes: int) -> int:
    """Return the lanes, at most `lanes`, of the widest vectors that `extent` fills."""
    while lanes > max(extent, 1):
        lanes //= 2
    return lanes


def fills_vectors(rows: int, value_size: int, lanes: int, minimum: int) -> bool:
    """Return whether query rows and value elements fill vectors of at least `minimum` lanes."""
    if is_open(rows) or is_open(value_size):
        return False  # its blocks are of a known number of rows
    return min(widest_lanes(rows, lanes), widest_lanes(value_size, lanes)) >= minimum


def loop_knobs(target: Target) -> LoopKnobs:
    """Return the default knobs of loops over elements.

    RISC-V's vector instructions work on up to eight registers as one; in groups of four there are
    eight.  Smaller elements may become 32 bits wide on the way.
    """
    group = 4 if target.arch.startswith("riscv") and target.vector_bits else 1
    return LoopKnobs(group, target.core.costs.unrolled_nodes, copied_elements(target))


def sum_knobs(target: Target) -> SumKnobs:
    """Return the default knobs of reductions and of the loops behind them."""
    loops, costs = loop_knobs(target), target.core.costs
    return SumKnobs(
        loops.group, loops.unrolled, loops.share_from, costs.sum_vectors, costs.sum_steps
    )


def loop_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs of loops over elements."""
    return {
        "group": (0, 1, 2, 4) if problem.target.vector_bits else (1,),
        "unrolled": (0, 16, 48, 96),
        "share_from": SHARE_FROM,
    }


def sum_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs of reductions and of the loops behind them."""
    return {**loop_space(problem), "sums": (1, 2, 3, 4, 6, 8), "steps": (1, 2, 4, 8)}


def row_space(problem: Problem, longest: int, minimum: int = 2) -> dict[str, Sequence[Any]]:
    """Return the legal knobs of loops over rows, whose vectors have `longest` lanes at most."""
    dtype = flatten(problem.out_types[0])[0].dtype
    most = min(longest, 2 * vector_lanes(problem.target, dtype))
    lanes = [n for n in (2, 4, 8, 16, 32, 64, 128) if minimum <= n <= most]
    return {"lanes": lanes or (1,), "share_from": SHARE_FROM}


def row_sum_space(problem: Problem, longest: int, minimum: int = 2) -> dict[str, Sequence[Any]]:
    """Return the legal knobs of sums along rows, whose vectors have `longest` lanes at most."""
    return {
        **row_space(problem, longest, minimum), "sums": (1, 2, 3, 4, 6, 8), "steps": (1, 2, 4, 8)
    }  # fmt: skip


def streamed_cycles(problem: Problem, lanes: int, steps: float, elements: int = 0) -> float:
    """Return the cycles of one core for `steps` instructions for each of `elements`, in vectors.

    Without `elements`, those of the outputs.  What lies in memory comes at the rate of the
    second-level cache.
    """
    core, outs = problem.target.core, [t for o in problem.out_types for t in flatten(o)]
    ins = [t for i in problem.in_types for t in flatten(i)]
    read = [t for number, t in enumerate(ins) if problem.reads_memory(number)]
    moved = sum(size_bytes(t) for t in (*read, *outs))
    count = elements or sum(prod(t.shape) for t in outs)
    bits = dtypes.bits_of(outs[0].dtype)
    # An instruction works on a register; a vector of several takes as many.
    at_once = max(1.0, min(lanes, max(1, core.fma_bits // bits)))
    return max(moved / core.l2_stream_bytes, count * steps / at_once)


def size_bytes(type_: TensorType) -> int:
    """Return the bytes of a tensor."""
    return prod(type_.shape) * dtypes.bytes_of(type_.dtype)


def loop_cost(problem: Problem, knobs: LoopKnobs) -> float:
    """Predict a kernel of loops over elements: an instruction for each of its inputs."""
    lanes = lanes_of(problem, knobs)
    return streamed_cycles(problem, lanes, len(problem.in_types) or 1)


def sum_cost(problem: Problem, knobs: SumKnobs) -> float:
    """Predict a reduction: an addition for each element of its inputs, or the wait for the last.

    A product or convolution in such loops has a multiply-add and the loads of both factors for each
    of its products: nothing is kept in registers but the sums.
    """
    core, lanes = problem.target.core, lanes_of(problem, knobs)
    elements = max((prod(t.shape) for i in problem.in_types for t in flatten(i)), default=1)
    products = _products(problem)
    waiting = max(elements, products) / lanes / knobs.sums * core.fma_latency
    if products > elements:
        loads = 2 * core.fma_bits / core.load_bits
        return max(waiting, streamed_cycles(problem, lanes, max(1.0, loads), products))
    return max(waiting, streamed_cycles(problem, lanes, 1, elements))


def _products(problem: Problem) -> int:
    """Return the multiply-adds of an operator that has more of them than results, else 0."""
    definition = op_registry.load_ops().get(problem.op)
    if definition is None or definition.pattern != OpPattern.OUT_ELEMWISE_FUSABLE:
        return 0
    work = definition.count_work(problem.attrs, problem.in_types, problem.out_types[0])
    return int(work / 2)


def lanes_of(problem: Problem, knobs: LoopKnobs) -> int:
    """Return the lanes that loops over the first output have."""
    dtype = flatten(problem.out_types[0])[0].dtype
    return group_lanes(problem.target, dtype, knobs.group)


def group_lanes(target: Target, dtype: str, group: int) -> int:
    """Return the lanes of vectors that fill `group` registers where elements have 32 bits."""
    lanes = vector_lanes(target, dtype)
    if lanes == 1 or group == 0:
        return 1
    return max(lanes, group * min(lanes, vector_lanes(target, "float32")))
