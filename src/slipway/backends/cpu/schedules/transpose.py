"""Stages that read across memory: square tiles, so that both sides are touched by whole vectors.

Where the last axes of the result run across what is read, and other axes of it along, a tile of
both is unrolled; the pass TransposeLoads transposes it in registers::

    T[c, p] = A[p, c]  ->  for c.outer, p.outer: unrolled for c.inner: vectorized for p.inner
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.arith.linear import Linear
from slipway.arith.slope import slope
from slipway.backends.cpu.knobs import copied_elements
from slipway.backends.cpu.schedules.load_offset import LoadOffset, row_axis
from slipway.backends.stages import extent_of
from slipway.errors import LoweringError
from slipway.ir import ops
from slipway.ir.expr import Call, ProducerLoad, Var
from slipway.ir.visit import children, substitute
from slipway.relay.dims import is_open, lower_bound, size_of, usual

if TYPE_CHECKING:
    from slipway.target import Target

SIZES = (16, 8, 4)
ITEM_BITS = (8, 16, 32)
NEON_LANES = 4
_MOST_INLINED = 16


@dataclass(frozen=True)
class SquareTile:
    """Positions of the axes that are read along and across memory, and the extent of the tile."""

    along: tuple[int, ...]
    across: tuple[int, ...]
    size: int
    shifts: bool  # a last tile along memory may begin anywhere
    period: int = 0  # steps of the axis along memory after which it goes on elsewhere; 0: none


def find_tile(schedule: te.Schedule, op: te.ComputeOp, lanes: int) -> SquareTile | None:
    """Return the tile of a stage that reads across memory; None for one that does not."""
    if dtypes.bits_of(op.output(0).dtype) > 32 or op.num_outputs != 1 or lanes < SIZES[-1]:
        return None
    extents = [_extent(axis.extent) for axis in op.axis]
    if usual(prod(extents)) < SIZES[0] * SIZES[0]:
        return None
    load = _only_large_load(schedule, op)
    if load is None or dtypes.bits_of(load.producer.dtype) not in ITEM_BITS:
        return None
    if dtypes.is_bool(load.producer.dtype):
        return None
    # Narrow elements fill a register of 128 bits, whatever is made of them.
    return _Tiles(op, extents, load).tile(max(lanes, 128 // dtypes.bits_of(load.producer.dtype)))


def schedule_transposed(
    schedule: te.Schedule, tensor: te.Tensor, target: Target, lanes: int
) -> bool:
    """Schedule a stage in square tiles if it reads across memory; return whether it does."""
    if not target.is_by_llvm:
        return False
    if target.arch.startswith("aarch64"):
        lanes = min(lanes, NEON_LANES)  # SVE has no exchange of parts beyond 128 bits
    found = find_tile(schedule, tensor.op, lanes)
    if found is None:
        return _schedule_narrow(schedule, tensor, target, lanes)
    stage: Any = schedule[tensor]
    axes = list(stage.op.axis)
    across = stage.fuse(*(axes[p] for p in found.across))
    others = [axis for p, axis in enumerate(axes) if p not in (*found.along, *found.across)]
    inside = [axes[p] for p in found.along]
    length = lower_bound(prod(extent_of(axis) for axis in inside))
    if found.period:
        run, inside[0] = stage.split(inside[0], factor=found.period)
        others.append(run)
        length = found.period
    stage.reorder(*others, *inside, across)
    along = stage.fuse(*inside)
    tail = "shift" if found.shifts else "guard"
    run = target.core.costs.transposed_run * found.size
    run = run if found.shifts and length >= 2 * run else found.size
    u_outer, u_tiles = stage.split(along, factor=run, tail=tail)
    u_tile, u_inner = stage.split(u_tiles, factor=found.size)
    v_outer, v_inner = stage.split(across, factor=found.size, tail="shift")
    stage.reorder(*others, u_outer, v_outer, u_tile, u_inner, v_inner)
    stage.unroll(u_inner)
    stage.vectorize(v_inner)
    if usual(prod(extent_of(axis) for axis in axes)) >= copied_elements(target) // 2:
        stage.parallel(stage.fuse(*others, u_outer))
    return True


def _schedule_narrow(schedule: te.Schedule, tensor: te.Tensor, target: Target, lanes: int) -> bool:
    """Schedule a stage whose last axis, too short for a tile, reads across memory.

    Planes become the channels of pixels: a step stores all of a pixel, one by one.  Vectors over
    several pixels would take a division for each lane to find its place.
    """
    op = tensor.op
    if op.num_outputs != 1 or lanes < SIZES[-1] or not op.axis:
        return False
    extents = [_extent(axis.extent) for axis in op.axis]
    total = usual(prod(extents))
    if is_open(extents[-1]) or not 1 < extents[-1] < SIZES[-1] or total < SIZES[0] * SIZES[0]:
        return False
    load = _only_large_load(schedule, op, calls=False)
    if load is None:
        return False
    reading = _Tiles(op, extents, load)
    along = [
        axis
        for axis, variable in enumerate(reading.variables)
        if reading.steps(variable, reading.flat).key == _ONE
    ]
    if along != [len(extents) - 2] or usual(extents[-2]) < SIZES[-1]:
        return False
    stage: Any = schedule[tensor]
    *others, pixels, channels = stage.op.axis
    stage.unroll(channels)
    if total >= copied_elements(target) // 2:
        stage.parallel(stage.fuse(*others) if others else pixels)
    return True


class _Tiles(LoadOffset):
    """Square tiles of a result that are read along one axis and written along another."""

    def steps(self, variable: Var, flat: Linear) -> Linear:
        """How far one step of a variable goes; 0 where that depends on where it is."""
        found = slope(self.an, flat, self.an.var_atom(variable))
        return self.an.constant(0, flat.dtype) if found is None else found

    def run(self, last: int, free: Sequence[int]) -> tuple[int, ...]:
        """The neighbouring axes, `last` the innermost, that are one run of equal steps."""
        axes = [last]
        step = self.steps(self.variables[last], self.flat)
        while step.key != _ZERO and axes[0] - 1 in free:
            step = self.an.multiply(step, self.an.linear(ops.as_expr(self.extents[axes[0]])))
            if self.steps(self.variables[axes[0] - 1], self.flat).key != step.key:
                break
            axes.insert(0, axes[0] - 1)
        return tuple(axes)

    def tile(self, lanes: int) -> SquareTile | None:
        """Return the largest tile that fits."""
        last = row_axis(self.extents)
        stride = self.steps(self.variables[last], self.flat)
        across = self.run(last, range(last))
        width = usual(prod(self.extents[a] for a in across))
        sizes = [s for s in SIZES if s <= min(lanes, width, stride.high)]
        free = [a for a in range(last) if a not in across]
        for axis in reversed(free):
            if self.steps(self.variables[axis], self.flat).key == _ONE:
                along = self.run(axis, free)
                fitting = [s for s in sizes if s <= usual(prod(self.extents[a] for a in along))]
                if fitting:
                    return SquareTile(along, across, fitting[0], True)
            if is_open(self.extents[axis]):
                continue
            # Blocks that divide the axis first: the others leave some of it element by element.
            for size in sorted(sizes, key=lambda s: (self.extents[axis] % s != 0, -s)):
                if size <= self.extents[axis] and self.runs_in_blocks(axis, size):
                    return SquareTile((axis,), across, size, False)
            period = self.period(axis, min(sizes, default=0))
            if period:
                fitting = [s for s in sizes if s <= period]
                return SquareTile((axis,), across, fitting[0], True, period)
        return None

    def period(self, axis: int, minimum: int) -> int:
        """Return the longest runs of an axis, of equal length, that are contiguous; 0: too short.

        So are the channels of groups that were padded: 250 of every 256.
        """
        extent = self.extents[axis]
        counts = (n for n in range(2, extent // max(1, minimum) + 1) if extent % n == 0)
        found = (extent // n for n in counts if self.runs_in_blocks(axis, extent // n))
        return next(found, 0) if minimum else 0

    def runs_in_blocks(self, axis: int, size: int) -> bool:
        """Return whether `size` steps of an axis, from a multiple of it, are contiguous."""
        outer, inner = Var("outer"), Var("inner")
        self.an.bind(outer, 0, -(-self.extents[axis] // size) - 1)
        self.an.bind(inner, 0, size - 1)
        position = self.an.linear(outer * size + inner)
        cut = self.an.substitute(self.flat, {self.an.var_atom(self.variables[axis]): position})
        return bool(self.steps(inner, cut).key == _ONE)


_ZERO, _ONE = Linear({}, 0, "int32").key, Linear({}, 1, "int32").key


def _extent(extent: Any) -> Any:
    """Return an extent as a dimension; 0 where it depends on data."""
    try:
        return size_of(extent)
    except LoweringError:
        return 0


def _only_large_load(
    schedule: te.Schedule, op: te.ComputeOp, calls: bool = True
) -> ProducerLoad | None:
    """The load of as many elements as are made, with what is inlined expanded.

    None where there are several, where a condition guards loads, or, without `calls`, where a
    function is computed.
    """
    size = usual(prod(_extent(axis.extent) for axis in op.axis))
    found: list[ProducerLoad] = []
    stack: list[Any] = list(op.body)
    seen: dict[int, Any] = {}  # what several nodes share is looked at once
    inlined = 0
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        if isinstance(node, Call) and (node.op == "if_then_else" or not calls):
            return None
        if not isinstance(node, ProducerLoad):
            stack.extend(children(node))
            continue
        made = node.producer.op
        if isinstance(made, te.ComputeOp) and schedule[made].attach_type == "inline":
            inlined += 1
            if inlined > _MOST_INLINED:
                return None
            variables = [axis.var for axis in made.axis]
            values = dict(zip(variables, node.indices, strict=True))
            stack.append(substitute(made.body[node.producer.value_index], values))
        elif 2 * usual(prod(_extent(d) for d in node.producer.shape)) >= size:
            found.append(node)
    return found[0] if len(found) == 1 else None
