"""Products of bfloat16 by an instruction that multiplies small matrices (`cpu.mmla`): bfmmla."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.lowering.dot_pairs import vector_pairs
from slipway.backends.cpu.parts import worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.matmul.dot_pairs import schedule_padding
from slipway.backends.cpu.schedules.matmul.mmla import (
    LANES,
    MmlaStages,
    choose_mmla_tile,
    joined_tiles,
    mmla_space,
)
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import SIDE, Tile
from slipway.backends.stages import inline_injective, is_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.packed.blocked_conv import padded, read_at
from slipway.relay.ops.tensor.tensors import flat_index, unflatten
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.ir.hardware import HardwareIntrinsic
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target
    from slipway.te.tensor import Tensor


def _entry(target: Target) -> HardwareIntrinsic | None:
    """Return the instruction of `target` that multiplies matrices."""
    return next((i for i in vector_pairs(target) if i.rows > 0), None)


def _applies(attrs: Attrs | None, in_types: Sequence[Type], target: Target) -> bool:
    """The target has an instruction for weights of this type and in these blocks."""
    entry, weight = _entry(target), in_types[1]
    assert isinstance(weight, TensorType)
    return (
        entry is not None
        and weight.dtype == entry.b_dtype
        and weight.shape[-1] == entry.depth
        and weight.shape[-2] % LANES == 0
        and getattr(attrs, "groups", 1) == 1
    )


def _sides(problem: Problem) -> tuple[int, int, int]:
    """Return rows, pairs of columns, and how many pairs are contiguous in the weights."""
    (out,) = problem.out_types
    if problem.op == "nn.contrib_dense_pairs":
        return out.shape[0], out.shape[1] // SIDE, problem.in_types[1].shape[2] // SIDE
    _, blocks, *size, lanes = out.shape
    return prod(size), blocks * (lanes // SIDE), lanes // SIDE


def _default(problem: Problem) -> Tile:
    return choose_mmla_tile(*_sides(problem), problem.target)


def _space(problem: Problem) -> Space:
    _, pairs, block = _sides(problem)
    return mmla_space(pairs, block)


def _conv_compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """MMLA tiles of sums, and their rows at the positions of the result."""
    attrs = problem.attrs
    data, kernel = padded(inputs[0], attrs), inputs[1]
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    n, blocks, *size, lanes = out.shape
    _, chunks, *window, quads, _, depth = shape_of(kernel)
    wide, block = shape_of(data)[-1], lanes // SIDE
    reduced = [
        te.reduce_axis((0, chunks * quads), name="kc"),
        *(te.reduce_axis((0, k), name=f"k{i}") for i, k in enumerate(window)),
        te.reduce_axis((0, depth), name="k"),
    ]

    def datum(b: PrimExpr, c: Any, *rest: Any) -> Any:
        *at, p, k = rest
        first = c * depth
        position = read_at(unflatten(p, size), at, attrs)
        return data(b, te.floordiv(first, wide), *position, te.floormod(first, wide) + k)

    def column(c: PrimExpr, *rest: PrimExpr) -> Any:
        *at, o, lane, k = rest
        inside = te.floormod(o, block) * SIDE + lane
        chunk, quad = te.floordiv(c, quads), te.floormod(c, quads)
        return kernel(te.floordiv(o, block), chunk, *at, quad, inside, k)

    joined = joined_tiles((n, prod(size), blocks * lanes), datum, column, reduced, tile, out.dtype)

    def spread(b: PrimExpr, o: PrimExpr, *rest: PrimExpr) -> Any:
        *at, ob = rest
        return joined(b, flat_index(size, at), o * lanes + ob)

    return [te.compute(out.shape, spread, name="conv_pairs", tag="injective")]


@register_strategy(
    *(f"nn.contrib_conv{n}d_pairs" for n in (1, 2, 3)), name="conv_pairs.mmla",
    compute=_conv_compute, applies=_applies, default=_default, space=_space, cost=tile_cost(2),
)  # fmt: skip
def schedule_conv_mmla(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """Register tiles of MMLA tiles of sums."""
    target = problem.target
    schedule, output = new_schedule(outs)
    mmla, entry = MmlaStages(outs), _entry(target)
    assert entry is not None  # it applied
    data, kernel = mmla.data, mmla.weight
    inline_injective(schedule, outs, keep=[mmla.joined, mmla.packed, data])
    stage: Any = schedule[output]
    n, o, *position, ob = stage.op.axis
    images, _, *size, lanes = shape_of(output)
    o_outer, o_inner = stage.split(o, factor=tile.vectors * SIDE // lanes)
    parallel = worth_sharing(images * prod(size) * prod(shape_of(kernel)), target)
    if is_injective(data.op):
        schedule_padding(schedule[data], parallel)
    loops = (n, o_outer), position, o_inner, ob
    mmla.schedule_images(schedule, stage, loops, tile, entry, parallel, target)
    return schedule


def _dense_compute(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """MMLA tiles of sums, and their rows at the positions of the result."""
    data, weight = inputs
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    rows, units = out.shape
    _, steps, lanes, depth = shape_of(weight)
    block = lanes // SIDE
    reduced = [te.reduce_axis((0, steps), name="kc"), te.reduce_axis((0, depth), name="k")]

    def column(c: PrimExpr, o: PrimExpr, lane: Tensor, k: PrimExpr) -> Any:
        return weight(te.floordiv(o, block), c, te.floormod(o, block) * SIDE + lane, k)

    joined = joined_tiles(
        (1, rows, units),
        lambda b, c, m, k: data(m, c * depth + k),
        column,
        reduced,
        tile,
        out.dtype,
    )
    return [
        te.compute(out.shape, lambda m, n: joined(0, m, n), name="dense_pairs", tag="injective")
    ]


@register_strategy(
    "nn.contrib_dense_pairs", name="dense_pairs.mmla", compute=_dense_compute, applies=_applies,
    default=_default, space=_space, cost=tile_cost(2),
)  # fmt: skip
def schedule_dense_mmla(
    problem: Problem, outs: Sequence[te.Tensor], dense: te.Tensor, tile: Tile
) -> te.Schedule:
    """Register tiles of MMLA tiles of sums."""
    target = problem.target
    schedule, output = new_schedule(outs)
    mmla, entry = MmlaStages(outs), _entry(target)
    assert entry is not None  # it applied
    inline_injective(schedule, outs, keep=[mmla.joined, mmla.packed])
    weight = mmla.weight
    stage: Any = schedule[output]
    m, n = stage.op.axis
    n_outer, n_inner = stage.split(n, factor=tile.vectors * SIDE)
    n_vector, n_lane = stage.split(n_inner, factor=LANES)
    m_outer, m_inner = stage.split(m, factor=tile.rows)
    register_tile(stage, [n_outer, m_outer], [n_vector, m_inner], n_lane)
    rows = shape_of(output)[0]
    if worth_sharing(rows * prod(shape_of(weight)), target, 2 * prod(shape_of(weight))):
        stage.parallel(n_outer)
    mmla.compute_at(schedule, stage, m_outer, entry, target)
    return schedule
