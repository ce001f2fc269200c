"""Depthwise convolutions of plain images: neighbouring positions of a row are the lanes.

Nothing is moved into blocks of channels and back, and no channel is padded.  A tile is a vector of
positions in each of some rows, with all taps of the window unrolled: a vector of the image is
loaded once for all rows of the tile that it is a tap of, and a weight once for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.schedules.register_tile import over_padded, pad_within, register_tile
from slipway.backends.cpu.tile import fma, vector_registers
from slipway.backends.stages import shape_of
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay.open_dims import has_open
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.nn.conv import ConvAttrs
    from slipway.target import Target

FEWEST = 4  # lanes of a vector
MOST_TAPS = 25  # that are unrolled; of more, what later rows read again spills
MOST_ROWS = 8


@dataclass(frozen=True)
class DepthwiseKnobs(Knobs):
    """`rows` of `lanes` neighbouring positions in a tile."""

    rows: int
    lanes: int


def _applies(attrs: ConvAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Plain float images of fixed sizes, with filters of one channel and rows without gaps.

    Not where engines keep what an instruction loads: so many unrolled taps leave them no registers.
    """
    data, kernel = in_types
    assert isinstance(data, TensorType)
    assert isinstance(kernel, TensorType)
    plain = (attrs.data_layout, attrs.kernel_layout) == ("NCHW", "OIHW")
    same = attrs.out_layout in ("", "NCHW") and attrs.out_dtype in ("", data.dtype)
    if not plain or not same or data.dtype != "float32" or attrs.strides[-1] != 1:
        return False
    if has_open(data) or has_open(kernel) or kernel.shape[1] != 1 or fma(target).held:
        return False
    span = (kernel.shape[-1] - 1) * attrs.dilation[-1]
    row = data.shape[-1] + attrs.padding[1] + attrs.padding[3] - span
    lanes = vector_lanes(target, data.dtype)
    depthwise = attrs.groups == data.shape[1] > 1
    return bool(depthwise and prod(kernel.shape[2:]) <= MOST_TAPS and min(row, lanes) >= FEWEST)


def _lanes(problem: Problem) -> list[int]:
    """Return the lanes that a vector may have, the widest first: those of a row at most."""
    (out,) = problem.out_types
    lanes, found = vector_lanes(problem.target, out.dtype), []
    while lanes >= FEWEST:
        found.append(lanes)
        lanes //= 2
    return [n for n in found if n <= out.shape[-1]]


def _candidates(problem: Problem) -> list[DepthwiseKnobs]:
    (out,) = problem.out_types
    return [
        DepthwiseKnobs(rows, lanes)
        for lanes in _lanes(problem)
        for rows in range(1, min(MOST_ROWS, out.shape[2]) + 1)
    ]


def _default(problem: Problem) -> DepthwiseKnobs:
    """The tile that is predicted to take least time; of equals, the largest."""
    every = _candidates(problem)
    return min(every, key=lambda k: (_cost(problem, k), -k.rows))


def _space(problem: Problem) -> Space:
    (out,) = problem.out_types
    return {"rows": range(1, min(MOST_ROWS, out.shape[2]) + 1), "lanes": _lanes(problem)}


def _cost(problem: Problem, knobs: DepthwiseKnobs) -> float:
    """The cycles of all tiles: of multiply-adds, or of loads, whose vectors lie across lines."""
    (data, kernel), (out,), core = problem.in_types, problem.out_types, problem.target.core
    attrs, rows = problem.attrs, knobs.rows
    images, channels, height, width = out.shape
    tall, wide = kernel.shape[2:]
    bits, line = 32 * knobs.lanes, 8 * core.line_bytes
    read = {r * attrs.strides[0] + y * attrs.dilation[0] for r in range(rows) for y in range(tall)}
    values, weights = len(read) * wide, tall * wide
    # What waits in registers: the sums, the vectors that later rows of taps read, two factors.
    held = rows + max(0, len(read) - tall) * wide + 2
    spilled = 2 * max(0, held - vector_registers(problem.target))
    multiplied = rows * weights * max(bits, core.fma_bits // 2) / core.fma_bits
    across = 1 + (bits / line if wide > 1 else 0)
    loaded = (values * across + spilled) * max(bits, core.load_bits // 2) / core.load_bits
    loaded += weights / 2
    waits = core.fma_latency * weights / 2
    tile = max(multiplied, loaded, waits) + core.costs.load_cycles * (values + weights + spilled)
    tiles = -(-height // rows) * -(-width // knobs.lanes)
    # The copy with zeros around it: the ends of a row, which vectors do not fill, one by one.
    lines = data.shape[2] if any(attrs.padding) else 0
    ends = core.costs.row_end_cycles if attrs.padding[1] or attrs.padding[3] else 0
    padded = lines * (ends + 2 * data.shape[3] / knobs.lanes)
    return float(images * (channels * tiles * tile + data.shape[1] * padded))


@register_strategy(
    "nn.conv2d", name="conv2d.depthwise", priority=11, applies=_applies, default=_default,
    space=_space, cost=_cost,
)  # fmt: skip
def schedule_plain_depthwise(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, knobs: DepthwiseKnobs
) -> te.Schedule:
    """A channel at a time, with the padding around it."""
    target = problem.target
    schedule, output, sums, pad = over_padded(outs, conv)
    (data, kernel), (out,) = problem.in_types, problem.out_types
    stage: Any = schedule[output]
    n, oc, h, w = stage.op.axis
    channel, filter_ = stage.split(oc, factor=out.shape[1] // data.shape[1])
    band, row = stage.split(h, factor=knobs.rows, tail="shift")
    run, lane = stage.split(w, factor=knobs.lanes, tail="shift")
    register_tile(stage, [n, channel, filter_, band, run], [row], lane)
    task = stage.fuse(n, channel)
    if worth_sharing(prod(shape_of(output)) * prod(kernel.shape[2:]), target):
        stage.parallel(task)
    pad_within(schedule, pad, stage, task)

    registers: Any = schedule[sums]
    registers.compute_at(stage, run)
    n, oc, h, w = registers.op.axis
    register_tile(registers, [n, oc], [*registers.op.reduce_axis, h], w)
    return schedule
