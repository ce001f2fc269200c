"""Products on a GPU with both operands in shared memory: a block computes a tile of the output.

At each step of the reduction the threads of a block fetch a panel of each operand together, and
each computes its part of the tile in registers.  A thread's rows lie beside each other, its
columns a stride apart (virtual threads), so that neighbours read neighbouring elements; rows of a
panel are padded by one element, so that they lie in different banks.

It is the default where the target says that threads run in step (``thread_warp_size`` above 1):
such devices have memory for it.  On others, processors among them, shared memory is memory like
any, and waiting for each other costs more than it saves; there it can be asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.gpu.banks import passes, rows_apart
from slipway.backends.gpu.limits import most_steps, most_threads, panel_bytes, panel_scope
from slipway.backends.gpu.lowering.fill_ahead import copies_while_computing
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    only_reader,
    readers_of,
    schedule_elements,
)
from slipway.backends.gpu.warps import runs_in_step
from slipway.backends.stages import inline_injective, producers
from slipway.backends.strategy import Knobs, Problem, register_strategy
from slipway.ir.instructions.async_copies import COPIED_BYTES
from slipway.ir.instructions.warp_products import WARP
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs

_BLOCKS = (16, 32, 64, 128)
_TILES = (1, 2, 4, 8)
_DEPTHS = (8, 16)
PAIR = 2  # of float16, which GPUs add up by one instruction
STAGES = (1, 2, 3, 4)  # from 2 on where devices copy while they compute


@dataclass(frozen=True)
class SharedKnobs(Knobs):
    """A block's tile, a thread's part of it, the depth of the panels, and steps fetched at once."""

    block_rows: int
    block_columns: int
    rows: int
    columns: int
    depth: int
    stages: int = 1

    @property
    def threads(self) -> tuple[int, int]:
        """Threads of a block along the rows and the columns of its tile."""
        return self.block_rows // self.rows, self.block_columns // self.columns

    def panel_bytes(self, dtype: str) -> int:
        """Return the bytes of all panels of a block."""
        row = (self.depth + 1) * dtypes.bytes_of(dtype)
        return (self.block_rows + self.block_columns) * row * self.stages


@dataclass(frozen=True)
class Sizes:
    """What a product is of: products beside each other, rows and columns of each, and its sum."""

    batch: int
    rows: int
    columns: int
    depth: int

    @property
    def is_large(self) -> bool:
        """Return whether a tile is worth its shared memory."""
        return min(self.rows, self.columns, self.depth) >= ANY_GPU.tile_length

    def fits(self, target: Target) -> bool:
        """Return whether it is, and threads take the whole depth."""
        return self.is_large and self.depth <= (most_steps(target) or self.depth)


@dataclass(frozen=True)
class Lies:
    """How panels lie in shared memory: bytes of an element, and which have the sum's steps last."""

    size: int
    by_step: tuple[bool, bool]


FLOATS = Lies(4, (True, True))


def product_sizes(in_types: Sequence[Any], attrs: Attrs | None) -> Sizes | None:
    """Return the sizes of a product of rows with rows, where they are known."""
    if getattr(attrs, "transpose_a", False) or not getattr(attrs, "transpose_b", True):
        return None
    return any_product_sizes(in_types, attrs)


def any_product_sizes(in_types: Sequence[Any], attrs: Attrs | None) -> Sizes | None:
    """Return the sizes of a product, however its operands lie, where they are known."""
    shapes = [tuple(t.shape) for t in in_types[:2]]
    if not all(isinstance(n, int) for shape in shapes for n in shape):
        return None
    left, right = shapes
    if len(left) < 2 or len(left) != len(right):
        return None
    rows, depth = left[:-3:-1] if getattr(attrs, "transpose_a", False) else left[-2:]
    columns = right[-2] if getattr(attrs, "transpose_b", True) else right[-1]
    return Sizes(max(prod(left[:-2]), prod(right[:-2])), rows, columns, depth)


