"""Integer convolutions by an instruction that multiplies small matrices (`cpu.mmla`): smmla.

data    (N, H, W, C)
weight  (O/o, kH, kW, C/8, o, 8)       o channels contiguous, so that two loads are one
result  (N, OH, OW, O)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.matmul.mmla import (
    LANES,
    MmlaStages,
    choose_mmla_tile,
    joined_tiles,
    mmla_space,
)
from slipway.backends.cpu.schedules.quantized.packed import schedule_copy
from slipway.backends.cpu.tile import SIDE, Tile
from slipway.backends.stages import inline_injective, is_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay.ops.packed.qnn_packed import copied
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target
    from slipway.te.tensor import Tensor

MATRICES = ("neon.smmla",)


def _instruction(data: Any, weight: Any, target: Target) -> HardwareIntrinsic | None:
    """Return the instruction of `target` for data and packed weights of these types."""
    for entry in (HARDWARE[name] for name in MATRICES):
        lanes, depth = (int(d) for d in weight.shape[4:])
        packed_for = depth == entry.depth and lanes % LANES == 0
        kinds = (data.dtype, weight.dtype) == (entry.a_dtype, entry.b_dtype)
        if packed_for and kinds and not entry.missing(target):
            return entry
    return None


def _applies(attrs: Attrs, in_types: Sequence[Type], target: Target) -> bool:
    return target.is_by_llvm and bool(_instruction(in_types[0], in_types[1], target))


def _sides(problem: Problem) -> tuple[int, int, int]:
    (out,), weight = problem.out_types, problem.in_types[1]
    _, height, width, channels = out.shape
    return height * width, channels // SIDE, weight.shape[4] // SIDE


def _default(problem: Problem) -> Tile:
    return choose_mmla_tile(*_sides(problem), problem.target)


def _space(problem: Problem) -> Space:
    _, pairs, block = _sides(problem)
    return mmla_space(pairs, block)


def _compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """MMLA tiles of sums, and their rows at the positions of the result."""
    attrs, weight = problem.attrs, inputs[1]
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    n, height, width, channels = out.shape
    _, kh, kw, chunks, lanes, depth = shape_of(weight)
    block = lanes // SIDE
    (sy, sx), (dy, dx) = attrs.strides, attrs.dilation
    data = copied(attrs, inputs[0], weight)

    def datum(b: PrimExpr, ky: Any, kx: Any, c: PrimExpr, p: PrimExpr, k: Any) -> Any:
        y, x = te.floordiv(p, width) * sy + ky * dy, te.floormod(p, width) * sx + kx * dx
        return data(b, y, x, c * depth + k)

    def column(
        ky: PrimExpr, kx: PrimExpr, c: PrimExpr, o: PrimExpr, lane: Tensor, k: PrimExpr
    ) -> Any:
        return weight(te.floordiv(o, block), ky, kx, c, te.floormod(o, block) * SIDE + lane, k)

    reduced = [
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((kh, "ky"), (kw, "kx"), (chunks, "kc"), (depth, "k"))
    ]
    joined = joined_tiles((n, height * width, channels), datum, column, reduced, tile, out.dtype)
    return [
        te.compute(
            out.shape, lambda b, y, x, c: joined(b, y * width + x, c), name="conv2d_packed",
            tag="injective",
        )
    ]  # fmt: skip


@register_strategy(
    "qnn.contrib_conv2d_packed", name="qnn_conv.rows", compute=_compute, applies=_applies,
    default=_default, space=_space, cost=tile_cost(4),
)  # fmt: skip
def schedule_qnn_conv_mmla(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """Register tiles of MMLA tiles of sums."""
    target = problem.target
    schedule, output = new_schedule(outs)
    mmla = MmlaStages(outs)
    data, weight = mmla.data, mmla.weight
    inline_injective(schedule, outs, keep=[mmla.joined, mmla.packed, data])
    entry = _instruction(data, weight, target)
    assert entry is not None  # it applied
    parallel = worth_sharing(prod(shape_of(output)) * prod(shape_of(weight)[1:4]), target)
    if is_injective(data.op):
        schedule_copy(schedule, data, target, parallel)

    stage: Any = schedule[output]
    n, y, x, c = stage.op.axis
    c_outer, c_inner = stage.split(c, factor=tile.vectors * SIDE)
    c_vector, c_lane = stage.split(c_inner, factor=LANES)
    loops = (n, c_outer), (y, x), c_vector, c_lane
    mmla.schedule_images(schedule, stage, loops, tile, entry, parallel, target)
    return schedule
