"""Depthwise convolutions on blocked channels: a run of positions in registers, no padded copy.

Images may have any size: a run in the middle of a row asks once whether all of its taps are inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.parts import rows_per_part, worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.conv.halo import cut, window_at
from slipway.backends.cpu.schedules.register_tile import register_tile, sums_in_registers
from slipway.backends.cpu.tile import Tile, choose_tile, fma, vector_registers
from slipway.backends.stages import inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import is_open, lower_bound, usual
from slipway.relay.ops.packed.blocked_conv import taps_of
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr


def _compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    attrs, (data, kernel) = problem.attrs, inputs
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    taps = taps_of(kernel)

    def element(b: PrimExpr, c: PrimExpr, *rest: PrimExpr) -> Any:
        *at, cb = rest
        positions, inside = window_at(data, at, taps, attrs)
        left = data(b, c, *positions, cb).astype(out.dtype)
        return te.sum(left * kernel(c, 0, *taps, 0, cb).astype(out.dtype), taps, inside)

    return [te.compute(out.shape, element, name="depthwise_blocked", tag="depthwise_blocked")]


def _width(problem: Problem) -> int:
    (out,) = problem.out_types
    return min(lower_bound(out.shape[-2]), problem.target.core.costs.window_positions)


def _default(problem: Problem) -> Tile:
    return choose_tile(fma(problem.target), _width(problem), 1)


def _space(problem: Problem) -> Space:
    return {"rows": range(1, _width(problem) + 1), "vectors": (1,)}


@register_strategy(
    *(f"nn.contrib_depthwise_conv{n}d_nchwc" for n in (1, 2, 3)), name="depthwise_nchwc.direct",
    compute=_compute, default=_default, space=_space, cost=tile_cost(),
)  # fmt: skip
def schedule_depthwise_nchwc(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """Direct depthwise convolution, a window of a few taps unrolled."""
    target = problem.target
    schedule, output = new_schedule(outs)
    inline_injective(schedule, outs, keep=[conv])
    sums = sums_in_registers(schedule, output, conv)
    images, planes, *size, _ = shape_of(output)
    window = prod(shape_of(sums.op.input_tensors[1])[2:-2])
    # Unrolled as C, the copies for each side of the padding are long.
    unrolled = window * tile.rows <= target.core.costs.window_products and target.is_by_llvm

    stage: Any = schedule[output]
    n, c, *rows, ow, cb = stage.op.axis
    ow_outer, ow_inner = stage.split(ow, factor=tile.rows, tail="shift")
    outer, inside = [n, c], []
    if rows and not is_open(size[0]):
        each = rows_per_part(size[0], usual(images * planes), target)
        band, row = stage.split(rows[0], factor=each, tail="shift")
        outer, inside = [n, c, band], [row, *rows[1:]]
    elif rows:
        inside = rows
    register_tile(stage, [*outer, *inside, ow_outer], [ow_inner], cb)
    cut(stage, ow_outer, *(inside if unrolled else []))
    part = stage.fuse(*outer)
    if worth_sharing(prod(shape_of(output)) * window, target):
        stage.parallel(part)

    inner: Any = schedule[sums]
    inner.compute_at(stage, ow_outer)
    n, c, *rows, ow, cb = inner.op.axis
    taps = inner.op.reduce_axis
    register_tile(inner, [n, c, *rows, *taps], [ow], cb)
    cut(inner, *taps)
    if unrolled:
        # LLVM keeps the weights of all copies, and spills them where registers are few and
        # arithmetic takes no operand from memory.
        spills = vector_registers(target) < 32 and not target.arch.startswith("x86")
        for tap in taps[len(taps) > 1 and spills :]:
            inner.unroll(tap)
    return schedule
