"""Products by lane: four values of a row of data in one register, multiplied one after the other.

Where an instruction multiplies a vector by one lane of another (``fmla v0.4s, v1.4s, v2.s[3]``), a
step of four k needs one load for each row instead of four, and where the weights of a step lie side
by side, one for each pair of their vectors.  So 6 rows by 4 vectors take 114 instructions for 96
multiply-adds, which loading values one by one makes 156.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.relay.types import TensorType, Type
from slipway.schedules.cpu.tiles import Tile, vector_registers, worth_sharing
from slipway.schedules.generic import inline_injective, shape_of, vector_lanes
from slipway.schedules.registry import register_implementation

if TYPE_CHECKING:
    from slipway.target import Target

GROUP = 4  # values of a row that are loaded together
_ACROSS = 8  # vectors of weights in a step, at most


def lane_tiles(rows: int, vectors: int, target: Target, width: int = 1) -> Iterator[Tile]:
    """All tiles whose sums, a group of each row and two vectors of weights fit the registers."""
    registers = vector_registers(target)
    for chunks in range(1, max(1, min(_ACROSS // width, vectors)) + 1):
        across = chunks * width
        for height in range(1, rows + 1):
            if height * across + height + 2 <= registers:
                yield Tile(height, chunks)


def choose_lane_tile(rows: int, chunks: int, target: Target, width: int = 1) -> Tile:
    """Choose the tile that takes the fewest instructions for `rows` by `chunks`.

    A chunk is `width` vectors wide.  Work of tiles that overlap the ones before is counted.
    """

    def cost(tile: Tile) -> float:
        across = tile.vectors * width
        steps = -(-rows // tile.rows) * -(-chunks // tile.vectors)
        loads = tile.rows / GROUP + (across + 1) // 2
        return steps * (tile.rows * across + loads + 1)

    return min(lane_tiles(rows, chunks, target, width), key=cost)


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    data, _ = in_types
    assert isinstance(data, TensorType)
    return target.multiplies_by_lane and data.dtype == "float32" and data.shape[1] % GROUP == 0


@register_implementation(
    "nn.contrib_dense_pack", name="dense_pack.by_lane", applies=_applies, priority=20
)
def schedule_dense_by_lane(
    target: Target, outs: Sequence[te.Tensor], dense: te.Tensor
) -> te.Schedule:
    """Rows of data by blocks of units, four steps of k at once."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    inline_injective(schedule, outs, keep=[dense])
    blocks, depth, block = shape_of(dense.op.input_tensors[1])
    lanes = min(block, vector_lanes(target, output.dtype))
    rows = shape_of(output)[0]
    tile = choose_lane_tile(rows, blocks, target, block // lanes)
    if output.op is dense.op:
        accumulator = schedule.cache_write(output, "local")
    else:
        accumulator = dense
        schedule[dense].set_scope("local")
    stage: Any = schedule[output]
    m, n = stage.op.axis
    m_outer, m_inner = stage.split(m, factor=tile.rows, tail="shift")
    n_vectors, n_lane = stage.split(n, factor=lanes)
    n_outer, n_vector = stage.split(n_vectors, factor=tile.vectors * block // lanes, tail="shift")
    stage.reorder(n_outer, m_outer, m_inner, n_vector, n_lane)
    stage.vectorize(n_lane)
    stage.unroll(m_inner)
    stage.unroll(n_vector)
    weights = blocks * block * depth
    if worth_sharing(rows * weights, target, 4 * weights):
        stage.parallel(n_outer)

    inner = schedule[accumulator]
    inner.compute_at(stage, m_outer)
    m, n = inner.op.axis
    (k,) = inner.op.reduce_axis
    k_outer, k_inner = inner.split(k, factor=GROUP)
    n_vector, n_lane = inner.split(n, factor=lanes)
    # Rows innermost: a vector of weights is used at once for all of them and forgotten.
    inner.reorder(k_outer, k_inner, n_vector, m, n_lane)
    inner.unroll(k_inner)
    inner.unroll(n_vector)
    inner.unroll(m)
    inner.vectorize(n_lane)

    group = schedule.cache_read(accumulator.op.input_tensors[0], "local", [accumulator])
    copy = schedule[group]
    copy.compute_at(inner, k_outer)
    m, k = copy.op.axis
    copy.unroll(m)
    copy.vectorize(k)
    return schedule
