"""Banks of shared memory: how often a warp has to ask for what its threads want at once.

Words of different banks come together; of one bank, one word at a time.  A word that several
threads want comes once.  Threads that want eight bytes each ask half a warp at a time, and those
that want sixteen a quarter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from slipway.ir.instructions.warp_products import WARP
from slipway.target.gpu_costs import ANY_GPU


def passes(offsets: Sequence[int], size: int) -> float:
    """Return the passes of a warp for `size` bytes at each thread's offset, beside the fewest."""
    lanes = at_once(size)
    counts = [_of_request(offsets[i : i + lanes], size) for i in range(0, len(offsets), lanes)]
    return sum(counts) / len(counts)


def at_once(size: int) -> int:
    """Return how many threads of a warp ask together for `size` bytes each."""
    return WARP // max(1, size // ANY_GPU.bank_bytes)


def _of_request(offsets: Sequence[int], size: int) -> int:
    wanted: dict[int, set[int]] = {}
    for offset in offsets:
        last = (offset + size - 1) // ANY_GPU.bank_bytes
        for word in range(offset // ANY_GPU.bank_bytes, last + 1):
            wanted.setdefault(word % ANY_GPU.banks, set()).add(word)
    return max(map(len, wanted.values()))


@lru_cache(maxsize=256)
def rows_apart(rows: int, stride: int, length: int, size: int) -> int:
    """Return how many rows apart those lie which a warp stores at once, for the fewest passes.

    `rows` rows of `length` bytes lie `stride` bytes apart; each thread stores `size` bytes, and
    neighbours store neighbours, as far as a row goes.
    """
    along = max(1, length // size)  # threads of a row
    together = max(1, WARP // along)
    apart = [1 << n for n in range(rows.bit_length()) if (together << n) <= rows]

    def taken(distance: int) -> float:
        offsets = [(t // along * distance, t % along) for t in range(WARP)]
        return passes([row * stride + column * size for row, column in offsets], size)

    return min(apart, key=taken, default=1)


@lru_cache(maxsize=64)
def parts_beside(stride: int, length: int, size: int, element: int) -> int:
    """Return how many parts of a row the threads that ask at once store.

    Rows of `length` bytes lie `stride` bytes apart; each thread stores `size` bytes, and neighbours
    store the same part of rows that follow each other, as many rows as there are threads for.  They
    gather them element by element, neighbours of one part beside each other in global memory: more
    parts are fewer passes, and more sectors of global memory for each element.
    """
    together = at_once(size)
    most = min(length // size, together)

    def taken(parts: int) -> float:
        rows = together // parts
        offsets = [(t // together * rows + t % rows, t // rows % parts) for t in range(WARP)]
        stored = passes([row * stride + part * size for row, part in offsets], size)
        sectors = parts * -(-WARP // parts * element // ANY_GPU.sector_bytes)
        return stored * WARP / together + size // element * sectors

    return min((1 << n for n in range(most.bit_length())), key=taken)
