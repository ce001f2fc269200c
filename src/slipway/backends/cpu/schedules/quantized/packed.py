"""Integer convolutions with packed weights: register tiles of a multiply-add instruction.

As in `cpu.conv`, one task computes a part of the positions, which stays in the cache, for one tile
of output channels; the instruction takes a word of the data, repeated, and a vector of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.knobs import dividing_lanes, vector_lanes
from slipway.backends.cpu.lowering.pack_quantized import INSTRUCTIONS
from slipway.backends.cpu.parts import positions_per_part, worth_sharing
from slipway.backends.cpu.predict import tile_cost
from slipway.backends.cpu.schedules.matmul.lane_fma import load_groups
from slipway.backends.cpu.schedules.register_tile import copy_of_image, image_tiles, register_tile
from slipway.backends.cpu.tile import (
    GROUP,
    MicroKernel,
    Tile,
    choose_line_tile,
    choose_tile,
    dividing,
    fma,
    follows_lines,
    tile_space,
)
from slipway.backends.stages import inline_injective, is_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.errors import LoweringError
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay.dims import is_open
from slipway.relay.ops.packed.qnn_packed import data_kind, packed_product
from slipway.relay.ops.qnn.words import BYTES
from slipway.te.hardware import hardware_intrinsic

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.target import Target


def instruction_for(dtype: str, weight: Any, target: Target) -> HardwareIntrinsic | None:
    """Return the instruction of `target` for data of `dtype` and these packed weights."""
    kind = data_kind("uint8" if dtype == "int32" else dtype, weight.dtype)
    for entry in (HARDWARE[name] for name in INSTRUCTIONS):
        packed_for = (entry.columns, entry.depth) == tuple(int(d) for d in weight.shape[4:])
        kinds = (kind, weight.dtype) == (entry.a_dtype, entry.b_dtype)
        if entry.rows == 0 and packed_for and kinds and not entry.missing(target):
            return entry
    return None


def _applies(attrs: Attrs, in_types: Sequence[Any], target: Target) -> bool:
    data, weight = in_types
    return target.is_by_llvm and bool(instruction_for(data.dtype, weight, target))


def product_tile(
    positions: int, blocks: int, target: Target, entry: HardwareIntrinsic, line: int = 0
) -> Tile:
    """Choose the tile for the blocks of a group, which are split evenly.

    Their axis is part of the result's last.  `line`: the positions that follow one another.
    """
    kernel, legal = _kernel(target, entry), dividing(blocks)
    if is_open(line):
        return choose_tile(kernel, line, blocks, legal=legal)
    if line:
        return choose_line_tile(kernel, positions // line, line, blocks, legal=legal)
    return choose_tile(kernel, positions, blocks, legal=legal)


def _kernel(target: Target, entry: HardwareIntrinsic) -> MicroKernel:
    width = max(1, entry.c_size * 32 // target.vector_bits)
    return fma(target, width, entry.temporaries)


def _line(problem: Problem) -> Any:
    """Return the positions of a line of the result where the data of the next lies elsewhere.

    0 where all of an image follow one another.
    """
    (out,), (data, weight) = problem.out_types, problem.in_types
    _, height, width, _ = out.shape
    if is_open(height) or is_open(width):
        return 0 if width == 1 else width
    is_flat = data.shape[1:3] == out.shape[1:3] and tuple(weight.shape[1:3]) == (1, 1)
    return 0 if is_flat else width


def _by_lines(problem: Problem) -> bool:
    """Return whether tiles stay within lines of an image whose size is open."""
    (out,) = problem.out_types
    return any(map(is_open, out.shape[1:3])) and _line(problem) != 0


def _group(target: Target, weight: te.Tensor) -> int:
    """Return how many words of a position are loaded together, for lane-indexed FMA."""
    lane_fma = target.has_lane_fma and shape_of(weight)[5] == 4
    return gcd(GROUP, shape_of(weight)[3]) if lane_fma else 1


def _sides(problem: Problem) -> tuple[int, int, int]:
    """Return the positions, the blocks of channels of a group, and the vectors in a block."""
    (out,), (data, weight) = problem.out_types, problem.in_types
    _, height, width, channels = out.shape
    entry = instruction_for(data.dtype, weight, problem.target)
    if entry is None:
        raise LoweringError(f"{problem.target} has no instruction for weights {weight}")
    vectors = max(1, entry.c_size * 32 // problem.target.vector_bits)
    blocks = channels // entry.columns
    return height * width, blocks // problem.attrs.groups, vectors


def _default(problem: Problem) -> Tile:
    positions, blocks, _ = _sides(problem)
    entry = instruction_for(problem.in_types[0].dtype, problem.in_types[1], problem.target)
    assert entry is not None  # it applied
    return product_tile(positions, blocks, problem.target, entry, _line(problem))


def _space(problem: Problem) -> Space:
    positions, blocks, vectors = _sides(problem)
    along = _line(problem) if _by_lines(problem) else positions
    space = dict(tile_space(along, blocks, problem.target, vectors))
    space["vectors"] = [v for v in space["vectors"] if blocks % v == 0]
    return space


def compute_packed(problem: Problem, inputs: Sequence[te.Tensor], tile: Tile) -> list[te.Tensor]:
    """The operator's own compute, perhaps with a stage for the groups of a tile."""
    grouped = problem.attrs.groups == 1 and _group(problem.target, inputs[1]) > 1
    return packed_product(
        problem.attrs, list(inputs), problem.out_types, grouped, _by_lines(problem)
    )


