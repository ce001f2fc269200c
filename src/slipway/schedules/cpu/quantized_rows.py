"""Integer convolutions by an instruction that multiplies small matrices: ARM's smmla.

    c[i, j] += sum over k of a[i, k] * b[j, k]        2 positions, 2 channels, 8 elements

takes half as many instructions as one that multiplies a vector by words (sdot), but its sums lie in
squares, and so must its data::

    near    (N, kH, kW, P/2, C/8, 2, 8)    of a tile, in registers: two positions side by side
    weight  (O/o, kH, kW, C/8, o, 8)       o channels side by side, so that two loads are one
    sums    (N, P/2, O/2, 2, 2)
    joined  (N, P, O)                      the squares' rows, as the result has them

Positions are filled up to whole tiles; the data then has rows below the last that are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay.ops.qnn_packed import copied
from slipway.relay.types import TensorType, Type
from slipway.schedules.cpu.quantized_packed import schedule_copy
from slipway.schedules.cpu.tiles import Tile, positions_per_part, vector_registers, worth_sharing
from slipway.schedules.generic import inline_injective, is_injective, producers, shape_of
from slipway.schedules.registry import register_implementation
from slipway.te.hardware import hardware_intrinsic

if TYPE_CHECKING:
    from slipway.target import Target

MATRICES = ("neon.smmla",)
SIDE = 2  # of the squares of sums
_LANES = 4  # of the vectors of results
_TEMPORARIES = 4
_AT_ONCE = 2  # chunks of channels, so that their weights are loaded by one instruction
_LOADS = 2  # instructions for two rows of data side by side


def _instruction(data: Any, weight: Any, target: Target) -> HardwareIntrinsic | None:
    """Return the instruction of `target` for data and packed weights of these types."""
    for entry in (HARDWARE[name] for name in MATRICES):
        lanes, depth = (int(d) for d in weight.shape[4:])
        packed_for = depth == entry.depth and lanes % _LANES == 0
        kinds = (data.dtype, weight.dtype) == (entry.a_dtype, entry.b_dtype)
        if packed_for and kinds and not entry.missing(target):
            return entry
    return None


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    return target.kind.name == "llvm" and bool(_instruction(in_types[0], in_types[1], target))


def choose_squares(positions: int, pairs: int, block: int, target: Target) -> Tile:
    """Return the tile, in rows and pairs of channels, that takes the fewest instructions.

    Pairs of channels are split evenly, and so are `block` of them that lie side by side; two of
    them are a vector of results.
    """
    room = vector_registers(target) - _TEMPORARIES

    def cost(tile: Tile) -> float:
        """Instructions for one step of all tiles."""
        rows = tile.rows // SIDE
        each = rows * tile.vectors + _LOADS * rows + tile.vectors / 2 + 2
        return -(-positions // tile.rows) * (pairs // tile.vectors) * each

    tiles = [
        Tile(rows, vectors)
        for rows in range(SIDE, 10, SIDE)
        for vectors in range(2, pairs + 1, 2)
        if pairs % vectors == 0
        and (block % vectors == 0 or vectors % block == 0)
        and rows // SIDE * (vectors + _AT_ONCE) <= room
    ]
    return min(tiles, key=cost)


def _compute(
    target: Target, attrs: Any, inputs: Sequence[te.Tensor], out_types: Sequence[Type]
) -> list[te.Tensor]:
    """Squares of sums, and their rows at the places of the result."""
    weight = inputs[1]
    (out,) = out_types
    assert isinstance(out, TensorType)
    n, height, width, _ = out.shape
    blocks, kh, kw, chunks, lanes, depth = shape_of(weight)
    block = lanes // SIDE
    (sy, sx), (dy, dx) = attrs.strides, attrs.dilation
    tile = choose_squares(height * width, blocks * block, block, target)
    whole = -(-height * width // tile.rows) * tile.rows
    below = (whole - 1) // width + 1 - height  # rows of results that nobody reads
    data = copied(attrs, inputs[0], weight, below * sy)

    def side_by_side(b: Any, ky: Any, kx: Any, p: Any, c: Any, r: Any, k: Any) -> Any:
        place = p * SIDE + r
        y, x = te.floordiv(place, width) * sy + ky * dy, te.floormod(place, width) * sx + kx * dx
        return data(b, y, x, c * depth + k)

    near = te.compute(
        (n, kh, kw, whole // SIDE, chunks, SIDE, depth), side_by_side, name="near", tag="rows_near"
    )
    ky, kx, chunk, part = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in ((kh, "ky"), (kw, "kx"), (chunks, "kc"), (depth, "k"))
    )

    def square(b: Any, p: Any, o: Any, r: Any, lane: Any) -> Any:
        left = near(b, ky, kx, p, chunk, r, part).astype(out.dtype)
        column = te.floormod(o, block) * SIDE + lane
        right = weight(te.floordiv(o, block), ky, kx, chunk, column, part).astype(out.dtype)
        return te.sum(left * right, axis=[ky, kx, chunk, part])

    sums = te.compute(
        (n, whole // SIDE, blocks * block, SIDE, SIDE), square, name="sums",
        tag=f"rows_sums,{tile.rows},{tile.vectors}",
    )  # fmt: skip

    def row(b: Any, p: Any, c: Any) -> Any:
        half, side = te.floordiv(p, SIDE), te.floormod(p, SIDE)
        return sums(b, half, te.floordiv(c, SIDE), side, te.floormod(c, SIDE))

    joined = te.compute((n, whole, blocks * lanes), row, name="joined", tag="rows_joined")
    return [
        te.compute(
            out.shape, lambda b, y, x, c: joined(b, y * width + x, c), name="conv2d_packed",
            tag="injective",
        )
    ]  # fmt: skip


@register_implementation(
    "qnn.contrib_conv2d_packed", name="qnn_conv.rows", compute=_compute, applies=_applies
)
def schedule_rows_of_squares(
    target: Target, outs: Sequence[te.Tensor], conv: te.Tensor
) -> te.Schedule:
    """Tiles of squares of sums in registers."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    tags = {getattr(op, "tag", "").split(",")[0]: op for op in producers(outs)}
    sums, near, joined = (tags[f"rows_{name}"].output(0) for name in ("sums", "near", "joined"))
    rows, vectors = (int(x) for x in sums.op.tag.split(",")[1:])
    (data,), weight = near.op.input_tensors, sums.op.input_tensors[1]
    inline_injective(schedule, outs, keep=[joined, near, data])
    entry = _instruction(data, weight, target)
    assert entry is not None  # it applied
    _, height, width, _ = shape_of(output)
    positions, pairs = height * width, shape_of(sums)[2]
    parallel = worth_sharing(prod(shape_of(sums)) * prod(shape_of(weight)[1:4]), target)
    if is_injective(data.op):
        schedule_copy(schedule, data, target, parallel)

    stage: Any = schedule[output]
    n, y, x, c = stage.op.axis
    c_outer, c_inner = stage.split(c, factor=vectors * entry.columns)
    c_vector, c_lane = stage.split(c_inner, factor=_LANES)
    data_bytes, weight_bytes = prod(shape_of(data)[1:]), prod(shape_of(weight))
    panels, tile = pairs // vectors, Tile(rows, vectors)
    part = positions_per_part(positions, data_bytes, weight_bytes, panels, tile, target)
    p_part, p_tiles = stage.split(stage.fuse(y, x), factor=-(-part // rows) * rows)
    p_outer, p_inner = stage.split(p_tiles, factor=rows)
    stage.reorder(n, p_part, c_outer, p_outer, c_vector, p_inner, c_lane)
    stage.unroll(p_inner)
    stage.unroll(c_vector)
    stage.vectorize(c_lane)
    task = stage.fuse(n, p_part, c_outer)
    if parallel:
        stage.parallel(task)

    rejoined: Any = schedule[joined]
    rejoined.set_scope("local")
    rejoined.compute_at(stage, p_outer)
    b, p, c = rejoined.op.axis
    c_vector, c_lane = rejoined.split(c, factor=_LANES)
    rejoined.unroll(p)
    rejoined.unroll(c_vector)
    rejoined.vectorize(c_lane)

    inner: Any = schedule[sums]
    inner.set_scope("local")
    inner.compute_at(stage, p_outer)
    b, p, o, row, lane = inner.op.axis
    ky, kx, chunk, element = inner.op.reduce_axis
    outer, step = inner.split(chunk, factor=gcd(_AT_ONCE, shape_of(weight)[3]))
    inner.reorder(b, ky, kx, outer, step, p, o, row, lane, element)
    inner.unroll(step)
    inner.unroll(p)
    inner.unroll(o)
    inner.tensorize(row, hardware_intrinsic(entry.name, target))

    copy: Any = schedule[near]
    copy.set_scope("local")
    copy.compute_at(inner, outer)
    *_, p, c, row, element = copy.op.axis
    copy.unroll(p)
    copy.unroll(c)
    copy.unroll(row)
    copy.vectorize(element)
    return schedule
