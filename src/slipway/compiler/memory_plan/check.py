"""Verify a plan from its offsets alone, knowing nothing of how it was made."""

from __future__ import annotations

from slipway.compiler.memory_plan.block import Plan


def check_plan(result: Plan) -> None:
    """Verify a plan.

    Raises AssertionError, naming both blocks, when two that are alive together share a byte and no
    share allows it, when an offset is not aligned, when a block lies in a pool that it may not, or
    when it reaches past the pool or the arena.
    """
    shares = {(s.output, s.input): s for s in result.shares}
    sizes = [result.pool_bytes(pool) for pool in range(len(result.pools))]
    if sum(sizes) > result.size_bytes:
        raise AssertionError(f"a block lies outside the arena of {result.size_bytes} bytes")
    placed = list(zip(result.blocks, result.offsets, strict=True))
    for index, (block, offset) in enumerate(placed):
        pool = result.pools[result.pool_index(index)]
        if offset % block.alignment_bytes:
            raise AssertionError(f"{block.name} at {offset} is not {block.alignment_bytes}-aligned")
        end = offset + block.size_bytes
        if offset < 0 or (pool.size_bytes is not None and end > pool.size_bytes):
            raise AssertionError(f"{block.name} lies outside {pool.name}")
        if block.pools and pool.name not in block.pools:
            raise AssertionError(f"{block.name} lies in {pool.name}, not in {block.pools}")
        for before in range(index):
            other, start = placed[before]
            if result.pool_index(before) != result.pool_index(index) or not block.meets(other):
                continue
            if end <= start or start + other.size_bytes <= offset:
                continue
            as_output, as_input = shares.get((index, before)), shares.get((before, index))
            if as_output is not None and as_output.allows(offset, start):
                continue
            if as_input is not None and as_input.allows(start, offset):
                continue
            raise AssertionError(f"{block.name} and {other.name} share bytes while both live")
    for share in result.shares:
        output, into = result.blocks[share.output], result.blocks[share.input]
        if into.last != output.first:
            raise AssertionError(f"{into.name} lives on after {output.name} may take its bytes")
