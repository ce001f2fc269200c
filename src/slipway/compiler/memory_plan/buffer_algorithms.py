"""The heuristics as functions of buffers, registered as ``tir.usmp.algo.<name>`` as in TVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from slipway.compiler.memory_plan import heuristics
from slipway.compiler.memory_plan.block import Block, Pool
from slipway.compiler.memory_plan.buffers import REGISTERED, Allocations, BufferInfo, PoolAllocation
from slipway.compiler.memory_plan.place import Placement
from slipway.errors import ArgumentValueError, LoweringError
from slipway.ir.expr import IntImm
from slipway.ir.memory_pools import PoolInfo
from slipway.runtime.packed_func import register_func
from slipway.transform.context import PassContext

# What an allocation of a program is annotated with in TVM.
CANDIDATES = "candidate_memory_pools"


def workspace_io() -> bool:
    """Return whether inputs and outputs are planned with the other tensors."""
    return bool(PassContext.current().config.get("tir.usmp.use_workspace_io", False))


Order = Callable[[Placement, int], list[int]]
_ORDERS: dict[str, Order] = {
    "greedy_by_size": lambda layout, _: heuristics.greedy_by_size(layout),
    "greedy_by_conflicts": lambda layout, _: heuristics.greedy_by_conflicts(layout),
    "hill_climb": heuristics.hill_climb,
}


def place_buffers(
    order_of: Order, buffers: Sequence[BufferInfo], memory_pressure: int | IntImm
) -> Allocations:
    """Place buffers in the order of a heuristic, each as low as it can lie.

    `memory_pressure`: the bytes at which the heuristic need not look for a better order.
    """
    # Of equal buffers the last name comes first, as in TVM.
    ordered = sorted(buffers, key=lambda buffer: buffer.name_hint, reverse=True)
    pools = _pools_of(ordered)
    numbers = {buffer: number for number, buffer in enumerate(ordered)}
    meets: list[set[int]] = [set() for _ in ordered]
    for buffer, number in numbers.items():
        for other in buffer.conflicts:
            if other is not buffer and other in numbers:
                meets[number].add(numbers[other])
                meets[numbers[other]].add(number)
    blocks = [
        Block(
            b.name_hint, int(b.size_bytes), 0, 0, int(b.alignment),
            tuple(pool.pool_name for pool in b.pool_candidates),
        )
        for b in ordered
    ]  # fmt: skip
    layout = Placement(
        blocks, (), [Pool(n, p.size_bytes) for n, p in pools.items()], [sorted(m) for m in meets]
    )
    found = layout.place(order_of(layout, int(memory_pressure)))
    if found is None:
        have = ", ".join(f"{n} {p.size_bytes} B" for n, p in pools.items() if p.size_bytes)
        raise LoweringError(
            f"the space available in the provided pools exceeded by {len(blocks)} buffers of "
            f"{sum(b.size_bytes for b in blocks)} B in all ({have}): give a larger pool, or a "
            "further one as pool_candidates"
        )
    infos = list(pools.values())
    allocations = zip(ordered, *found, strict=True)
    return {buffer: PoolAllocation(infos[pool], offset) for buffer, offset, pool in allocations}


def _pools_of(buffers: Sequence[BufferInfo]) -> dict[str, PoolInfo]:
    pools: dict[str, PoolInfo] = {}
    for pool in (pool for buffer in buffers for pool in buffer.pool_candidates):
        if pools.setdefault(pool.pool_name, pool).size_bytes != pool.size_bytes:
            raise ArgumentValueError(
                f"two pools are called {pool.pool_name!r} and have different sizes: give each "
                "memory a name of its own"
            )
    return pools


for _name, _order in _ORDERS.items():
    register_func(REGISTERED + _name, partial(place_buffers, _order), override=True)
