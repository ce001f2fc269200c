"""Buffers that name what they may not overlap: the classic objects of ``tvm.tir.usmp``.

A planner of one's own is a function ``f(buffers, memory_pressure)`` from a list of `BufferInfo` to
a dict of `PoolAllocation`; `planned_by` asks it for the places of a program's blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from slipway.compiler.memory_plan.block import Block, Plan, Pool, lower_bound
from slipway.compiler.memory_plan.check import check_plan
from slipway.compiler.memory_plan.planner import ALGORITHMS
from slipway.errors import ArgumentTypeError, ArgumentValueError, LoweringError, did_you_mean
from slipway.ir.expr import IntImm
from slipway.ir.memory_pools import PoolInfo, PoolInfoProperties, WorkspacePoolInfo
from slipway.runtime.packed_func import get_global_func, list_global_func_names


class BufferInfo:
    """A buffer to place: its size, the memories it may lie in, and the buffers it meets."""

    def __init__(
        self,
        name_hint: str,
        size_bytes: int | IntImm,
        pool_candidates: Sequence[PoolInfo],
        alignment: int | IntImm | None = None,
    ) -> None:
        self.name_hint = name_hint
        self.size_bytes = IntImm("int64", int(size_bytes))
        self.pool_candidates = list(pool_candidates)
        self.alignment = IntImm("int64", 1 if alignment is None else int(alignment))
        self.conflicts: list[BufferInfo] = []
        if int(self.size_bytes) < 0 or int(self.alignment) < 1 or not self.pool_candidates:
            raise ArgumentValueError(
                f"the buffer {name_hint!r} of {size_bytes} bytes, aligned to {alignment}, with "
                f"{len(self.pool_candidates)} pools: give a size, an alignment of at least 1, and "
                "at least one pool"
            )

    def set_conflicts(self, conflicts: Sequence[BufferInfo]) -> None:
        """Say which buffers exist at the same time as this one, in place of those told before."""
        self.conflicts = list(conflicts)

    def __repr__(self) -> str:
        pools = ", ".join(pool.pool_name for pool in self.pool_candidates)
        return f"BufferInfo({self.name_hint!r}, {self.size_bytes} bytes, in {pools})"


class PoolAllocation:
    """The place of a buffer: a memory, and the bytes from its start."""

    def __init__(self, pool_info: PoolInfo, byte_offset: int | IntImm) -> None:
        self.pool_info = pool_info
        self.byte_offset = IntImm("int64", int(byte_offset))

    def __repr__(self) -> str:
        return f"PoolAllocation({self.pool_info.pool_name!r}, {self.byte_offset})"


Allocations = Mapping[BufferInfo, PoolAllocation]
Algorithm = Callable[[list[BufferInfo], int], Allocations]
REGISTERED = "tir.usmp.algo."


def registered(name: str) -> Algorithm:
    """Return the planner that is registered as ``tir.usmp.algo.<name>``."""
    found = get_global_func(REGISTERED + name, allow_missing=True)
    if found is None:
        names = [n for n in list_global_func_names() if n.startswith(REGISTERED)]
        known = [*ALGORITHMS, *(n.removeprefix(REGISTERED) for n in names)]
        raise LoweringError(
            f"tir.usmp.custom_algorithm {name!r}: there is no such planner."
            f"{did_you_mean(name, known)} Register it: "
            f'@register_func("{REGISTERED}{name}")'
        )
    return found


def planned_by(
    algorithm: Algorithm, name: str, blocks: Sequence[Block], pools: Sequence[Pool]
) -> Plan:
    """Return the plan that a user's function makes of these blocks.

    Raises LoweringError where its answer leaves a block out, or is no plan.
    """
    infos = [
        WorkspacePoolInfo(
            pool.name, (), PoolInfoProperties(-1 if pool.size_bytes is None else pool.size_bytes)
        )
        for pool in pools
    ]
    number_of = {pool.name: number for number, pool in enumerate(pools)}
    buffers = [
        BufferInfo(
            block.name, block.size_bytes,
            [i for i in infos if not block.pools or i.pool_name in block.pools],
            block.alignment_bytes,
        )
        for block in blocks
    ]  # fmt: skip
    for buffer, block in zip(buffers, blocks, strict=True):
        met = zip(buffers, blocks, strict=True)
        buffer.set_conflicts([b for b, o in met if o is not block and o.meets(block)])
    bound = lower_bound(blocks) if blocks else 0
    allocations = algorithm(buffers, bound)
    if not isinstance(allocations, Mapping):
        raise ArgumentTypeError(
            f"the memory planner {name!r} returned {type(allocations).__name__}: it returns a dict "
            "of a PoolAllocation for each BufferInfo"
        )
    offsets, pool_of = [], []
    for buffer in buffers:
        allocation = allocations.get(buffer)
        if (
            not isinstance(allocation, PoolAllocation)
            or allocation.pool_info.pool_name not in number_of
        ):
            raise LoweringError(
                f"the memory planner {name!r} gave {buffer.name_hint} the allocation "
                f"{allocation!r}: it returns a PoolAllocation in one of pool_candidates for each "
                "buffer"
            )
        offsets.append(int(allocation.byte_offset))
        pool_of.append(number_of[allocation.pool_info.pool_name])
    size = _needed(blocks, offsets, pool_of)
    result = Plan(
        tuple(blocks), tuple(offsets), size, bound, name,
        pools=tuple(pools), pool_of=tuple(pool_of) if len(pools) > 1 else (),
    )  # fmt: skip
    try:
        check_plan(result)
    except AssertionError as error:
        raise LoweringError(f"the memory planner {name!r} is wrong: {error}") from None
    return result


def _needed(blocks: Sequence[Block], offsets: Sequence[int], pool_of: Collection[int]) -> int:
    ends: dict[int, int] = {}
    for block, offset, pool in zip(blocks, offsets, pool_of, strict=True):
        ends[pool] = max(ends.get(pool, 0), offset + block.size_bytes)
    return sum(ends.values())
