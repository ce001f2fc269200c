"""Convolutions with few filters (an image's three, say): positions of a row are the lanes.

Channels in blocks would leave most lanes idle.  Here a tile is all filters by some vectors of
neighbouring positions; each of these is loaded once for all filters, whose weights are broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.lowering.layout_choice import few_filters
from slipway.backends.cpu.parts import rows_per_part, worth_sharing
from slipway.backends.cpu.schedules.register_tile import register_tile, sums_in_registers
from slipway.backends.cpu.tile import all_rows, step_cost, vector_registers, widest_tile
from slipway.backends.stages import extent_of, inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.nn.conv import ConvAttrs
    from slipway.target import Target


def _applies(attrs: ConvAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Plain float images on a processor with vectors."""
    data, kernel = in_types
    assert isinstance(data, TensorType)
    assert isinstance(kernel, TensorType)
    plain = (attrs.data_layout, attrs.kernel_layout) == ("NCHW", "OIHW")
    lanes = vector_lanes(target, data.dtype)
    same = attrs.out_layout in ("", "NCHW") and attrs.out_dtype in ("", data.dtype)
    return plain and same and data.dtype == "float32" and few_filters(attrs, data, kernel, lanes)


@dataclass(frozen=True)
class FilterKnobs(Knobs):
    """`vectors` of neighbouring positions in a tile, `rows` of the image in a task."""

    vectors: int
    rows: int


def _default(problem: Problem) -> FilterKnobs:
    """Sums in three quarters of the registers."""
    (out,), target = problem.out_types, problem.target
    images, filters, height, width = out.shape
    kernel = all_rows(target, spare=-(-vector_registers(target) // 4))
    blocks = -(-width // vector_lanes(target, out.dtype))
    rows = min(height, rows_per_part(height, images, target, each=4))
    return FilterKnobs(widest_tile(kernel, filters, blocks).vectors, rows)


def _space(problem: Problem) -> Space:
    (out,), target = problem.out_types, problem.target
    *_, height, width = out.shape
    blocks = -(-width // vector_lanes(target, out.dtype))
    vectors = range(1, min(blocks, vector_registers(target)) + 1)
    return {"vectors": vectors, "rows": range(1, height + 1)}


def _cost(problem: Problem, knobs: FilterKnobs) -> float:
    (out,), target = problem.out_types, problem.target
    images, filters, height, width = out.shape
    runs = -(-width // (vector_lanes(target, out.dtype) * knobs.vectors))
    taps = prod(problem.in_types[1].shape[1:])
    each = filters * knobs.vectors * step_cost(filters, knobs.vectors, target, from_l1=True)
    return float(images * height * runs * taps * each)


@register_strategy(
    "nn.conv2d", name="conv2d.few_filters", applies=_applies, default=_default, space=_space,
    cost=_cost,
)  # fmt: skip
def schedule_few_filters(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, knobs: FilterKnobs
) -> te.Schedule:
    """Some rows at a time, with the padding beside them."""
    target, vectors = problem.target, knobs.vectors
    schedule, output = new_schedule(outs)
    pad = [t for t in conv.op.input_tensors if "pad" in getattr(t.op, "tag", "")]
    inline_injective(schedule, outs, keep=[conv, *pad])
    sums = sums_in_registers(schedule, output, conv)
    width = shape_of(output)[-1]
    lanes = vector_lanes(target, output.dtype)
    stage: Any = schedule[output]
    n, oc, h, w = stage.op.axis
    part, row = stage.split(h, factor=knobs.rows, tail="shift")
    run, inside = stage.split(w, factor=min(width, lanes * vectors), tail="shift")
    vector, lane = stage.split(inside, factor=lanes)
    register_tile(stage, [n, part, row, run], [oc, vector], lane)
    task = stage.fuse(n, part)
    products = prod(extent_of(axis) for axis in conv.op.reduce_axis)
    if worth_sharing(prod(shape_of(output)) * products, target):
        stage.parallel(task)
    for tensor in pad:
        schedule[tensor].compute_at(stage, task)
        schedule[tensor].vectorize(tensor.op.axis[-1])

    registers: Any = schedule[sums]
    registers.compute_at(stage, run)
    n, oc, h, w = registers.op.axis
    channel, *taps, tap = registers.op.reduce_axis
    vector, lane = registers.split(w, factor=lanes)
    register_tile(registers, [n, h, channel, *taps], [tap, vector, oc], lane)
    return schedule
