"""Integer depthwise convolutions with packed weights: four taps of a window an instruction.

A task computes a band of rows, whose data is copied with its padding just before.  For one block of
channels after the other it goes along the rows, a few results that share data at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.lowering.pack_quantized import TAPS
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.predict import product_cycles, weight_products
from slipway.backends.cpu.schedules.conv.halo import cut
from slipway.backends.cpu.schedules.register_tile import (
    COPY_LANES,
    copy_of_image,
    register_tile,
    sums_in_registers,
)
from slipway.backends.stages import inline_injective, is_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.errors import LoweringError
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay.dims import is_open, lower_bound, usual
from slipway.relay.ops.packed.qnn_packed import data_kind
from slipway.te.hardware import hardware_intrinsic

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.relay.types import Type
    from slipway.target import Target


def _instruction(data: Any, weight: Any, target: Target) -> HardwareIntrinsic | None:
    """Return the cheapest instruction for all channels that `target` has, or None."""
    channels, depth = (int(d) for d in weight.shape[3:])
    best: tuple[int, HardwareIntrinsic] | None = None
    for entry in map(HARDWARE.__getitem__, TAPS):
        kind = data_kind(data.dtype, weight.dtype)
        fits = (kind, weight.dtype, depth) == (entry.a_dtype, entry.b_dtype, entry.depth)
        if not fits or entry.columns > channels or entry.missing(target):
            continue
        words = entry.columns // entry.depth  # of its vectors, of 32 bits each
        total = -(-channels // entry.columns) * (words + target.core.costs.tap_words)
        if best is None or total < best[0]:
            best = total, entry
    return None if best is None else best[1]


def _applies(attrs: Attrs, in_types: Sequence[Type], target: Target) -> bool:
    return target.is_by_llvm and bool(_instruction(in_types[0], in_types[1], target))


@dataclass(frozen=True)
class BandKnobs(Knobs):
    """`rows` of results in a task; windows of up to `unrolled` steps are unrolled."""

    rows: int
    unrolled: int


def _default(problem: Problem) -> BandKnobs:
    """Rows whose data, with its padding, stays in a quarter of the second-level cache."""
    data, weight = problem.in_types
    height, results_wide = map(usual, problem.out_types[0].shape[1:3])
    _, steps, results, _, depth = weight.shape
    top, left, bottom, right = problem.attrs.padding
    rows = usual(data.shape[1]) + top + bottom
    reach = (-(-results_wide // results) - 1) * results * problem.attrs.strides[1] + steps * depth
    width = max(left + usual(data.shape[2]) + right, reach)
    row_bytes = width * data.shape[3] * dtypes.bytes_of(data_kind(data.dtype, weight.dtype))
    most = problem.target.core.l2_bytes // 4 // max(1, row_bytes * rows // height)
    band = max(d for d in _bands(problem.out_types[0].shape[1]) if d <= max(1, most))
    return BandKnobs(band, problem.target.core.costs.window_dots)


def _bands(height: Any) -> Sequence[int]:
    """Return the rows that a task may have: of an open height, whose last band overlaps, any."""
    if is_open(height):
        return range(1, lower_bound(height) + 1)
    return [d for d in range(1, height + 1) if height % d == 0]


def _cost(problem: Problem, knobs: BandKnobs) -> float:
    """Four taps at once; the weights are stored for each of the results together."""
    results = problem.in_types[1].shape[2]
    return product_cycles(problem, weight_products(problem) / results, results, 1, at_once=4)


def _space(problem: Problem) -> Space:
    return {
        "rows": _bands(problem.out_types[0].shape[1]), "unrolled": (0, 40, 80)
    }  # fmt: skip


@register_strategy(
    "qnn.contrib_depthwise_packed", name="qnn_depthwise.taps", applies=_applies, default=_default,
    space=_space, cost=_cost,
)  # fmt: skip
def schedule_taps(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, knobs: BandKnobs
) -> te.Schedule:
    """Neighbouring results of a block of channels in registers."""
    target = problem.target
    schedule, output = new_schedule(outs)
    sums = tagged(outs)["packed_depthwise"]
    data, weight = sums.op.input_tensors
    inline_injective(schedule, outs, keep=[sums, data])
    entry = _instruction(data, weight, target)
    if entry is None:
        raise LoweringError(f"{target} has no instruction for the taps of {weight}")
    sums = sums_in_registers(schedule, output, sums)
    kh, steps, results, _, _ = shape_of(weight)

    stage: Any = schedule[output]
    n, y, x, c = stage.op.axis
    y_outer, y_inner = stage.split(y, factor=knobs.rows, tail="shift")
    c_outer, c_inner = stage.split(c, factor=entry.columns, tail="shift")
    x_outer, x_inner = stage.split(x, factor=results)
    register_tile(stage, [n, y_outer, c_outer, y_inner, x_outer], [x_inner], c_inner)
    task = stage.fuse(n, y_outer)
    results_all = prod(map(usual, problem.out_types[0].shape))
    if worth_sharing(results_all * kh * steps * entry.depth, target):
        stage.parallel(task)
    if is_injective(data.op):
        _copy_at(schedule, data, stage, task)

    inner: Any = schedule[sums]
    inner.compute_at(stage, x_outer)
    b, y, x, lane = inner.op.axis
    ky, step, tap = inner.op.reduce_axis
    taps = hardware_intrinsic(entry.name, target)
    register_tile(inner, [b, y, ky, step], [x], lane, taps, [tap])
    if kh * steps * results <= knobs.unrolled:
        inner.unroll(ky)
        inner.unroll(step)
    return schedule


def _copy_at(schedule: te.Schedule, data: te.Tensor, stage: Any, task: Any) -> None:
    """Copy the data of a task, channels in vectors."""
    copy: Any = schedule[data]
    copy.compute_at(stage, task)
    cut(copy, *copy.op.axis[1:3])
    copy_of_image(copy, COPY_LANES, minimum=4)
