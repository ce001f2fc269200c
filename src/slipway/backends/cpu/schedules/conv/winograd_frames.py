"""Winograd convolution of volumes: blocks of frames and of rows of tiles, transformed once each.

A block has as many frames as the second-level cache holds: those at its ends belong to two blocks,
and are transformed for each.  Of few tiles all is one block, whose products some output channels
take at a time, so that their kernel is read once for all frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod
from typing import Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import time_of_all
from slipway.backends.cpu.predict import product_cycles
from slipway.backends.cpu.schedules.conv.winograd import (
    kernel_of,
    schedule_data,
    schedule_products,
    spread_planes,
)
from slipway.backends.cpu.schedules.conv.winograd_tiles import (
    tasks_of,
    tile_image,
    transform_back,
    winograd_schedule,
)
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import Tile, choose_tile, tile_space
from slipway.backends.stages import shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.packed.winograd_frames import FrameBlocks, frame_stages, frames_of


@dataclass(frozen=True)
class FramesTile(Tile):
    """A tile of the products, and the frames and rows of tiles of a block."""

    frames: int = 1
    block_rows: int = 1


@dataclass(frozen=True)
class Volume:
    """Results in tiles, and what is multiplied for one of them."""

    frames: int
    rows: int
    columns: int
    taps: int  # frames of the window
    planes: int  # of a tile, transformed
    inputs: int
    outputs: int

    @staticmethod
    def of(problem: Problem) -> Volume:
        """Return those of a problem, whose sizes are known."""
        _, outer, frames, height, width, oc = problem.out_types[0].shape
        data, kernel = problem.in_types
        side = kernel.shape[1]
        rows, columns = (-(-extent // (side - 2)) for extent in (height, width))
        inputs = data.shape[1] * data.shape[5]
        taps = frames_of(kernel, data)
        return Volume(frames, rows, columns, taps, side * side, inputs, outer * oc)

    def held(self, frames: int, rows: int) -> int:
        """Return how many tiles are transformed for a block."""
        return (frames + self.taps - 1) * rows * self.columns

    def blocks(self, frames: int, rows: int) -> int:
        """Return the number of blocks."""
        return ceil(self.frames / frames) * ceil(self.rows / rows)


def block_of(volume: Volume, problem: Problem) -> tuple[int, int]:
    """Return the frames and the rows of tiles in a block: those that take least, or all of them.

    All of them where too few tiles would fit the cache.
    """
    target, costs = problem.target, problem.target.core.costs
    room = target.core.l2_bytes * costs.winograd_l2_share
    bytes_each = 4 * volume.planes * volume.inputs
    few = costs.winograd_tiles
    whole = volume.frames, volume.rows
    sizes = [
        (frames, rows)
        for frames, rows in product(range(1, volume.frames + 1), range(1, volume.rows + 1))
        if volume.held(frames, rows) * bytes_each <= room and frames * rows * volume.columns >= few
    ]
    there = costs.transform_products / (volume.taps * volume.outputs)
    back = costs.transform_products / (volume.taps * volume.inputs)

    def cost(size: tuple[int, int]) -> float:
        tiles = prod(size) * volume.columns
        each = tiles * (1 + back) + volume.held(*size) * there + few / 4
        return time_of_all(volume.blocks(*size), target.core_counts) * each

    return min(sizes, key=cost, default=whole)


def _default(problem: Problem) -> FramesTile:
    volume, kernel = Volume.of(problem), kernel_of(problem)
    frames, rows = block_of(volume, problem)
    tile = choose_tile(kernel, frames * rows * volume.columns, problem.out_types[0].shape[1])
    return FramesTile(tile.rows, tile.vectors, frames, rows)


def _cost(problem: Problem, tile: FramesTile) -> float:
    """The products of all elements of all tiles, and the transforms."""
    volume, target = Volume.of(problem), problem.target
    batch = problem.out_types[0].shape[0]
    tiles = batch * volume.frames * volume.rows * volume.columns
    depth = volume.taps * volume.inputs
    products = tiles * volume.planes * depth * volume.outputs
    there = volume.held(1, 1) / volume.columns if tile.frames == 1 else 1
    sides = volume.planes * (volume.inputs * there + volume.outputs)
    transforms = 32 * target.core.costs.transform_products * tiles * sides / target.core.fma_bits
    return product_cycles(problem, products, tile.rows, tile.vectors) + float(transforms)


def _space(problem: Problem) -> Space:
    (out,), target, volume = problem.out_types, problem.target, Volume.of(problem)
    width = max(1, out.shape[-1] // vector_lanes(target, "float32"))
    tiles = volume.frames * volume.rows * volume.columns
    space = tile_space(tiles, out.shape[1], target, width)
    frames, rows = range(1, volume.frames + 1), range(1, volume.rows + 1)
    return {**space, "frames": frames, "block_rows": rows}


def _frames_compute(
    problem: Problem, inputs: Sequence[te.Tensor], tile: FramesTile
) -> list[te.Tensor]:
    blocks = FrameBlocks(tile.frames, tile.block_rows, tile.rows)
    return [frame_stages(problem.attrs, list(inputs), problem.out_types[0], blocks)]


@register_strategy(
    "nn.contrib_conv3d_winograd_nchwc", name="conv3d_winograd", compute=_frames_compute,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_frames(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: FramesTile
) -> te.Schedule:
    """Into the transform, the products, and back, a block of tiles and some channels at once."""
    schedule, output, stages = winograd_schedule(outs)
    _, parts, _, side, *_ = shape_of(stages.products)
    stage: Any = schedule[output]
    n, o, z, y, x, ob = stage.op.axis
    deep, frame = stage.split(z, factor=tile.frames)
    image = tile_image(stage, y, x, tile.block_rows * (side - 2), side - 2)
    o_outer, o_inner = stage.split(o, factor=tile.vectors, tail="shift")
    around = [n, deep, image.part, o_outer, o_inner, frame, image.ty, image.tx]
    register_tile(stage, around, image.inside, ob)
    data = schedule[stages.data]
    products_at = tasks_of(stage, data, [n, deep, image.part], o_outer, parts)
    if parts == 1:
        data.parallel(data.fuse(*data.op.axis[:3]))

    transform_back(schedule, stages.output_half, stage, image.tx)
    schedule[stages.products].compute_at(stage, products_at)
    schedule_products(schedule, stages.products, tile, problem.target, None)
    schedule_data(schedule, stages, tile.rows, None)
    for tensor in (stages.data, stages.products):
        spread_planes(schedule[tensor], tensor, problem.target)
    return schedule
