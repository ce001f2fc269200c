"""The transforms of Winograd's filtering on a GPU: a thread has a tile of a channel in registers.

A tile is read once, transformed along its rows and its columns, and written.  Neighbouring threads
have what lies beside each other in the matrices of products: tiles where channels come first, else
channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from slipway import te
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    bind_tiles,
    only_reader,
    readers_of,
    schedule_elements,
    thread_cost,
    thread_knobs,
    thread_space,
)
from slipway.backends.stages import inline_injective, shape_of
from slipway.backends.strategy import Problem, register_strategy


@register_strategy(
    "nn.contrib_winograd_tiles", name="threads.winograd", default=thread_knobs,
    space=thread_space, cost=thread_cost,
)  # fmt: skip
def schedule_winograd_tiles(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: ThreadKnobs
) -> te.Schedule:
    """All elements of a tile are a thread's; what reads them besides has a thread for each."""
    if len(outs) != 1 or outs[0].op is not anchor.op:
        return schedule_elements(problem, outs, anchor, knobs)
    schedule = te.create_schedule(anchor.op)
    (half,) = anchor.op.input_tensors
    (image,) = half.op.input_tensors
    inline_injective(schedule, outs, keep=[half, image])
    stage = schedule[anchor]
    elements, *matrix = stage.op.axis
    _, *extents = shape_of(anchor)
    tiles_axis = bind_tiles(stage, matrix, [elements], prod(extents), problem, knobs.threads)
    if isinstance(image.op, te.PlaceholderOp):
        image = schedule.cache_read(image, "local", [half])
    for tensor in (half, image):
        _keep(schedule, tensor, stage, tiles_axis)
    return schedule


@register_strategy(
    "nn.contrib_winograd_image", name="threads.winograd", default=thread_knobs,
    space=thread_space, cost=thread_cost,
)  # fmt: skip
def schedule_winograd_image(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: ThreadKnobs
) -> te.Schedule:
    """The results of a tile are a thread's, with what is computed of each after it."""
    schedule = te.create_schedule([t.op for t in outs])
    (output_half,) = anchor.op.input_tensors
    (products,) = output_half.op.input_tensors
    inline_injective(schedule, outs, keep=[anchor, output_half])
    is_result = any(t.op is anchor.op for t in outs)
    out = anchor if is_result else only_reader(readers_of(schedule, outs), anchor.op, outs)
    if len(outs) != 1 or out is None or not isinstance(products.op, te.PlaceholderOp):
        return schedule_elements(problem, outs, anchor, knobs)
    if not is_result:
        schedule[anchor].compute_inline()
    m, first = problem.attrs.tile_size, problem.attrs.out_layout == "NCHW"
    stage, shape = schedule[out], shape_of(out)
    axes = list(stage.op.axis)
    inner, tiles = [], prod(shape)
    for k in (2, 3) if first else (1, 2):
        axes[k], step = stage.split(axes[k], factor=m, tail="guard")
        inner.append(step)
        tiles = tiles // shape[k] * -(-shape[k] // m)
    tiles_axis = bind_tiles(stage, axes, inner, tiles, problem, knobs.threads)
    part = schedule.cache_read(products, "local", [output_half])
    for tensor in (output_half, part):
        _keep(schedule, tensor, stage, tiles_axis)
    return schedule


def _keep(
    schedule: te.Schedule, tensor: te.Tensor, stage: te.Stage, tiles_axis: te.IterVar
) -> None:
    """Compute what a thread needs of a stage in its registers."""
    part = schedule[tensor]
    part.compute_at(stage, tiles_axis)
    part.set_scope("local")
    for axis in part.op.axis:
        part.unroll(axis)
