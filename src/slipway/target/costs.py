"""What cost models assume of every core, until somebody measures it for one.

Choices of strategies and knobs are made from the description of a core (`target.cores`): what it
multiplies, loads and caches.  What that does not say stands here, each number with its unit.  All
were fitted to timings of kernels of growing sizes on the x86 servers with AVX-512 of
``docs/performance.md``, one thread, and for sharing one thread against two.  ``docs/targets.md``
lists them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Numbers of the cost models: cycles, bytes, or ratios.

    Sharing, and streams of weights:

    - `share_cycles`: work in cycles from which another core helps; less is over before it has
      fetched its data from the first one.
    - `share_elements`: the same in elements, for loops that do little with each.
    - `ahead_bytes`: how far ahead of its use a panel of weights is prefetched.
    - `l2_share`: the part of the second-level cache that data may fill.
    - `streamed_positions`: up to so many positions of an image, a convolution waits for its
      weights unless they are prefetched.
    - `panel_positions`, `task_rows`: what the start of a part takes in its own work: positions for
      the first reading of a panel of weights, rows of an image for those it reads again.

    Tiles of registers:

    - `packed_rows`: from so many rows of data on, packing them for instructions on matrices pays.
    - `tap_words`: a step of a window over bytes takes as long as so many more words of its vector.
    - `load_cycles`: what a load adds to a step, beyond what its units are busy.
    - `loop_cycles`: what the loop of a tile takes to begin and to end.
    - `copied_line_cycles`: to copy a line of an image with its padding, from one cache to another.

    Attention:
    - `reread_rows`: to read key and value once takes as long as to multiply so many rows by them.
    - `far_scores`: how much longer products take whose scores leave the first-level cache.

    Winograd's algorithm, for a vector of channels:

    - `transform_products`: to transform an element in and out takes as long as so many products.
    - `weight_cycles`: to read a float32 of a kernel from beyond the caches.
    - `cold_weight_cycles`, `cold_bytes`: the same of kernels so long that nothing of them stays.
    - `winograd_gain`: the part of the direct way's time from which it is chosen.
    - `winograd_tiles`: with fewer tiles, reading the kernel takes longer than multiplying.
    - `winograd_l2_share`: the part of the second-level cache that a block of tiles may fill.

    """

    share_cycles: int = 20_000
    share_elements: int = 1 << 15
    ahead_bytes: int = 2048
    l2_share: float = 0.8
    streamed_positions: int = 100
    panel_positions: int = 5
    task_rows: int = 1

    packed_rows: int = 4
    tap_words: int = 4
    load_cycles: float = 0.1
    loop_cycles: float = 25
    copied_line_cycles: float = 4

    reread_rows: float = 8
    far_scores: float = 1.1

    transform_products: float = 4.8
    weight_cycles: float = 0.35
    cold_weight_cycles: float = 0.5
    cold_bytes: int = 8 << 20
    winograd_gain: float = 0.85
    winograd_tiles: int = 20
    winograd_l2_share: float = 0.6


ANY_CORE = Costs()
