"""What cost models and thresholds assume of every GPU, until somebody measures it for one.

What a target says of its device comes first: threads of a block, threads in step, shared memory,
registers.  What it does not say stands here, each number with its unit, as `target.costs` has it
for processors.  They are assumptions about a usual device and no fits: `docs/targets.md` lists
them, and says for which of them a device was asked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuCosts:
    """Numbers of the choices for GPUs: threads, registers, lengths, or ratios to a multiply-add.

    A device that is busy:

    - `busy_threads`, `busy_warps`: fewer leave units of a device without work; the second for
      instructions of whole warps.
    - `busy_rows`: from so many rows on, a thread for each keeps it busy.
    - `tile_threads`, `tile_sums`: a thread's tile grows while there are so many threads, up to so
      many sums of each.
    - `tile_side`, `tile_saving`: it has more rows, which lie apart in memory, only where that saves
      such a part of its reads.
    - `processor_threads`, `processor_sums`: the same of a device that is a processor, whose driver
      runs a thread in each of its lanes, and whose registers are memory that it has near.
    - `processor_product_sums`: of its products of matrices, whose threads have no image in
      registers.
    - `processor_row`, `processor_steps`: of a row that such a thread has for itself, the elements
      that it keeps at most, and those of an iteration.
    - `processor_lanes`: of such a row, the sums that a thread has beside each other where it has
      all of a processor's vectors, at most.
    - `exact_lanes`: with so many of them a long sum keeps its bits, and need not be cut for it.
    - `processor_taps`: of a convolution where threads are such lanes, the taps beside each other
      that are unrolled, at most.
    - `full_block`, `full_warp_block`: threads of a block that hide what each of them waits for; the
      second where warps compute products.

    A thread's registers:

    - `thread_registers`: sums and operands of a tile, before fewer threads fit.
    - `block_registers`: of a block, on the smallest devices with CUDA.
    - `other_registers`: what a thread needs beside its tile.
    - `warp_sums`: of a thread whose warp computes products; with what it fetches, all stay there.
    - `most_threads`: of a block of such warps, or of an attention: more wait at every barrier, and
      leave each too few registers.

    Memory:

    - `banks`, `bank_bytes`: banks of shared memory, and the bytes of each that come at once.
    - `sector_bytes`: of global memory, what comes together.
    - `gathered_bytes`: of steps that are apart in global memory, what a thread of a product of
      warps stores at once, at most: more take registers that the products need.

    What a step costs, in multiply-adds:

    - `shared_cost`, `global_cost`: to read an element of shared memory, and of global memory.
    - `warp_shared_cost`, `warp_global_cost`: eight bytes of either, beside a product of a warp.
    - `tree_cost`: a step of a tree over a row's threads.
    - `shuffle_cost`: the same between threads of a warp, which need no memory for it.
    - `apart_cost`: an element whose neighbours no other thread reads.
    - `barrier_cost`, `exponential_cost`: of an attention; the second of a softmax too.
    - `launch_cost`: a launch, of all threads together: 256 steps of `busy_threads`.  1 us beside
      5120 lanes at 1.4 GHz would be 440 such steps, 10 us beside a phone's 384 at 0.6 GHz 140.

    From which sizes on something pays:

    - `tile_length`: rows, columns and depth of a product whose tiles lie in shared memory.
    - `row_length`, `row_count`: a row that several threads share, and rows of a thread each.
    - `part_length`, `longest_sum`: a reduction that may be cut into parts of a thread each, and one
      that always is: the last elements of a longer one are added to a sum that has few bits left
      for them.
    - `thread_steps`: of the part that a thread reduces, and of the depth of a product, at most:
      llvmpipe, lavapipe's compiler, ends all loops of a thread after 65,535 steps, and counts those
      of the loops around the innermost one, too.
    - `vector_rows`, `vector_depth`: rows of a product, at most, that are sums of several threads
      each, and the depth of such a sum.
    - `transposed_rows`, `transposed_depth`: of a dense layer whose weights are transposed.

    """

    busy_threads: int = 16384
    busy_warps: int = 512
    busy_rows: int = 4096
    tile_threads: int = 1024
    tile_sums: int = 16
    tile_side: int = 4
    tile_saving: float = 0.125
    processor_threads: int = 32
    processor_sums: int = 64
    processor_product_sums: int = 128
    processor_row: int = 1024
    processor_steps: int = 8
    processor_lanes: int = 16
    exact_lanes: int = 4
    processor_taps: int = 8
    full_block: int = 64
    full_warp_block: int = 128

    thread_registers: int = 96
    block_registers: int = 32768
    other_registers: int = 48
    warp_sums: int = 64
    most_threads: int = 256

    banks: int = 32
    bank_bytes: int = 4
    sector_bytes: int = 32
    gathered_bytes: int = 8

    shared_cost: float = 1
    global_cost: float = 8
    warp_shared_cost: float = 0.5
    warp_global_cost: float = 2
    tree_cost: float = 6
    shuffle_cost: float = 2
    apart_cost: float = 8
    barrier_cost: float = 8
    exponential_cost: float = 8
    launch_cost: float = 256 * 16384

    tile_length: int = 32
    row_length: int = 32
    row_count: int = 16
    part_length: int = 512
    longest_sum: int = 8192
    thread_steps: int = 32768
    vector_rows: int = 8
    vector_depth: int = 64
    transposed_rows: int = 16
    transposed_depth: int = 128


ANY_GPU = GpuCosts()
