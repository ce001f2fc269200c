"""Products and convolutions on matrix units: NVIDIA's (``mma.sync``, sm_75 on) and others'.

As `shared.py` does it, a block computes a tile of the output from panels in shared memory; its
warps divide the tile, and a warp adds products of whole matrices of 16 x 32 bytes by 32 bytes x 8
to sums in the registers of its threads (`ir/instructions/warp_products.py`)::

    float16, bfloat16 -> float32        int8, uint8 -> int32

Apple's multiply matrices of 8 x 8, float32 too and no bytes (`simdgroup_products.py`),
AMD's matrices of 16 x 16 (`amd_products.py`), on CDNA float32 too, by waves of 64 threads; of
Vulkan's devices their descriptions say what they multiply (`cooperative_products.py`).

Panels are padded with zeros to whole tiles: every extent will do.  Their rows are apart such
that the threads of a warp fetch eight bytes each from different banks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.gpu.banks import at_once, parts_beside, rows_apart
from slipway.backends.gpu.limits import most_threads, panel_bytes, panel_scope
from slipway.backends.gpu.lowering.fill_ahead import copies_while_computing
from slipway.backends.gpu.schedules.generic import ThreadKnobs, schedule_elements
from slipway.backends.gpu.schedules.shared import (
    STAGES,
    Sizes,
    any_product_sizes,
    panel_product,
    steps_beside,
)
from slipway.backends.gpu.schedules.shared_conv import Geometry, conv_operands
from slipway.backends.gpu.schedules.warp_product import (
    MatrixProduct,
    lanes_of,
    matrix_sides,
    product_of_target,
    sum_bytes,
    warp_intrinsic,
)
from slipway.backends.strategy import Knobs, Problem, register_strategy
from slipway.ir import ops
from slipway.ir.expr import PrimExpr
from slipway.ir.instructions.warp_products import COLUMNS, ROWS, WARP
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs


_BLOCKS = (32, 64, 128)
_TILES = (2, 4, 8)
_WARP_ROWS, _WARP_COLUMNS = 16, 8  # of one instruction
_PANEL_BYTES = 64  # of a panel's row
_PADS = {
    "cuda": (16, 32),
    "metal": (32, 16),
    "rocm": (16, 16),
    "vulkan": (16, 16),
}  # bytes between rows of panels, at most
_FETCHED_BYTES = 16  # by a thread from global memory at once


@dataclass(frozen=True)
class MatrixKnobs(Knobs):
    """A block's tile, a thread's part of it, and steps fetched at once.

    A warp computes `warp_tile`, whatever part of that is a thread's on matrix units of a kind.
    """

    block_rows: int
    block_columns: int
    rows: int
    columns: int
    stages: int = 1
    lanes: int = WARP  # threads of a warp

    @property
    def warp_tile(self) -> tuple[int, int]:
        """Rows and columns that a warp computes."""
        wide = _WARP_COLUMNS * self.lanes // WARP
        return self.rows // ROWS * _WARP_ROWS, self.columns // COLUMNS * wide

    @property
    def warps(self) -> tuple[int, int]:
        """Warps of a block along the rows and the columns of its tile."""
        down, across = self.warp_tile
        return self.block_rows // down, self.block_columns // across

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.lanes * self.warps[0] * self.warps[1]

    def panel_bytes(self, pads: Sequence[int]) -> int:
        """Return the bytes of all panels of a block, whose rows are so many bytes apart."""
        left, right = (_PANEL_BYTES + pad for pad in pads)
        return (self.block_rows * left + self.block_columns * right) * self.stages


@lru_cache(maxsize=16)
def legal_knobs(target: Target) -> tuple[MatrixKnobs, ...]:
    """Return the knobs whose blocks fit a device of the target."""
    found = []
    stages = STAGES if copies_while_computing(target) else STAGES[:1]
    rows, columns = matrix_sides(target)
    for values in product(_BLOCKS, _BLOCKS, _TILES, _TILES, stages):
        knobs = MatrixKnobs(*values, lanes_of(target))
        down, across = knobs.warps
        shared = knobs.panel_bytes(_PADS[target.kind.name]) + down * across * sum_bytes(target)
        most = min(most_threads(target), ANY_GPU.most_threads)
        fits = (
            knobs.warp_tile[0] % rows == 0
            and knobs.warp_tile[1] % columns == 0
            and 0 < knobs.threads <= most
            and shared <= panel_bytes(target, knobs.stages)
        )
        if fits and knobs.rows * knobs.columns <= ANY_GPU.warp_sums:
            found.append(knobs)
    return tuple(found)


def matrix_cost(
    sizes: Sizes, knobs: MatrixKnobs, copied: tuple[bool, bool] = (False, False)
) -> float:
    """Return the products of warps that the work is worth, where enough of them run.

    `copied` says which panels come while threads compute, where there are several stages.
    """
    blocks = sizes.batch * -(-sizes.rows // knobs.block_rows)
    blocks *= -(-sizes.columns // knobs.block_columns)
    rows, columns = knobs.rows // ROWS, knobs.columns // COLUMNS
    step = rows * columns + ANY_GPU.warp_shared_cost * (2 * rows + columns)
    for count, is_copied in zip((knobs.block_rows, knobs.block_columns), copied, strict=True):
        fetched = count * 4 / knobs.threads  # eight bytes each
        stored = 0 if is_copied and knobs.stages > 1 else ANY_GPU.warp_shared_cost
        step += (ANY_GPU.warp_global_cost + stored) * fetched
    running = blocks * knobs.threads / knobs.lanes
    busy = min(1.0, running / ANY_GPU.busy_warps) * min(
        1.0, knobs.threads / ANY_GPU.full_warp_block
    )
    return running * step / busy


# -- what is multiplied ----------------------------------------------------------------------------

Element = Callable[[PrimExpr, PrimExpr, PrimExpr], Any]  # of batch, row or column, and step


@dataclass(frozen=True)
class MatrixSides:
    """A product's rows and columns."""

    left: Element
    right: Element