def _is_default(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    return runs_in_step(target) and _applies(attrs, in_types, target)


def _is_choice(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    return not runs_in_step(target) and _applies(attrs, in_types, target)


def _applies(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    sizes = any_product_sizes(in_types, attrs)
    if sizes is None or not sizes.fits(target):
        return False
    return bool(legal_knobs(in_types[0].dtype, target))


def legal_stages(dtype: str, target: Target, copied: bool = True) -> Sequence[int]:
    """Return how many steps' panels there may be; `copied`: they are elements of the operands."""
    one = copied and dtypes.bytes_of(dtype) in COPIED_BYTES and copies_while_computing(target)
    return STAGES if one else STAGES[:1]


def legal_knobs(dtype: str, target: Target, copied: bool = True) -> list[SharedKnobs]:
    """Return the knobs with which a block of panels of `dtype` fits into a device of the target."""
    found = []
    stages = legal_stages(dtype, target, copied)
    for values in product(_BLOCKS, _BLOCKS, _TILES, _TILES, _DEPTHS, stages):
        knobs = SharedKnobs(*values)
        threads = prod(knobs.threads)
        registers = (
            knobs.rows * knobs.columns + knobs.rows + knobs.columns + ANY_GPU.other_registers
        )
        fits = threads <= most_threads(target)
        fits = fits and knobs.panel_bytes(dtype) <= panel_bytes(target, knobs.stages)
        fits = fits and threads * registers <= ANY_GPU.block_registers
        if fits and knobs.rows <= knobs.block_rows and knobs.columns <= knobs.block_columns:
            found.append(knobs)
    return found


@lru_cache(maxsize=1024)
def _panel_passes(across: int, rows: int, depth: int, lies: Lies) -> tuple[float, float]:
    """Return the passes of a warp for an element of each panel, `across` threads in a row."""
    size, padded = lies.size, depth + 1
    apart = rows * (padded if lies.by_step[0] else 1), padded if lies.by_step[1] else 1
    warp = range(WARP)
    return (
        passes([lane // across * apart[0] * size for lane in warp], size),
        passes([lane % across * apart[1] * size for lane in warp], size),
    )


def product_cost(sizes: Sizes, knobs: SharedKnobs, lies: Lies = FLOATS) -> float:
    """Return the multiply-adds that the work of all threads is worth, where enough of them run."""
    across = -(-sizes.rows // knobs.block_rows) * -(-sizes.columns // knobs.block_columns)
    threads = prod(knobs.threads)
    fetched = (knobs.block_rows + knobs.block_columns) / threads
    left, right = _panel_passes(knobs.threads[1], knobs.rows, knobs.depth, lies)
    read = knobs.rows * left + knobs.columns * right
    step = knobs.rows * knobs.columns + ANY_GPU.shared_cost * read
    stored = ANY_GPU.shared_cost if knobs.stages == 1 else 0  # else the copy does it
    step += (ANY_GPU.global_cost + stored) * fetched
    registers = knobs.rows * knobs.columns + knobs.rows + knobs.columns
    running = sizes.batch * across * threads
    busy = min(1.0, running / ANY_GPU.busy_threads) * min(1.0, ANY_GPU.thread_registers / registers)
    full = min(1.0, threads / ANY_GPU.full_block)
    return running * -(-sizes.depth // knobs.depth) * knobs.depth * step / (busy * full)


def _cost(problem: Problem, knobs: SharedKnobs) -> float:
    sizes = any_product_sizes(problem.in_types, problem.attrs)
    assert sizes is not None
    by_step = steps_beside(problem.attrs)
    return product_cost(sizes, knobs, Lies(dtypes.bytes_of(problem.in_types[0].dtype), by_step))


def steps_beside(attrs: Any) -> tuple[bool, bool]:
    """Return of which operands steps of the sum lie beside each other."""
    return not getattr(attrs, "transpose_a", False), getattr(attrs, "transpose_b", True)


def _knobs(problem: Problem) -> SharedKnobs:
    """Return the default knobs: those of the lowest cost."""
    legal = legal_knobs(problem.in_types[0].dtype, problem.target)
    return min(legal, key=lambda knobs: _cost(problem, knobs))


def shared_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs."""
    return {
        **tile_space(problem),
        "stages": legal_stages(problem.in_types[0].dtype, problem.target),
    }


def tile_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs but for steps that are fetched at once."""
    return {
        "block_rows": _BLOCKS,
        "block_columns": _BLOCKS,
        "rows": _TILES,
        "columns": _TILES,
        "depth": _DEPTHS,
    }


def panel_product(
    outs: Sequence[te.Tensor], anchor: te.Tensor
) -> tuple[te.Schedule, te.Tensor, te.Tensor, list[te.Tensor]] | None:
    """Return a schedule, its result, the sums, and the two panels that these are computed from.

    For computes with stages for sums and panels, whose `anchor` picks results from the sums.  All
    else is inlined; None where the kernel does more than that.
    """
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    (products,) = anchor.op.input_tensors
    panels = list(products.op.input_tensors)
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs, keep=[anchor, *panels])
    is_result = any(t.op is anchor.op for t in outs)
    out = anchor if is_result else only_reader(readers_of(schedule, outs), anchor.op, outs)
    if len(outs) != 1 or sums != [products.op] or out is None or len(panels) != 2:
        return None
    if not is_result:
        schedule[anchor].compute_inline()
    return schedule, out, products, panels


@register_strategy(
    "nn.dense", "nn.matmul", "nn.batch_matmul", name="threads.shared", priority=20,
    applies=_is_default, default=_knobs, space=shared_space, cost=_cost,
)  # fmt: skip
@register_strategy(
    "nn.dense", "nn.matmul", "nn.batch_matmul", name="threads.shared", priority=5,
    applies=_is_choice, default=_knobs, space=shared_space, cost=_cost,
)  # fmt: skip
def schedule_shared(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: SharedKnobs
) -> te.Schedule:
    """A tile for each block; a thread for each element where the kernel does more than that."""
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    operands = [t for t in anchor.op.input_tensors if isinstance(t.op, te.PlaceholderOp)]
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    is_result = any(t.op is anchor.op for t in outs)
    out = anchor if is_result else only_reader(readers_of(schedule, outs), anchor.op, outs)
    is_product = len(outs) == 1 and len(sums) == 1 and sums[0] is anchor.op
    if not is_product or out is None or len(operands) != 2 or operands[0].op is operands[1].op:
        return schedule_elements(problem, outs, anchor, ThreadKnobs(64))
    if is_result:
        tile = schedule.cache_write(anchor, "local")
    else:
        tile = anchor
        schedule[tile].set_scope("local")
    *batch, rows, columns = schedule[out].op.axis
    tiling = Tiling(schedule, knobs)
    tiling.bind(out, batch, rows, columns)
    step = tiling.sum_up(tile)
    by_step = steps_beside(problem.attrs)
    counts = knobs.block_rows, knobs.block_columns
    scope = panel_scope(problem.target, knobs.panel_bytes(operands[0].dtype))
    for operand, whole, count in zip(operands, by_step, counts, strict=True):
        tiling.share(schedule.cache_read(operand, scope, [tile]), tile, step, whole, count)
    return schedule


class Tiling:
    """A schedule whose blocks each compute a tile of a product from panels in shared memory."""

    def __init__(self, schedule: te.Schedule, knobs: SharedKnobs) -> None:
        self.schedule, self.knobs = schedule, knobs
        self.along = [te.thread_axis(f"threadIdx.{a}") for a in "yx"]
        self.bound_to: tuple[te.Tensor, te.IterVar] | None = None  # where a thread's part is

    def bind(
        self, out: te.Tensor, batch: Sequence[te.IterVar], rows: te.IterVar, columns: te.IterVar
    ) -> None:
        """Bind the tiles of the output to blocks and their parts to threads."""
        stage, knobs = self.schedule[out], self.knobs
        block_y, rows = stage.split(rows, factor=knobs.block_rows)
        block_x, columns = stage.split(columns, factor=knobs.block_columns)
        thread_y, rows = stage.split(rows, factor=knobs.rows)
        strip, thread_x = stage.split(columns, nparts=knobs.columns)
        stage.reorder(*batch, block_y, block_x, strip, thread_y, thread_x, rows)
        if batch:
            each = batch[0] if len(batch) == 1 else stage.fuse(*batch)
            stage.bind(each, te.thread_axis("blockIdx.z"))
        stage.bind(block_y, te.thread_axis("blockIdx.y"))
        stage.bind(block_x, te.thread_axis("blockIdx.x"))
        stage.bind(strip, te.thread_axis("vthread"))
        stage.bind(thread_y, self.along[0])
        stage.bind(thread_x, self.along[1])
        stage.unroll(rows)
        self.bound_to = out, thread_x

    def sum_up(self, tile: te.Tensor) -> tuple[te.IterVar, te.IterVar]:
        """Compute a thread's sums in its registers; return the loops over panels and in one."""
        assert self.bound_to is not None
        out, thread = self.bound_to
        stage = self.schedule[tile]
        stage.compute_at(self.schedule[out], thread)
        (step,) = stage.op.reduce_axis
        outer, inner = stage.split(step, factor=self.knobs.depth)
        rows, columns = stage.op.axis[-2:]
        stage.reorder(*stage.op.axis[:-2], outer, inner, rows, columns)
        if tile.dtype == "float16" and self.knobs.rows % PAIR == 0:
            rows, pair = stage.split(rows, factor=PAIR)
            stage.reorder(rows, columns, pair)
            stage.vectorize(pair)
        stage.unroll(rows)
        return outer, inner

    def share(
        self,
        panel: te.Tensor,
        tile: te.Tensor,
        step: tuple[te.IterVar, te.IterVar],
        by_step: bool,
        count: int,
    ) -> None:
        """Let all threads of a block fetch a panel, neighbours what lies beside each other.

        A thread's part of it goes through registers.  With the steps of the sum last, `count` rows
        are an element apart, and the threads of a warp fill rows that lie in different banks.
        """
        schedule, knobs = self.schedule, self.knobs
        outer, inner = step
        part = schedule.cache_read(panel, "local", [tile])
        schedule[part].compute_at(schedule[tile], inner)
        for axis in schedule[part].op.axis:
            schedule[part].unroll(axis)
        stage = schedule[panel]
        stage.compute_at(schedule[tile], outer)
        if knobs.stages > 1:
            stage.double_buffer(knobs.stages)
        *batch, rows, columns = stage.op.axis
        if by_step:
            size = dtypes.bytes_of(panel.dtype)
            stage.storage_align(rows, knobs.depth, 1)
            distance = rows_apart(count, (knobs.depth + 1) * size, knobs.depth * size, size)
            rows, row = stage.split(rows, factor=distance)
            stage.reorder(*batch, row, rows, columns)
            batch.append(row)
        fused = stage.fuse(*batch, rows, columns)
        fused, across = stage.split(fused, factor=knobs.threads[1])
        _, down = stage.split(fused, factor=knobs.threads[0])
        stage.bind(down, self.along[0])
        stage.bind(across, self.along[1])
