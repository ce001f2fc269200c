"""Register tiles and loops of vectors: the innermost loops of products, pools, norms and copies.

A tile is some rows by some vectors, all unrolled, so that each of its sums has a register::

    for around:                              # loops outside, and the steps of the sum
        unrolled rows, unrolled vectors:     # in either order, perhaps with some steps of the sum
            lane: one vector, or the instruction that computes one

The sums and the stage that stores them have such loops both.  Strategies choose the sides (their
knobs) and the order: what comes first is loaded first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slipway.backends.cpu.knobs import dividing_lanes
from slipway.backends.cpu.tile import Tile
from slipway.backends.stages import extent_of, inline_injective, new_schedule
from slipway.relay.dims import is_open

if TYPE_CHECKING:
    from slipway import te


COPY_LANES = 64  # of copies of bytes, at most


def sums_in_registers(schedule: te.Schedule, output: te.Tensor, anchor: te.Tensor) -> te.Tensor:
    """Return the tensor whose stage keeps a tile of the sums `anchor` in registers.

    It is `anchor` where an epilogue reads it, else a copy of `output`, which is stored at the end.
    """
    if output.op is anchor.op:
        copy: te.Tensor = schedule.cache_write(output, "local")
        return copy
    schedule[anchor].set_scope("local")
    return anchor


def over_padded(
    outs: Sequence[te.Tensor], conv: te.Tensor
) -> tuple[te.Schedule, te.Tensor, te.Tensor, list[te.Tensor]]:
    """Return (schedule, output, sums, padded image) of a convolution that reads a padded image."""
    schedule, output = new_schedule(outs)
    pad = [t for t in conv.op.input_tensors if "pad" in t.op.tag]
    inline_injective(schedule, outs, keep=[conv, *pad])
    return schedule, output, sums_in_registers(schedule, output, conv), pad


def pad_within(
    schedule: te.Schedule, pad: Sequence[te.Tensor], stage: te.Stage, task: te.IterVar
) -> None:
    """Copy the image with its padding in each task, for that task alone."""
    for tensor in pad:
        schedule[tensor].compute_at(stage, task)
        schedule[tensor].vectorize(tensor.op.axis[-1])


def register_tile(
    stage: te.Stage,
    around: Sequence[te.IterVar],
    unrolled: Sequence[te.IterVar],
    lane: te.IterVar,
    instruction: te.TensorIntrin | None = None,
    inside: Sequence[te.IterVar] = (),
) -> None:
    """Order the loops of a tile, from outside in, and mark them.

    `lane` becomes a vector; or it and the loops `inside` it become `instruction`.
    """
    stage.reorder(*around, *unrolled, lane, *inside)
    for axis in unrolled:
        stage.unroll(axis)
    if instruction is None:
        stage.vectorize(lane)
    else:
        stage.tensorize(lane, instruction)


def vector_loop(stage: te.Stage, axis: te.IterVar, lanes: int, tail: str = "shift") -> te.IterVar:
    """Cut a loop into vectors of `lanes`; return their loop.  A last vector overlaps another."""
    outer, lane = stage.split(axis, factor=lanes, tail=tail)
    stage.vectorize(lane)
    return outer


def copy_of_image(
    stage: te.Stage, lanes: int, task: Sequence[te.IterVar] = (), minimum: int = 2
) -> None:
    """Copy rows of channels in vectors that divide them, of `minimum` to `lanes`.

    The loops `task` are shared by cores.
    """
    channels = stage.op.axis[-1]
    lanes = dividing_lanes(extent_of(channels), lanes)
    if lanes >= minimum:
        vector_loop(stage, channels, lanes, tail="guard")
    if task:
        stage.parallel(stage.fuse(*task))


def matrix_tiles(stage: te.Stage, tile: Tile, lanes: int) -> tuple[te.IterVar, te.IterVar]:
    """Cut the rows and columns of a matrix into tiles; return the loops of panels and of tiles.

    A panel is `tile.vectors` vectors of columns wide and has all rows.  Last tiles overlap.
    """
    m, n = stage.op.axis
    m_outer, m_inner = stage.split(m, factor=tile.rows, tail="shift")
    n_vectors, n_lane = stage.split(n, factor=lanes)
    n_outer, n_vector = stage.split(n_vectors, factor=tile.vectors, tail="shift")
    register_tile(stage, [n_outer, m_outer], [m_inner, n_vector], n_lane)
    return n_outer, m_outer


def image_tiles(
    stage: te.Stage,
    around: Sequence[te.IterVar],
    position: Sequence[te.IterVar],
    vectors: te.IterVar,
    lane: te.IterVar,
    *,
    rows: int,
    part: int,
    shared: bool,
    rows_first: bool = False,
    tail: str = "shift",
    line: int = 0,
) -> te.IterVar:
    """Cut the positions `position` of images into parts, and those into tiles; return their loop.

    Parts are of whole lines, and tiles within one, where there is a `line`: its positions.

    `around` are the loops of images and, last, of panels, `vectors` that of the vectors of a
    panel.  All panels of a part are computed before the next part.  Cores share the tiles of all of
    them.  An open number of positions is one part.
    """
    outer = list(around)
    if is_open(part) and line:
        *lines, x = position
        x_outer, p_inner = stage.split(x, factor=rows, tail=tail)
        stage.reorder(*lines, x_outer)
        p_outer = stage.fuse(*lines, x_outer)
    elif is_open(part):
        p_outer, p_inner = stage.split(stage.fuse(*position), factor=rows, tail=tail)
    elif line:
        *lines, x = position
        p_part, y = stage.split(stage.fuse(*lines), factor=max(1, part // line), tail=tail)
        x_outer, p_inner = stage.split(x, factor=rows, tail=tail)
        stage.reorder(y, x_outer)
        p_outer = stage.fuse(y, x_outer)
        outer.insert(-1, p_part)
    else:
        p_part, p_tiles = stage.split(stage.fuse(*position), factor=part, tail=tail)
        p_outer, p_inner = stage.split(p_tiles, factor=rows, tail=tail)
        outer.insert(-1, p_part)
    unrolled = [p_inner, vectors] if rows_first else [vectors, p_inner]
    register_tile(stage, [*outer, p_outer], unrolled, lane)
    task = stage.fuse(*outer)
    if shared:
        stage.parallel(task)
        stage.parallel(p_outer)
    return p_outer