@register_strategy(
    "qnn.contrib_conv2d_packed", name="qnn_conv.packed", compute=compute_packed, applies=_applies,
    default=_default, space=_space, cost=tile_cost(4),
)  # fmt: skip
def schedule_packed(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: Tile
) -> te.Schedule:
    """`tile.rows` positions by `tile.vectors` blocks of channels at a time."""
    target = problem.target
    schedule, output = new_schedule(outs)
    found = tagged(outs)
    sums = found["packed_sums"]
    groups, weight = sums.op.input_tensors
    group = _group(target, weight) if "packed_groups" in found else 1
    data = groups if group == 1 else groups.op.input_tensors[0]
    copies = is_injective(data.op)
    inline_injective(schedule, outs, keep=[groups, data])
    entry = instruction_for(data.dtype, weight, target)
    if entry is None:
        raise LoweringError(f"{target} has no instruction for weights {weight}")
    schedule[sums].set_scope("local")
    _, *image, blocks, lanes = shape_of(sums)
    positions = prod(image)
    parallel = worth_sharing(prod(shape_of(sums)) * prod(shape_of(weight)[1:4]), target)
    if copies:
        schedule_copy(schedule, data, target, parallel)

    stage: Any = schedule[output]
    n, y, x, c = stage.op.axis
    c_outer, c_inner = stage.split(c, factor=tile.vectors * lanes)
    c_vector, c_lane = stage.split(c_inner, factor=lanes)
    sizes = [prod(shape_of(t)[1:]) * dtypes.bits_of(t.dtype) // 8 for t in (data, weight)]
    panels = blocks // tile.vectors
    line, by_lines = _line(problem), _by_lines(problem)
    if is_open(positions):
        part, within = positions, by_lines
    else:
        part = positions_per_part(positions, sizes[0], sizes[1] * blocks, panels, tile, target)
        within = tile.rows <= line and not (part == positions and follows_lines(tile.rows, line))
    each = image_tiles(
        stage, (n, c_outer), (y, x), c_vector, c_lane,
        rows=tile.rows, part=part, shared=parallel, rows_first=True, line=line if within else 0,
    )  # fmt: skip

    inner: Any = schedule[sums]
    inner.compute_at(stage, each)
    b, *p, o, lane = inner.op.axis
    ky, kx, chunk, element = inner.op.reduce_axis
    if group == 1:
        few = target.core.costs.tile_instructions // (tile.rows * tile.vectors)
        few = _kernel(target, entry).most_steps(tile, few)
        chunk, step = inner.split(chunk, factor=gcd(few, shape_of(weight)[3]) if few else 1)
        unrolled = [step, p[-1], o]
    else:
        chunk, step = inner.split(chunk, factor=group)
        load_groups(schedule, groups, inner, chunk)
        unrolled = [o, step, p[-1]]
    dot = hardware_intrinsic(entry.name, target, data.dtype == "int32")
    register_tile(inner, [b, *p[:-1], ky, kx, chunk], unrolled, lane, dot, [element])
    return schedule


def schedule_copy(schedule: te.Schedule, copy: te.Tensor, target: Target, parallel: bool) -> None:
    """Copy the data row by row, in vectors of channels where they fill some."""
    stage: Any = schedule[copy]
    task = stage.op.axis[:2] if parallel else ()
    data, written = copy.op.input_tensors[0], shape_of(copy)[-1]
    read = shape_of(data)[-1] * (BYTES if data.dtype == "int32" != copy.dtype else 1)
    lanes = copy_lanes(min(read, written), written, vector_lanes(target, copy.dtype))
    copy_of_image(stage, lanes, task)


def copy_lanes(read: int, written: int, most: int) -> int:
    """Return the lanes of the vectors that copy `read` channels to `written`, the rest zeros.

    A vector that has both is made channel by channel: all 16 where 13 are read, but the last four
    in vectors of four.
    """
    lanes = dividing_lanes(written, most)
    fitting = [lanes >> half for half in range(lanes.bit_length())]
    return min(fitting, key=lambda n: (read // n + (n if read % n else 0), -n))
