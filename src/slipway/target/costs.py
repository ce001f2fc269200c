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
    - `share_vectors`: the same in vectors of float32 that are copied, for loops over elements.
    - `ahead_bytes`: how far ahead of its use a panel of weights is prefetched.
    - `l2_share`: the part of the second-level cache that data may fill.
    - `streamed_positions`: up to so many positions of an image, a convolution waits for its
      weights unless they are prefetched; `waiting_positions`: up to so many, for short ones too.
    - `panel_positions`, `task_rows`: what the start of a part takes in its own work: positions for
      the first reading of a panel of weights, rows of an image for those it reads again.

    Tiles of registers:

    - `packed_rows`: from so many rows of data on, packing them for instructions on matrices pays.
    - `tap_words`: a step of a window over bytes takes as long as so many more words of its vector.
    - `load_cycles`: what a load adds to a step, beyond what its units are busy.
    - `loop_cycles`: what the loop of a tile takes to begin and to end.
    - `copied_line_cycles`: to copy a line of an image with its padding, from one cache to another.
    - `row_steps`: taps of a line of one channel from which their loop stays a loop; it is unrolled
      where they are fewer, with the weights of all of them in registers.
    - `packed_matrix_rows`: from so many rows on, packing a computed right matrix pays.

    Counting steps takes instructions, unrolled ones take cache and registers:

    - `unrolled_nodes`: of the expressions in the copies of a loop over elements, at most.
    - `epilogue_nodes`: with an epilogue of more, whose constants fill registers, a tile takes one
      step at a time.
    - `sum_vectors`, `sum_steps`: of a sum along memory, vectors of partial results and the steps of
      each that are unrolled.
    - `tile_cycles`, `tile_row_cycles`: an instruction on tiles takes so long, and so much for each
      row of data; `tile_load_cycles`: to load a tile; `tile_ahead_bytes`: how far ahead weights
      that are read once or twice are prefetched.
    - `tile_instructions`: of a tile of integer products in a step, with less of which several steps
      are unrolled.
    - `lane_row_products`: multiply-adds of a step of a tile whose rows are lanes, at most.
    - `window_positions`: neighbouring positions whose windows are taken together.
    - `window_products`: of those positions that are unrolled, at most.
    - `window_dots`: the same of instructions that take several products each.
    - `run_windows`, `run_taps`: of largest values, neighbouring windows that share their columns,
      at most, and the taps of a window's row and column together; `run_registers`: the part of the
      registers that the columns of a run may fill.
    - `transposed_run`: square tiles along the rows that are read, before those beside them.

    Attention:
    - `attention_lanes`: with shorter vectors it is faster in its parts, and has few scores anyway.
    - `query_rows`: of a task, at most.
    - `copied_reads`: from so many tasks that read a key or value, a packed copy of it pays.
    - `reread_rows`: to read key and value once takes as long as to multiply so many rows by them.
    - `far_scores`: how much longer products take whose scores leave the first-level cache.

    Winograd's algorithm, for a vector of channels:

    - `transform_products`: to transform an element in and out takes as long as so many products.
    - `few_transform_products`: the same where there are fewer channels than `winograd_channels`.
    - `weight_cycles`: to read a float32 of a kernel from beyond the caches.
    - `cold_weight_cycles`, `cold_bytes`: the same of kernels so long that nothing of them stays.
    - `winograd_gain`: the part of the direct way's time from which it is chosen.
    - `winograd_tiles`: with fewer tiles, reading the kernel takes longer than multiplying.
    - `winograd_l2_share`: the part of the second-level cache that a block of tiles may fill.
    - `winograd_channels`, `winograd_positions`: with fewer, transforms take longer, or too long.

    Other lowering of graphs:

    - `plain_gain`: the part of the time on blocks from which a convolution stays plain;
      `plain_channel_gain`: the same where each channel has filters of its own.
    - `half_vectors`: the part of the lanes of whole vectors from which a product of several rows
      has halves of them: tiles of halves read more for each product.
    - `several_vectors`: the part of the predicted time of blocks of one vector from which a product
      whose units fill none has blocks of several.
    - `row_end_cycles`: of both ends of a row that is copied with zeros beside it, which vectors do
      not fill.
    - `pair_products`: of each position of an image with fewer than four channels, that outweigh
      packing it for instructions on pairs.
    - `pair_columns`: from so many columns on, packing a right matrix in pairs pays.
    - `paired_score_rows`: from so many queries and keys on, an attention in bfloat16 is faster in
      its parts, whose products take pairs; `paired_scores`: up to so many, which leave the caches.
    - `subpixel_gain`: the part of the products of one convolution for all remainders of a
      transposed one, up to which one for each is chosen.
    - `subpixel_filling`: so many times the taps of a transposed convolution, zeros included, may be
      multiplied.

    """

    share_cycles: int = 20_000
    share_vectors: int = 1 << 13
    ahead_bytes: int = 2048
    l2_share: float = 0.8
    streamed_positions: int = 100
    waiting_positions: int = 28
    panel_positions: int = 5
    task_rows: int = 1

    packed_rows: int = 4
    tap_words: int = 4
    load_cycles: float = 0.1
    loop_cycles: float = 25
    copied_line_cycles: float = 4
    row_steps: int = 5
    packed_matrix_rows: int = 4

    unrolled_nodes: int = 48
    epilogue_nodes: int = 16
    sum_vectors: int = 4
    sum_steps: int = 4
    tile_instructions: int = 16
    tile_cycles: float = 8
    tile_row_cycles: float = 0.5
    tile_load_cycles: float = 8
    tile_ahead_bytes: int = 4096
    window_positions: int = 8
    window_products: int = 128
    window_dots: int = 40
    lane_row_products: int = 128
    run_windows: int = 16
    run_taps: int = 10
    run_registers: float = 0.625
    transposed_run: int = 4

    attention_lanes: int = 4
    query_rows: int = 128
    copied_reads: int = 3
    reread_rows: float = 8
    far_scores: float = 1.1

    transform_products: float = 4.8
    few_transform_products: float = 9.0
    weight_cycles: float = 0.35
    cold_weight_cycles: float = 0.5
    cold_bytes: int = 8 << 20
    winograd_gain: float = 0.85
    winograd_tiles: int = 20
    winograd_l2_share: float = 0.6
    winograd_channels: int = 16
    plain_gain: float = 0.9
    plain_channel_gain: float = 1.1
    half_vectors: float = 0.9
    several_vectors: float = 0.9
    row_end_cycles: int = 30
    winograd_positions: int = 16

    pair_products: int = 900
    pair_columns: int = 16
    paired_score_rows: int = 64
    paired_scores: int = 1 << 23
    subpixel_gain: float = 0.85
    subpixel_filling: float = 8


ANY_CORE = Costs()
