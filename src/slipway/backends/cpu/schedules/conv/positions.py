"""Convolutions of plain images: neighbouring positions of a row are the lanes.

Nothing is moved into blocks and back, and no channel is padded.  A tile is some filters of a group
by some vectors of positions; each of these is loaded once for all of its filters, whose weights are
broadcast.  Of short rows several are in a tile.  It is what few filters (an image's three, say)
get, which would leave most lanes of a block idle, and what the layout pass leaves plain because a
record says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import rows_per_part, worth_sharing
from slipway.backends.cpu.schedules.register_tile import over_padded, pad_within, register_tile
from slipway.backends.cpu.tile import Tile, fma, step_cost, vector_registers
from slipway.backends.stages import extent_of, shape_of
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay.dims import is_open, lower_bound
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.nn.conv import ConvAttrs
    from slipway.target import Target

FEWEST = 4  # lanes of a vector
MOST_LINES = 8  # of a tile, whose rows are shorter than what hides the latency of their sums
MOST_FILTERS = 16  # of a tile: their weights are read from as many places


def _applies(attrs: ConvAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Plain float images, whose rows have four positions at least, without gaps between them."""
    data, kernel = in_types
    assert isinstance(data, TensorType)
    assert isinstance(kernel, TensorType)
    plain = (attrs.data_layout, attrs.kernel_layout) == ("NCHW", "OIHW")
    same = attrs.out_layout in ("", "NCHW") and attrs.out_dtype in ("", data.dtype)
    if not plain or not same or data.dtype != "float32" or attrs.strides[-1] != 1:
        return False
    if any(map(is_open, (data.shape[1], *kernel.shape))):
        return False
    span = (kernel.shape[-1] - 1) * attrs.dilation[-1]
    row = lower_bound(data.shape[-1]) + attrs.padding[1] + attrs.padding[3] - span
    return min(row, vector_lanes(target, data.dtype)) >= FEWEST


@dataclass(frozen=True)
class PositionKnobs(Knobs):
    """`filters` by `vectors` of neighbouring positions in each of `lines` of the image in a tile.

    `rows` of the image are in a task.
    """

    filters: int
    vectors: int
    rows: int
    lines: int = 1


def _group(problem: Problem) -> int:
    """Return the filters of a group."""
    return int(problem.out_types[0].shape[1] // problem.attrs.groups)


def _lanes(problem: Problem) -> int:
    """Return the lanes of a vector: those of the target's, or a half or quarter of a short row."""
    (out,) = problem.out_types
    lanes, row = vector_lanes(problem.target, out.dtype), lower_bound(out.shape[-1])
    while lanes > max(FEWEST, row):
        lanes //= 2
    return lanes


def _whole_vectors(problem: Problem) -> int:
    """Return the vectors that a row fills; a last tile overlaps the one before it."""
    (out,) = problem.out_types
    return max(1, lower_bound(out.shape[-1]) // _lanes(problem))


def _default(problem: Problem) -> PositionKnobs:
    """The tile that takes least time, last ones that overlap counted; of equals, most filters."""
    (out,), target = problem.out_types, problem.target
    images, _, height, _ = out.shape
    rows = min(height, rows_per_part(height, images, target, each=4))
    whole = _whole_vectors(problem)
    legal = [
        PositionKnobs(filters, vectors, rows, lines)
        for filters in reversed(_filters(problem))
        for vectors in range(1, whole + 1)
        for lines in (_lines(problem) if vectors == whole else [1])
        if _fits(filters, vectors * lines, target)
    ]
    return min(legal or [PositionKnobs(1, 1, rows)], key=lambda k: _cost(problem, k))


def _fits(filters: int, vectors: int, target: Target) -> bool:
    """Return whether a tile fits the registers: its sums three quarters of them.

    Where engines load all values of a step before they multiply, those have registers as well.
    """
    kernel, room = fma(target), vector_registers(target)
    used = kernel.registers(Tile(filters, vectors)) if kernel.held else 0
    return 4 * filters * vectors <= 3 * room and used <= room


def _filters(problem: Problem) -> list[int]:
    """Return the heights that a tile may have: its filters are of one group."""
    group = _group(problem)
    return [n for n in range(1, min(group, MOST_FILTERS) + 1) if group % n == 0 or n > 3]


def _lines(problem: Problem) -> range:
    """Return how many rows of the image a tile may have."""
    height = problem.out_types[0].shape[2]
    return range(1, 1 if is_open(height) else min(height, MOST_LINES) + 1) or range(1, 2)


def _space(problem: Problem) -> Space:
    height = problem.out_types[0].shape[2]
    vectors = range(1, min(_whole_vectors(problem), vector_registers(problem.target)) + 1)
    return {
        "filters": _filters(problem),
        "vectors": vectors,
        "rows": range(1, lower_bound(height) + 1),
        "lines": _lines(problem),
    }


def _cost(problem: Problem, knobs: PositionKnobs) -> float:
    (out,), target = problem.out_types, problem.target
    images, _, height, width = out.shape
    runs = -(-width // (_lanes(problem) * knobs.vectors)) * -(-height // knobs.lines)
    vectors = knobs.vectors * knobs.lines
    tiles = problem.attrs.groups * -(-_group(problem) // knobs.filters)
    taps = prod(problem.in_types[1].shape[1:])
    bits = 32 * _lanes(problem)
    step = step_cost(knobs.filters, vectors, target, from_l1=True, bits=bits)
    each = knobs.filters * vectors * step
    return float(images * runs * tiles * taps * each)


@register_strategy(
    "nn.conv2d", name="conv2d.positions", applies=_applies, default=_default, space=_space,
    cost=_cost,
)  # fmt: skip
def schedule_positions(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, knobs: PositionKnobs
) -> te.Schedule:
    """Some rows at a time, with the padding beside them."""
    target, vectors = problem.target, knobs.vectors
    schedule, output, sums, pad = over_padded(outs, conv)
    lanes = _lanes(problem)
    stage: Any = schedule[output]
    n, oc, h, w = stage.op.axis
    group, filters = stage.split(oc, factor=_group(problem))
    block, filter_ = stage.split(filters, factor=knobs.filters, tail="shift")
    lines, line = stage.split(h, factor=knobs.lines, tail="shift") if knobs.lines > 1 else (h, None)
    part, row = stage.split(lines, factor=max(1, knobs.rows // knobs.lines))
    run, inside = stage.split(w, factor=lanes * vectors, tail="shift")
    vector, lane = stage.split(inside, factor=lanes)
    unrolled = [filter_, vector] if line is None else [line, filter_, vector]
    register_tile(stage, [n, part, group, block, row, run], unrolled, lane)
    task = stage.fuse(n, part)
    products = prod(extent_of(axis) for axis in conv.op.reduce_axis)
    if worth_sharing(prod(shape_of(output)) * products, target):
        stage.parallel(task)
    pad_within(schedule, pad, stage, task)

    registers: Any = schedule[sums]
    registers.compute_at(stage, run)
    n, oc, h, w = registers.op.axis
    channel, *taps, tap = registers.op.reduce_axis
    vector, lane = registers.split(w, factor=lanes)
    around, inside = ([n, h], []) if line is None else ([n], [h])
    # What comes last is read anew for each of what comes first, which stays in registers.
    inner = (
        [oc, *inside, vector] if vectors * knobs.lines < knobs.filters else [*inside, vector, oc]
    )
    register_tile(registers, [*around, channel, *taps], [tap, *inner], lane)
    return schedule
