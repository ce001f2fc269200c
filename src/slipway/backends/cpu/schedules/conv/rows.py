"""Convolutions with a padding of zeros, blocked channels: row by row, without a padded copy.

A tile of registers is a run of positions in one row.  Zeros of the padding are not multiplied: rows
of the window that are outside are no steps of their loop, and the first and last tiles of a row,
which are cut off from the others, leave out the positions that have nothing at a column of the
window.

`cpu.conv` takes a run of the flattened image instead, from a copy with its padding.  Where rows do
not fill tiles of registers well, that takes less time; counted cycles tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import positions_per_part, prefetch_steps, worth_sharing
from slipway.backends.cpu.schedules.conv.halo import cut, window_at
from slipway.backends.cpu.schedules.matmul.lane_fma import conv_uses_lane_fma
from slipway.backends.cpu.schedules.register_tile import register_tile, sums_in_registers
from slipway.backends.cpu.tile import (
    Tile,
    choose_tile,
    fma,
    tile_space,
    vector_registers,
    whole_groups,
)
from slipway.backends.stages import inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.nn.windows import conv_extents, taps_inside
from slipway.relay.ops.packed.blocked_conv import chunk_of, input_channel, taps_of
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.ops.packed.blocked_conv import BlockedConvAttrs
    from slipway.target import Target


def _compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    attrs, (data, kernel) = problem.attrs, inputs
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    _, chunks, *_, block, _ = shape_of(kernel)
    chunk = te.reduce_axis((0, chunks), name="ic_chunk")
    lane = te.reduce_axis((0, block), name="ic")
    taps = taps_of(kernel)

    def element(b: PrimExpr, o: PrimExpr, *rest: PrimExpr) -> Any:
        *at, ob = rest
        c, i = input_channel(data, kernel, chunk_of(kernel, attrs.groups, o, chunk), lane)
        positions, inside = window_at(data, at, taps, attrs)
        left = data(b, c, *positions, i).astype(out.dtype)
        right = kernel(o, chunk, *taps, lane, ob).astype(out.dtype)
        return te.sum(left * right, [chunk, *taps, lane], inside)

    return [te.compute(out.shape, element, name="conv_NCHWc", tag="conv_rows")]


class _Costs:
    """Cycles of a convolution for each of its input channels, by rows and from a padded copy."""

    def __init__(
        self,
        attrs: BlockedConvAttrs,
        data: Sequence[int],
        kernel: Sequence[int],
        dtype: str,
        target: Target,
    ) -> None:
        self.target = target
        self.data, self.kernel = data, kernel
        self.size = conv_extents(
            data[2:-1], kernel[2:-2], attrs.strides, attrs.padding, attrs.dilation
        )
        self.blocks, self.groups = kernel[0], attrs.groups
        self.tiles = fma(target, max(1, kernel[-1] // vector_lanes(target, dtype)))
        count = len(self.size)
        self.taps = [
            taps_inside(*axis)
            for axis in zip(
                self.size, data[2:-1], kernel[2:-2], attrs.strides, attrs.dilation,
                attrs.padding[:count], strict=True,
            )
        ]  # fmt: skip
        pads = zip(data[2:-1], attrs.padding[:count], attrs.padding[count:], strict=True)
        self.padded = [sum(axis) for axis in pads]

    def _step(self, rows: int, vectors: int) -> float:
        return self.tiles.all_cycles(Tile(rows, vectors), rows, vectors) if rows else 0.0

    def of_rows(self, tile: Tile) -> float:
        """The steps of tiles whose positions and taps are inside."""
        lines = prod(sum(map(len, taps)) for taps in self.taps[:-1])
        width, each = self.size[-1], 0.0
        for start in range(0, width, tile.rows):
            first = min(start, width - tile.rows)
            for inside in self.taps[-1]:
                last = min(inside.stop, first + tile.rows)
                each += self._step(max(0, last - max(inside.start, first)), tile.vectors)
        return lines * each * -(-self.blocks // tile.vectors)

    def best_of_rows(self) -> Tile:
        """Return the tile of which a row takes least."""
        chunks = self.blocks // self.groups
        grouped = whole_groups(chunks, self.groups)
        return choose_tile(
            self.tiles, self.size[-1], chunks,
            legal=lambda tile: grouped(tile) and self.fits(tile), cost=self.of_rows,
        )  # fmt: skip

    def fits(self, tile: Tile) -> bool:
        """Whether the sums have registers beside the weights that lie in them at a time.

        Taps of a line of one input channel are unrolled where they are few, or where no loop over
        channels is around them: LLVM loads the weights of all of them first.
        """
        channels, *_, taps, block, _ = self.kernel[1:]
        few = taps < self.target.core.costs.row_steps
        if block > 1 or (channels > 1 and not few):
            return True
        registers = vector_registers(self.target)
        weights = min(tile.vectors * taps, registers // 2)
        return tile.rows * tile.vectors + weights + 1 <= registers

    def of_copy(self) -> float:
        """The steps of tiles over the flattened image, and the copy."""
        positions, chunks = prod(self.size), self.blocks // self.groups
        tile = choose_tile(self.tiles, positions, chunks, legal=whole_groups(chunks, self.groups))
        tiles = -(-positions // tile.rows) * -(-self.blocks // tile.vectors)
        elements = self.data[1] * prod(self.padded) * self.data[-1]
        core = self.target.core
        lines = 4 * elements / core.line_bytes
        taps, channels = prod(self.kernel[2:-2]), self.kernel[1] * self.kernel[-2]
        steps = taps * self._step(tile.rows, tile.vectors)
        return float(tiles * steps + lines * core.costs.copied_line_cycles / channels)


def _costs_of(problem: Problem) -> _Costs:
    data, kernel = problem.in_types
    (out,) = problem.out_types
    return _Costs(problem.attrs, data.shape, kernel.shape, out.dtype, problem.target)


def _default(problem: Problem) -> Tile:
    return _costs_of(problem).best_of_rows()


def _space(problem: Problem) -> Space:
    costs = _costs_of(problem)
    chunks = costs.blocks // costs.groups
    space = dict(tile_space(costs.size[-1], chunks, problem.target, costs.tiles.width))
    if costs.groups > 1:
        space["vectors"] = [v for v in space["vectors"] if chunks % v == 0]
    return space


def _cost(problem: Problem, tile: Tile) -> float:
    costs, kernel = _costs_of(problem), problem.in_types[1].shape
    return float(costs.of_rows(tile) * kernel[1] * kernel[-2])


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """There is padding, and a row takes less time than a copy."""
    data, kernel = in_types
    assert isinstance(data, TensorType)
    assert isinstance(kernel, TensorType)
    dtype = attrs.out_dtype or data.dtype
    if not any(attrs.padding) or conv_uses_lane_fma(target, kernel.shape[-2], attrs.groups, dtype):
        return False
    if (
        kernel.shape[-2] == 1
        and vector_registers(target) < 32
        and not target.arch.startswith("x86")
    ):
        return False  # windows of known size are unrolled, for which alone addresses fit registers
    costs = _Costs(attrs, data.shape, kernel.shape, dtype, target)
    return costs.of_rows(costs.best_of_rows()) < costs.of_copy()


@register_strategy(
    "nn.contrib_conv2d_nchwc", "nn.contrib_conv3d_nchwc", name="conv2d_nchwc.rows", priority=11,
    compute=_compute, applies=_applies, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_conv_rows(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """`tile.rows` positions of a row by `tile.vectors` channel blocks at a time."""
    target, parts = problem.target, problem.attrs.groups
    schedule, output = new_schedule(outs)
    inline_injective(schedule, outs, keep=[conv])
    data, kernel = conv.op.input_tensors
    sums = sums_in_registers(schedule, output, conv)
    _, blocks, *size, block = shape_of(output)
    data_bytes, weight_bytes = (4 * prod(shape_of(t)[1:]) for t in (data, kernel))
    panels = -(-blocks // tile.vectors)
    each = positions_per_part(
        prod(size), data_bytes // parts, weight_bytes * tile.vectors * panels, panels,
        Tile(size[-1], tile.vectors), target,
    )  # fmt: skip
    stage: Any = schedule[output]
    n, oc, *lines, x, ob = stage.op.axis
    oc_outer, oc_inner = stage.split(oc, factor=tile.vectors, tail="shift")
    x_outer, x_inner = stage.split(x, factor=tile.rows, tail="shift")
    part, line = stage.split(stage.fuse(*lines), factor=each // size[-1], tail="shift")
    register_tile(stage, [n, part, oc_outer, line, x_outer], [oc_inner, x_inner], ob)
    cut(stage, x_outer)
    task = stage.fuse(n, part, oc_outer)
    if worth_sharing(prod(size) * prod(shape_of(kernel)), target):
        stage.parallel(task)
        stage.parallel(line)

    inner: Any = schedule[sums]
    inner.compute_at(stage, x_outer)
    n, oc, *lines, x, ob = inner.op.axis
    chunk, *taps, ic = inner.op.reduce_axis
    if distance := prefetch_steps(block, target):
        inner.prefetch(kernel, ic, distance)
    # Vectors of channels innermost: a broadcast value of the data is used at once and forgotten.
    register_tile(inner, [n, *lines, chunk, *taps, ic], [x, oc], ob)
    cut(inner, *taps)
    return schedule
