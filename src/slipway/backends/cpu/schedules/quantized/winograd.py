"""Winograd's algorithm in integers: transforms on vectors of channels, products from registers.

As in `cpu.winograd`, one block of rows of tiles, transformed, fits the second-level cache and never
leaves it where the image has enough of them; a smaller image is one block.  Channels come last, and
products are those of `cpu.quantized_packed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    dividing_lanes,
    vector_lanes,
)
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.conv.winograd import WinogradTile, blocks_of_rows
from slipway.backends.cpu.schedules.conv.winograd_tiles import (
    WinogradStages,
    registers_of_products,
    tasks_of,
    tile_image,
    transform_back,
    transform_half,
    winograd_schedule,
)
from slipway.backends.cpu.schedules.matmul.panels import PanelProgress, Steps, prefetch_next
from slipway.backends.cpu.schedules.quantized.packed import instruction_for, product_tile
from slipway.backends.cpu.schedules.register_tile import copy_of_image, register_tile
from slipway.backends.cpu.tile import Tile, tile_space
from slipway.backends.stages import shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.errors import LoweringError
from slipway.relay.ops.packed.qnn_winograd import FILTERING, winograd_stages
from slipway.relay.ops.packed.winograd import TileBlocks
from slipway.relay.types import Type
from slipway.te.hardware import hardware_intrinsic

if TYPE_CHECKING:
    from slipway.ir.hardware import HardwareIntrinsic
    from slipway.relay.expr import Expr
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target
    from slipway.te.tensor import Tensor


def _tiles_of(problem: Problem) -> tuple[int, int]:
    (out,), m = problem.out_types, FILTERING.tile
    _, height, width, _ = out.shape
    return -(-height // m), -(-width // m)


def _default(problem: Problem) -> WinogradTile:
    (data, weight), target = problem.in_types, problem.target
    rows, columns = _tiles_of(problem)
    words = FILTERING.side**2 * data.shape[3] // 2  # of a tile, two int16 each
    size = blocks_of_rows([(rows, columns)], words, target)
    tile = product_tile(size * columns, weight.shape[0], target, _entry(weight, target))
    return WinogradTile(tile.rows, tile.vectors, size)


def _products(problem: Problem) -> float:
    """The products of all elements of all tiles; a weight has an element of its own for each."""
    rows, columns = _tiles_of(problem)
    images = problem.out_types[0].shape[0]
    return float(images * rows * columns * prod(problem.in_types[1].shape))


def _space(problem: Problem) -> Space:
    rows, columns = _tiles_of(problem)
    blocks = problem.in_types[1].shape[0]
    space = dict(tile_space(rows * columns, blocks, problem.target))
    space["vectors"] = [v for v in space["vectors"] if blocks % v == 0]
    return {**space, "block_rows": range(1, rows + 1)}


def _compute(problem: Problem, inputs: Sequence[te.Tensor], tile: WinogradTile) -> list[te.Tensor]:
    (out,) = problem.out_types
    blocks = TileBlocks(tile.block_rows, tile.rows)
    return [winograd_stages(problem.attrs, inputs, out, blocks)]


def _entry(weight: Tensor, target: Target) -> HardwareIntrinsic:
    entry = instruction_for(weight.dtype, weight, target)
    if entry is None:
        raise LoweringError(f"{target} has no instruction for weights {weight}")
    return entry


def _applies(attrs: Attrs, in_types: Sequence[Type], target: Target) -> bool:
    _, weight = in_types
    return target.is_by_llvm and bool(instruction_for("int16", weight, target))


@register_strategy(
    "qnn.contrib_conv2d_winograd", name="qnn_conv.winograd", compute=_compute, applies=_applies,
    default=_default, space=_space, cost=tile_cost(2, _products),
)  # fmt: skip
def schedule_winograd(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: WinogradTile
) -> te.Schedule:
    """Into the transform, the products, and back, a block of tiles and some channels at once."""
    target = problem.target
    schedule, output, stages = winograd_schedule(outs)
    _, parts, _, _, _, _, lanes = shape_of(stages.products)
    _, lines, *_ = shape_of(stages.output_half)
    weight = stages.products.op.input_tensors[1]

    stage: Any = schedule[output]
    n, y, x, c = stage.op.axis
    image = tile_image(stage, y, x, lines // parts, FILTERING.tile)
    c_outer, c_inner = stage.split(c, factor=tile.vectors * lanes)
    c_vector, c_lane = stage.split(c_inner, factor=lanes)
    around = [n, image.part, c_outer, image.ty, image.tx, c_vector]
    register_tile(stage, around, image.inside, c_lane)
    products_at = tasks_of(stage, schedule[stages.data], [n, image.part], c_outer, parts)

    transform_back(schedule, stages.output_half, stage, c_vector)
    schedule[stages.products].compute_at(stage, products_at)
    _schedule_products(schedule, stages.products, tile, _entry(weight, target), target)
    _schedule_data(schedule, stages, parallel=parts == 1, target=target)
    return schedule


def _schedule_products(
    schedule: te.Schedule, products: te.Tensor, tile: Tile, entry: HardwareIntrinsic, target: Target
) -> None:
    """A matrix product, tiles by output channels, for each element of a transformed tile."""
    inner = registers_of_products(schedule, products, tile.rows)
    n, part, o, x, y, q, lane = inner.op.axis
    chunk, element = inner.op.reduce_axis
    dot = hardware_intrinsic(entry.name, target)
    register_tile(inner, [n, part, x, y, chunk], [q, o], lane, dot, [element])
    weight = inner.op.input_tensors[1]
    chunks, tiles = shape_of(weight)[3], -(-shape_of(products)[5] // tile.rows)
    at = PanelProgress(te.floordiv(q, tile.rows), tiles, chunk, chunks)

    def next_at(vector: int, line: Expr) -> tuple[Any, ...]:
        return o + vector, x, y + 1, line, 0, 0  # beyond the last y lies the next x

    for vector in range(tile.vectors):
        prefetch_next(inner, weight, Steps(chunk, chunk, 1), at, partial(next_at, vector))


def _schedule_data(
    schedule: te.Schedule, stages: WinogradStages, parallel: bool, target: Target
) -> None:
    """One vector of channels of one tile at a time, all its elements unrolled."""
    stage: Any = schedule[stages.data]
    lanes = dividing_lanes(shape_of(stages.data)[-1], vector_lanes(target, stages.data.dtype))
    *_, x, y, q, c = stage.leaf_iter_vars
    c_outer, c_lane = stage.split(c, factor=lanes)
    register_tile(stage, [q, c_outer], [x, y], c_lane)
    if parallel:
        stage.parallel(q)
    if stages.pad is not None:
        padding: Any = schedule[stages.pad]
        copy_of_image(padding, lanes, padding.op.axis[:-2])
    transform_half(schedule, stages.half, stage, c_outer)