def _entry(in_types: Sequence[Any], out: str, target: Target, swap: bool) -> MatrixProduct | None:
    first, second = (t.dtype for t in in_types[:2])
    return product_of_target(target, *((second, first) if swap else (first, second)), out)


def _product_sizes(attrs: Any, in_types: Sequence[Any]) -> tuple[Sizes, bool] | None:
    sizes = any_product_sizes(in_types, attrs)
    return None if sizes is None or len(in_types[0].shape) > 3 else (sizes, False)


def _conv_sizes(attrs: Any, in_types: Sequence[Any]) -> tuple[Sizes, bool] | None:
    geometry = Geometry.of(attrs, in_types)
    return None if geometry is None else (geometry.sizes, not geometry.channels_last)


def _sizes_of(attrs: Any, in_types: Sequence[Any]) -> tuple[Sizes, bool] | None:
    """Return the sizes of a product, and whether the second operand has its rows."""
    is_conv = hasattr(attrs, "kernel_layout")
    return (_conv_sizes if is_conv else _product_sizes)(attrs, in_types)


def applies(attrs: Attrs | None, in_types: Sequence[Any], target: Target) -> bool:
    """Return whether the target's matrix units compute a call, and it is worth their tiles."""
    found = _sizes_of(attrs, in_types)
    if found is None:
        return False
    sizes, swap = found
    out = getattr(attrs, "out_dtype", "") or in_types[0].dtype
    entry = _entry(in_types, out, target, swap)
    is_large = min(sizes.rows, sizes.columns, sizes.depth) >= ANY_GPU.tile_length
    return entry is not None and is_large and bool(_fitting(attrs, in_types, target))


def _fitting(attrs: Any, in_types: Sequence[Any], target: Target) -> list[MatrixKnobs]:
    """Return the legal knobs whose blocks are of one group of channels.

    More than one stage is for panels of which the device copies one at least by itself.
    """
    legal = list(legal_knobs(target))
    if not any(fetch.is_copied for fetch in _fetches(attrs, in_types)):
        legal = [k for k in legal if k.stages == 1]
    if not hasattr(attrs, "kernel_layout"):
        return legal
    geometry = Geometry.of(attrs, in_types)
    assert geometry is not None
    return [k for k in legal if geometry.divides(k.block_rows, k.block_columns)]


def _cost(problem: Problem, knobs: MatrixKnobs) -> float:
    found = _sizes_of(problem.attrs, problem.in_types)
    assert found is not None
    left, right = _fetches(problem.attrs, problem.in_types)
    return matrix_cost(found[0], knobs, (left.is_copied, right.is_copied))


def _knobs(problem: Problem) -> MatrixKnobs:
    legal = _fitting(problem.attrs, problem.in_types, problem.target)
    return min(legal, key=lambda knobs: _cost(problem, knobs))


