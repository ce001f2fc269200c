"""What both Winograd schedules share: stages, tiles of results, parts of an image, products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from slipway import te
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.stages import inline_injective, new_schedule, shape_of, tagged
from slipway.relay.dims import is_open
from slipway.relay.ops.tensor.tensors import value_of


class WinogradStages(NamedTuple):
    """The tensors of a Winograd convolution that have loops of their own.

    There is a `pad` where the image is padded, and `results` where the end of one may be inside of
    a tile.
    """

    half: te.Tensor
    data: te.Tensor
    products: te.Tensor
    output_half: te.Tensor
    pad: te.Tensor | None
    results: te.Tensor | None


def winograd_schedule(
    outs: Sequence[te.Tensor],
) -> tuple[te.Schedule, te.Tensor, WinogradStages]:
    """Return a schedule, its output, and the stages; all else is inlined."""
    schedule, output = new_schedule(outs)
    found = tagged(outs)
    half, data, products, output_half = (
        found[f"winograd_{name}"] for name in ("half", "data", "products", "output_half")
    )
    pad, results = found.get("pad"), found.get("winograd_results")
    stages = WinogradStages(half, data, products, output_half, pad, results)
    inline_injective(schedule, outs, keep=[t for t in stages if t is not None])
    return schedule, output, stages


class ImageTiles(NamedTuple):
    """Axes of an image of results: parts of rows, tiles in both directions, and inside of one."""

    part: te.IterVar
    ty: te.IterVar
    tx: te.IterVar
    inside: list[te.IterVar]


def tile_image(stage: te.Stage, y: te.IterVar, x: te.IterVar, step: int, m: int) -> ImageTiles:
    """Split rows into parts of `step`, and rows and columns into tiles of `m` by `m`."""
    part, y_inside = stage.split(y, factor=step)
    ty, y_inner = stage.split(y_inside, factor=m)
    tx, x_inner = stage.split(x, factor=m)
    return ImageTiles(part, ty, tx, [y_inner, x_inner])


def tasks_of(
    stage: te.Stage, data: Any, outer: Sequence[te.IterVar], channels: te.IterVar, parts: int
) -> te.IterVar:
    """Make tasks, and return the axis that products are computed at.

    Where an image is in parts, a task is one, with its transformed `data`; else it is some channels
    of the results, and all data is transformed before.
    """
    if parts == 1:
        task: te.IterVar = stage.fuse(*outer, channels)
        stage.parallel(task)
        return task
    task = stage.fuse(*outer)
    data.compute_at(stage, task)
    stage.parallel(task)
    return channels


@dataclass(frozen=True)
class LastBlock:
    """Where an image ends in its last block of rows of tiles: what lies below is not computed."""

    height: Any  # of the image
    rows: Any  # of tiles in it
    columns: Any
    block_rows: int

    def tiles(self, part: te.IterVar) -> Any:
        """Return the tiles of the image from a block on."""
        return (value_of(self.rows) - part * self.block_rows) * value_of(self.columns)


def last_block(output: te.Tensor, parts: int, block_rows: int, m: int) -> LastBlock | None:
    """Return the end of an image of open height in several blocks; None for any other.

    Of a fixed height the blocks are chosen so that the last one wastes little.
    """
    *_, height, width, _ = shape_of(output)
    if parts == 1 or not is_open(height):
        return None
    return LastBlock(value_of(height), (height + m - 1) // m, (width + m - 1) // m, block_rows)


def registers_of_products(
    schedule: te.Schedule, products: te.Tensor, rows: int, last: LastBlock | None = None
) -> Any:
    """Return the stage that sums products in registers, `rows` tiles by some channel blocks."""
    registers = schedule.cache_write(products, "local")
    stage: Any = schedule[products]
    n, part, o, x, y, q, lane = stage.op.axis
    q_outer, q_inner = stage.split(q, factor=rows)
    register_tile(stage, [n, part, x, y, q_outer], [o, q_inner], lane)
    if is_open(shape_of(products)[5]):
        stage.pragma(q_inner, "half_in_tail")
    if last is not None:
        stage.compute_below(te.floordiv(q, rows) * rows, last.tiles(part))
    inner = schedule[registers]
    inner.compute_at(stage, q_outer)
    return inner


def transform_back(
    schedule: te.Schedule, output_half: te.Tensor, stage: te.Stage, at: te.IterVar
) -> None:
    """One tile of results at a time, row by row, before the epilogue of the convolution."""
    inner: Any = schedule[output_half]
    inner.compute_at(stage, at)
    inner.set_scope("local")
    *_, line, _, column, lane = inner.op.axis
    register_tile(inner, [], [column, line], lane)


def results_before_epilogue(results: te.Stage, stage: te.Stage, image: ImageTiles) -> None:
    """Compute a whole tile of results first; where an image ends in one, loops store what it has.

    Else each of the stores that ask there has an epilogue, and the last steps of the transform.
    """
    results.compute_at(stage, image.tx)
    results.set_scope("local")
    *_, y, x, lane = results.op.axis
    register_tile(results, [], [y, x], lane)
    for axis in image.inside:
        stage.pragma(axis, "loop_in_tail")


def transform_half(schedule: te.Schedule, half: te.Tensor, stage: te.Stage, at: te.IterVar) -> None:
    """Half of the transform of a tile of data: a column in, a column out."""
    inner: Any = schedule[half]
    inner.compute_at(stage, at)
    inner.set_scope("local")
    *_, x, b, lane = inner.op.axis
    register_tile(inner, [], [b, x], lane)
