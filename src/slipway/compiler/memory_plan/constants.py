"""Which memory each constant lies in: constants live for ever, so that only sizes count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slipway.compiler.memory_plan.block import Pool, align_up
from slipway.errors import LoweringError


def place_constants(
    sizes: Mapping[str, int], pools: Sequence[Pool], alignment_bytes: int = 16
) -> dict[str, str]:
    """Return the pool's name of each constant.

    `sizes` are bytes by name, `pools` the memories, the preferred one first.  The largest constants
    choose first, and each takes the first pool with room left for it.  Raises LoweringError when
    one fits into none.
    """
    used = dict.fromkeys((pool.name for pool in pools), 0)
    found: dict[str, str] = {}
    for name in sorted(sizes, key=lambda n: (-sizes[n], n)):
        for pool in pools:
            start = align_up(used[pool.name], alignment_bytes)
            if pool.size_bytes is None or start + sizes[name] <= pool.size_bytes:
                used[pool.name] = start + sizes[name]
                found[name] = pool.name
                break
        else:
            have = ", ".join(f"{p.name} {p.size_bytes} B" for p in pools)
            raise LoweringError(
                f"the constants need {sum(sizes.values())} B and do not fit into the memory pools "
                f"({have}): {name} of {sizes[name]} B has no room. Give a larger or a further pool."
            )
    return found