def _space(problem: Problem) -> dict[str, Sequence[Any]]:
    legal = _fitting(problem.attrs, problem.in_types, problem.target)
    return {
        "block_rows": _BLOCKS, "block_columns": _BLOCKS, "rows": _TILES, "columns": _TILES,
        "stages": sorted({k.stages for k in legal}), "lanes": (lanes_of(problem.target),),
    }  # fmt: skip


# -- the stages ------------------------------------------------------------------------------------


def _stages(
    sizes: Sizes, sides: MatrixSides, entry: MatrixProduct, knobs: MatrixKnobs
) -> te.Tensor:
    """Return the product of panels that are padded with zeros to whole tiles."""
    depth = _round_up(sizes.depth, _PANEL_BYTES // dtypes.bytes_of(entry.a_dtype))

    def panel(name: str, element: Element, count: int, tile: int, dtype: str) -> te.Tensor:
        whole = _round_up(count, tile)

        def at(g: PrimExpr, i: PrimExpr, k: PrimExpr) -> Any:
            inside = []
            if whole != count:
                inside.append(i < count)
            if depth != sizes.depth:
                inside.append(k < sizes.depth)
            value = element(g, i, k)
            if not inside:
                return value
            return te.if_then_else(ops.all_of(inside), value, ops.const(0, dtype))

        return te.compute((sizes.batch, whole, depth), at, name=name)  # type: ignore[no-any-return]

    left = panel("left", sides.left, sizes.rows, knobs.block_rows, entry.a_dtype)
    right = panel("right", sides.right, sizes.columns, knobs.block_columns, entry.b_dtype)
    k = te.reduce_axis((0, depth), name="k")
    of = entry.c_dtype
    shape = (sizes.batch, left.shape[1], right.shape[1])
    return te.compute(  # type: ignore[no-any-return]
        shape,
        lambda g, i, j: te.sum(left(g, i, k).astype(of) * right(g, j, k).astype(of), axis=k),
        name="products",
    )


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def compute_matrix(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: MatrixKnobs
) -> list[te.Tensor]:
    """The stages of a dense layer or a batch of products."""
    sizes = any_product_sizes(problem.in_types, problem.attrs)
    (out,) = problem.out_types
    entry = _entry(problem.in_types, out.dtype, problem.target, False)
    assert sizes is not None
    assert entry is not None

    def element(of: te.Tensor, by_step: bool) -> Element:
        alone = of.ndim == 3 and ops.as_int(of.shape[0]) == 1

        def at(g: PrimExpr, i: PrimExpr, k: PrimExpr) -> Any:
            batch = [0 if alone else g] if of.ndim == 3 else []
            return of(*batch, *((i, k) if by_step else (k, i)))

        return at

    sides = MatrixSides(*map(element, inputs, steps_beside(problem.attrs)))
    products = _stages(sizes, sides, entry, knobs)

    def at(*index: PrimExpr) -> Any:
        return products(*([0] * (3 - len(index))), *index)

    return [te.compute(out.shape, at, name="product", tag="injective")]


def compute_conv(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: MatrixKnobs
) -> list[te.Tensor]:
    """The stages of a convolution: the product of its weights with the image's columns."""
    (out,) = problem.out_types
    geometry, column, filters, element = conv_operands(problem, inputs)
    swap = not geometry.channels_last
    entry = _entry(problem.in_types, out.dtype, problem.target, swap)
    assert entry is not None
    left, right = (filters, column) if swap else (column, filters)
    products = _stages(geometry.sizes, MatrixSides(left, right), entry, knobs)
    return [te.compute(out.shape, element(products), name="conv", tag="injective")]


# -- the schedule ----------------------------------------------------------------------------------


def _schedule(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: MatrixKnobs
) -> te.Schedule:
    """A tile for each block; a thread for each element where the kernel does more than that."""
    found = panel_product(outs, anchor)
    if found is None:
        return schedule_elements(problem, outs, anchor, ThreadKnobs(64))
    schedule, out, products, panels = found
    batch, rows, columns = _sides(schedule, out, problem)
    first, second = (t.dtype for t in products.op.input_tensors)
    entry = product_of_target(problem.target, first, second, products.dtype)
    assert entry is not None
    fetches = _fetches(problem.attrs, problem.in_types)
    scope = panel_scope(problem.target, knobs.panel_bytes(entry.pads))
    for panel in panels:
        schedule[panel].set_scope(scope)
    _Tiles(schedule, out, products, knobs, entry).bind(batch, rows, columns, panels, fetches)
    return schedule


def _sides(
    schedule: te.Schedule, out: te.Tensor, problem: Problem
) -> tuple[list[te.IterVar], te.IterVar, te.IterVar]:
    """Return the axes of the output beside each other, its rows and its columns."""
    stage = schedule[out]
    if not hasattr(problem.attrs, "kernel_layout"):
        *batch, rows, columns = stage.op.axis
        return batch, rows, columns
    geometry = Geometry.of(problem.attrs, problem.in_types)
    assert geometry is not None
    return geometry.sides(stage, problem.attrs.groups)


@dataclass(frozen=True)
class Fetch:
    """How a panel lies in memory: whether steps lie beside each other, and how many are one."""

    by_step: bool
    together: int
    is_copied: bool = False  # where the device copies by itself: sixteen bytes of the operand


def _fetches(attrs: Any, in_types: Sequence[Any]) -> tuple[Fetch, Fetch]:
    """Return how the panels of rows and of columns are fetched."""
    found = _sizes_of(attrs, in_types)
    assert found is not None
    sizes, swap = found
    size = dtypes.bytes_of(in_types[0].dtype)
    # Whole panels of rows that begin at such addresses; sixteen bytes are one instruction.
    together = _FETCHED_BYTES // size if sizes.depth % (_PANEL_BYTES // size) == 0 else 1

    def fetch(by_step: bool, whole: bool) -> Fetch:
        each = together if by_step and whole else 1
        return Fetch(by_step, each, each > 1)

    if hasattr(attrs, "kernel_layout"):
        geometry = Geometry.of(attrs, in_types)
        assert geometry is not None
        weights = fetch(geometry.weights_by_step, attrs.kernel_layout[0] == "O")
        run = geometry.kernel["I"] % together == 0
        pair = fetch(geometry.columns_by_step, run), weights
        return pair[::-1] if swap else pair
    left, right = steps_beside(attrs)
    return fetch(left, True), fetch(right, True)


class _Tiles:
    """The loops of a product whose warps each have a part of a block's tile."""

    def __init__(
        self,
        schedule: te.Schedule,
        out: te.Tensor,
        products: te.Tensor,
        knobs: MatrixKnobs,
        entry: MatrixProduct,
    ) -> None:
        self.schedule, self.out, self.products, self.knobs = schedule, out, products, knobs
        self.entry, self.layout = entry, entry.layout
        self.warp, self.lane = te.thread_axis("threadIdx.y"), te.thread_axis("threadIdx.x")

    def bind(
        self,
        batch: Sequence[te.IterVar],
        rows: te.IterVar,
        columns: te.IterVar,
        panels: Sequence[te.Tensor],
        fetches: Sequence[Fetch],
    ) -> None:
        """Bind the loops to blocks, warps and threads, and compute the rest in them."""
        stage, knobs, of = self.schedule[self.out], self.knobs, self.layout
        block_y, rows = stage.split(rows, factor=knobs.block_rows)
        rows, row = stage.split(rows, factor=of.rows)
        rows, low_row = stage.split(rows, factor=of.low_rows)
        rows, high_row = stage.split(rows, factor=of.warp_rows // of.rows // of.low_rows)
        down, warp_y = stage.split(rows, nparts=knobs.warp_tile[0] // of.warp_rows)
        block_x, columns = stage.split(columns, factor=knobs.block_columns)
        columns, column = stage.split(columns, factor=of.columns)
        columns, low = stage.split(columns, factor=of.low_columns)
        columns, high = stage.split(columns, factor=of.warp_columns // of.columns // of.low_columns)
        across, warp_x = stage.split(columns, nparts=knobs.warp_tile[1] // of.warp_columns)
        lane_axes = (high_row, high, low_row, low)
        parts = (down, across, warp_y, warp_x, *lane_axes, row, column)
        stage.reorder(*batch, block_y, block_x, *parts)
        if batch:
            each = batch[0] if len(batch) == 1 else stage.fuse(*batch)
            stage.bind(each, te.thread_axis("blockIdx.z"))
        stage.bind(block_y, te.thread_axis("blockIdx.y"))
        stage.bind(block_x, te.thread_axis("blockIdx.x"))
        for strip in (down, across):
            stage.bind(strip, te.thread_axis("vthread"))
        warp, lane = stage.fuse(warp_y, warp_x), stage.fuse(*lane_axes)
        stage.bind(warp, self.warp)
        stage.bind(lane, self.lane)
        stage.unroll(row)
        stage.unroll(column)
        outer = self._sum_up(lane)
        pads, counts = self.entry.pads, (knobs.block_rows, knobs.block_columns)
        for panel, pad, fetch, count in zip(panels, pads, fetches, counts, strict=True):
            self._share(panel, outer, pad, fetch, count)

    def _sum_up(self, lane: te.IterVar) -> te.IterVar:
        """Compute a thread's sums in its registers; return the loop over panels."""
        entry = self.entry
        stage = self.schedule[self.products]
        stage.set_scope("local")
        stage.compute_at(self.schedule[self.out], lane)
        *batch, rows, columns = stage.op.axis
        (step,) = stage.op.reduce_axis
        outer, step = stage.split(step, factor=_PANEL_BYTES // dtypes.bytes_of(entry.a_dtype))
        step, inner = stage.split(step, factor=entry.depth)
        rows, row = stage.split(rows, factor=self.layout.rows)
        columns, column = stage.split(columns, factor=self.layout.columns)
        stage.reorder(*batch, outer, step, rows, columns, row, column, inner)
        stage.unroll(step)
        stage.unroll(rows)
        stage.unroll(columns)
        stage.tensorize(row, warp_intrinsic(entry, self.lane))
        return outer

    def _share(
        self, panel: te.Tensor, outer: te.IterVar, pad: int, fetch: Fetch, count: int
    ) -> None:
        """Let all threads of a block fetch a panel, neighbours what lies beside each other.

        Where steps of the sum do not, each thread gathers some of them and stores them at once.
        """
        gathered = None if fetch.by_step else self.schedule.cache_write(panel, "local")
        stage = self.schedule[panel]
        stage.compute_at(self.schedule[self.products], outer)
        if self.knobs.stages > 1:
            stage.double_buffer(self.knobs.stages)
        size = dtypes.bytes_of(panel.dtype)
        batch, number, step = stage.op.axis
        stage.storage_align(number, _PANEL_BYTES // size, pad // size)
        together = fetch.together if fetch.by_step else self._gathered_bytes(count) // size
        step, several = stage.split(step, factor=together)
        if fetch.by_step:
            row_bytes = _PANEL_BYTES + pad
            distance = rows_apart(count, row_bytes, _PANEL_BYTES, together * size)
            numbers, number = stage.split(number, factor=distance)
            order = [batch, number, numbers, step]
        else:
            parts = parts_beside(_PANEL_BYTES + pad, _PANEL_BYTES, together * size, size)
            step, part = stage.split(step, factor=parts)
            numbers, number = stage.split(number, factor=at_once(together * size) // parts)
            order = [batch, step, numbers, part, number]
        stage.reorder(*order, several)
        fused = stage.fuse(*order)
        if together > 1:
            stage.vectorize(several)
        fused, lane = stage.split(fused, factor=self.knobs.lanes)
        _, warp = stage.split(fused, factor=self.knobs.warps[0] * self.knobs.warps[1])
        stage.bind(warp, self.warp)
        stage.bind(lane, self.lane)
        if gathered is not None:
            self.schedule[gathered].compute_at(stage, lane)
            for axis in self.schedule[gathered].op.axis:
                self.schedule[gathered].unroll(axis)

    def _gathered_bytes(self, count: int) -> int:
        """Return how much a thread gathers at once, where each has something to do."""
        most = count * _PANEL_BYTES // self.knobs.threads
        whole = 1 << max(1, min(most, ANY_GPU.gathered_bytes)).bit_length() - 1
        return max(ANY_GPU.bank_bytes, whole)


_PRODUCTS = ("nn.dense", "nn.matmul", "nn.batch_matmul")
_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
OPERATORS = (*_PRODUCTS, *_CONVOLUTIONS)
for _names, _compute in ((_PRODUCTS, compute_matrix), (_CONVOLUTIONS, compute_conv)):
    register_strategy(
        *_names, name="threads.matrix", priority=30, applies=applies, compute=_compute,
        default=_knobs, space=_space, cost=_cost,
    )(_schedule)  # fmt: skip
