"""Attention without its score matrix: the scores of a block of query rows stay in a cache.

A task is some rows of one head.  Scores lie transposed, keys by query rows, so that the rows are
the lanes of vectors: key and value are read where a dense layer has left them, one number for all
rows at a time, and maximum score and sum of a row need no step across lanes.

    queries  (size, rows)        transposed and scaled, for the rows of the task
    scores   (keys, rows)        keys x vectors of rows in registers, then bias and mask
    exponentials   (keys, rows)        in the place of the scores
    values   (rows, value size)  rows x vectors of the value in registers, divided by the sums

Where the scores of all keys are too many for the cache, a task takes the keys chunk by chunk, and
joins what it has of a row with that of the next chunk, both scaled to the maximum score so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    fills_vectors,
    streamed_cycles,
    vector_lanes,
)
from slipway.backends.cpu.predict import product_cycles
from slipway.backends.cpu.schedules.attention.blocks import (
    AttentionKnobs,
    Blocks,
    blocks_of,
    choose_knobs,
    knob_space,
)
from slipway.backends.cpu.schedules.generic import (
    schedule_elementwise_stage,
)
from slipway.backends.cpu.schedules.matmul.lane_fma import schedule_lane_fma
from slipway.backends.cpu.schedules.norm.exponential import EXPONENTIAL, exponential_of
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import GROUP
from slipway.backends.stages import inline_injective, is_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.nn.attention import Operands, extents
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.ops.nn.attention import AttentionAttrs
    from slipway.target import Target


def _sizes(problem: Problem) -> tuple[int, int, int, int, int]:
    """Return all heads, the query's rows, the keys, and the sizes of key and value."""
    attrs = problem.attrs
    operands = zip(problem.in_types[:3], attrs.layouts(), strict=True)
    q, k, v = (extents(x.shape, layout) for x, layout in operands)
    return q["B"] * q["N"], q["S"], k["S"], q["H"], v["H"]


def _default(problem: Problem) -> AttentionKnobs:
    return choose_knobs(*_sizes(problem), problem.target)


def _cost(problem: Problem, knobs: AttentionKnobs) -> float:
    """Both products in tiles, and an exponential for each score."""
    heads, rows, keys, size, value_size = _sizes(problem)
    blocks = blocks_of(knobs, heads, rows, keys, size, value_size, problem.target)
    scores = heads * rows * keys
    cycles = product_cycles(problem, scores * size, blocks.scores.rows, blocks.scores.vectors)
    tile = blocks.values
    cycles += product_cycles(problem, scores * value_size, tile.rows, tile.vectors)
    return cycles + streamed_cycles(problem, blocks.lanes, EXPONENTIAL, scores)


def _space(problem: Problem) -> Space:
    _, rows, keys, *_ = _sizes(problem)
    return knob_space(rows, keys, problem.target)


def _attention_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: AttentionKnobs
) -> list[te.Tensor]:
    """The stages of the module's text; t is the offset of a key in its chunk."""
    target, attrs = problem.target, problem.attrs
    (out,) = problem.out_types
    x = Operands(attrs, inputs, out.dtype)
    blocks = blocks_of(knobs, *_sizes(problem), target)
    key, (value, width) = _key_of(x, blocks), _value_of(x, blocks)
    cut = _Chunks(x.keys, blocks.chunk)
    length, chunks = cut.length, cut.count
    grid = (x.batch, x.heads)
    exponential = exponential_of(target)
    scores = _scores(x, key, cut, target)
    t1, t2, t3 = (te.reduce_axis((0, length), name="t") for _ in range(3))
    maximum = te.compute(
        (*grid, chunks, x.rows),
        lambda b, n, c, s: te.max_of_numbers(scores(b, n, c, t1, s), axis=[t1]),
        name="maximum",
        tag="attention_maximum",
    )

    def element(b: PrimExpr, n: PrimExpr, c: PrimExpr, t: PrimExpr, s: PrimExpr) -> Any:
        value = exponential(scores(b, n, c, t, s) - maximum(b, n, c, s))
        if cut.fills:
            return value
        return te.Select(c * length + t < x.keys, value, te.const(0.0, value.dtype))

    exponentials = te.compute(
        (*grid, chunks, length, x.rows), element, name="exponentials", tag="attention_exponentials"
    )
    sums = te.compute(
        (*grid, chunks, x.rows),
        lambda b, n, c, s: te.sum(exponentials(b, n, c, t2, s), axis=[t2]),
        name="sums",
        tag="attention_sums",
    )
    values = te.compute(
        (*grid, chunks, x.rows, width),
        lambda b, n, c, s, e: te.sum(
            exponentials(b, n, c, t3, s) * value(b, n, cut.key_at(c, t3), e), axis=[t3]
        ),
        name="values",
        tag="attention_values",
    )
    if chunks == 1:
        quotient = _single(sums, values)
    else:
        quotient = _joined(grid, (maximum, sums, values), exponential)

    def result(*i: PrimExpr) -> Any:
        at = dict(zip(attrs.out_layout, i, strict=True))
        return quotient(*(at[axis] for axis in "BNSH"))

    tag = "attention_output"
    return [te.compute(out.shape, result, name="T_attention", tag=tag)]


@dataclass(frozen=True)
class _Chunks:
    """Keys in chunks of one length; beyond the last key the last chunk repeats it."""

    keys: Any
    length: int

    @property
    def count(self) -> Any:
        return ceil(self.keys / self.length)

    @property
    def fills(self) -> bool:
        """Whether the chunks hold all keys and nothing else."""
        return bool(self.count * self.length == self.keys)

    def key_at(self, c: PrimExpr, t: Any) -> Any:
        """Return the key at position t of chunk c."""
        key = t if self.count == 1 else c * self.length + t
        return key if self.fills else te.min(key, self.keys - 1)


def _scores(x: Operands, key: Any, cut: _Chunks, target: Target) -> te.Tensor:
    """Return the stage of the masked products of queries and keys."""
    grid = (x.batch, x.heads)
    queries = te.compute(
        (*grid, x.size, x.rows),
        lambda b, n, h, s: x.query(b, n, s, h),
        name="queries",
        tag="attention_queries",
    )
    h = te.reduce_axis((0, x.size), name="h")

    def factor(b: PrimExpr, n: PrimExpr, c: PrimExpr, t: PrimExpr, h: Any) -> Any:
        return key(b, n, cut.key_at(c, t), h)

    if target.has_lane_fma and x.size % GROUP == 0 and x.attrs.key_layout[-1] == "H":
        shape = (*grid, cut.count, cut.length, x.size)
        factor = te.compute(shape, factor, name="groups", tag="attention_groups")
    products = te.compute(
        (*grid, cut.count, cut.length, x.rows),
        lambda b, n, c, t, s: te.sum(factor(b, n, c, t, h) * queries(b, n, h, s), axis=[h]),
        name="products",
        tag="attention_products",
    )
    scores: te.Tensor = te.compute(
        (*grid, cut.count, cut.length, x.rows),
        lambda b, n, c, t, s: x.masked(products(b, n, c, t, s), b, n, s, cut.key_at(c, t)),
        name="scores",
        tag="attention_scores",
    )
    return scores


def _lie_apart(x: Operands, layout: str) -> bool:
    """Return whether there is something between one position of a tensor and the next."""
    between = layout[layout.index("S") + 1 : -1]
    return layout[-1] != "H" or prod({**x.key_extents, "H": 1}[axis] for axis in between) > 1


def _key_of(x: Operands, blocks: Blocks) -> Any:
    """Return how to read the key: where it lies, or a copy with contiguous positions.

    A copy takes as long as one task's reading; positions that lie apart cause conflict misses.
    """
    if not blocks.read_often(x.rows) or not _lie_apart(x, x.attrs.key_layout):
        return x.key
    packed = te.compute(
        (x.batch, x.key_heads, x.keys, x.size),
        lambda b, n, t, h: x.key_of_head(b, n, t, h),
        name="packed",
        tag="attention_packed",
    )
    return lambda b, n, t, h: packed(b, x.head(n), t, h)


def _value_of(x: Operands, blocks: Blocks) -> tuple[Any, int]:
    """Return how to read the value, and its size: that of whole vectors.

    A value that lies along another axis, or that chunks cut into vectors which it does not fill,
    is copied in any case.
    """
    lanes, layout = blocks.value_lanes, x.attrs.value_layout
    in_chunks = blocks.chunk < x.keys
    width = ceil(x.value_size / lanes) * lanes if in_chunks else x.value_size
    apart = blocks.read_often(x.rows) and _lie_apart(x, layout)
    if width == x.value_size and layout[-1] == "H" and not apart:
        return x.value, width
    packed = te.compute(
        (x.batch, x.key_heads, x.keys, width),
        lambda b, n, t, e: x.value_of_head(
            b, n, t, e if width == x.value_size else te.min(e, x.value_size - 1)
        ),
        name="packed",
        tag="attention_packed",
    )
    return (lambda b, n, t, e: packed(b, x.head(n), t, e)), width


def _single(sums: te.Tensor, values: te.Tensor) -> Any:
    """One chunk: its values over its sums."""
    batch, heads, _, rows = shape_of(sums)
    inverse = te.compute(
        (batch, heads, rows),
        lambda b, n, s: te.const(1.0, sums.dtype) / sums(b, n, 0, s),
        name="inverse",
        tag="attention_inverse",
    )
    return lambda b, n, s, e: values(b, n, 0, s, e) * inverse(b, n, s)


def _join(
    exponential: Callable[[Any], Any], one: Sequence[Any], two: Sequence[Any]
) -> tuple[Any, Any, Any]:
    """Join (maximum, sum, value) of two sets of keys: the lesser is scaled to the greater."""
    difference = one[0] - two[0]
    factor = exponential(te.const(0.0, difference.dtype) - te.abs(difference))
    unit = te.const(1.0, difference.dtype)
    first = te.Select(difference < te.const(0.0, difference.dtype), factor, unit)
    second = te.Select(difference < te.const(0.0, difference.dtype), unit, factor)
    return (
        te.max_of_numbers(one[0], two[0]),
        one[1] * first + two[1] * second,
        one[2] * first + two[2] * second,
    )


def _joined(
    grid: tuple[int, int], results: Sequence[te.Tensor], exponential: Callable[[Any], Any]
) -> Any:
    """Several chunks: the running (maximum, sum, values) of each row, one after another."""
    maximum, sums, values = results
    *_, chunks, rows, size = shape_of(values)
    c = te.reduce_axis((0, chunks), name="chunk")
    join = te.comm_reducer(
        partial(_join, exponential),
        lambda *kinds: (te.min_value(kinds[0]), te.const(0.0, kinds[1]), te.const(0.0, kinds[2])),
        name="join",
    )
    _, total, value = te.compute(
        (*grid, rows, size),
        lambda b, n, s, e: join(
            (maximum(b, n, c, s), sums(b, n, c, s), values(b, n, c, s, e)), axis=[c]
        ),
        name="joined",
        tag="attention_joined",
    )
    return lambda b, n, s, e: value(b, n, s, e) / total(b, n, s, e)


def _applies(attrs: AttentionAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """float32 with enough query rows and value elements for vectors."""
    query, value = in_types[0], in_types[2]
    assert isinstance(query, TensorType)
    assert isinstance(value, TensorType)
    rows = extents(query.shape, attrs.query_layout)["S"]
    value_size = extents(value.shape, attrs.value_layout)["H"]
    lanes = vector_lanes(target, query.dtype)
    minimum = target.core.costs.attention_lanes
    fills = fills_vectors(rows, value_size, lanes, minimum)
    return query.dtype == "float32" and query.size > 0 and fills


@register_strategy(
    "nn.attention", "nn.attention_bias", name="attention.rows", compute=_attention_compute,
    applies=_applies, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_attention(
    problem: Problem, outs: Sequence[te.Tensor], attention: te.Tensor, knobs: AttentionKnobs
) -> te.Schedule:
    """All stages of a block of rows inside the loop over tasks."""
    target, layout = problem.target, problem.attrs.out_layout
    schedule, output = new_schedule(outs)
    stages = {
        tag.removeprefix("attention_"): tensor
        for tag, tensor in tagged(outs).items()
        if tag.startswith("attention_")
    }
    queries, values = stages["queries"], stages["values"]
    copied = _copied(stages)
    kept = [tensor for tag, tensor in stages.items() if not tag.startswith("output")]
    inline_injective(schedule, outs, keep=[*kept, *copied])
    for tensor in copied:
        schedule_elementwise_stage(schedule, tensor, target)

    sizes = _sizes(problem)
    blocks = blocks_of(knobs, *sizes, target)
    stage = schedule[output]
    axis = dict(zip(layout, stage.op.axis, strict=True))
    s_task, s = stage.split(axis["S"], factor=blocks.rows, tail="shift")
    joined = stages.get("joined")
    wide = blocks.value_lanes * (1 if joined else blocks.values.vectors)
    e_tile, e_tiled = stage.split(axis["H"], factor=wide, tail="guard" if joined else "shift")
    e_vector, e_lane = stage.split(e_tiled, factor=blocks.value_lanes)
    stage.vectorize(e_lane)
    stage.reorder(axis["B"], axis["N"], s_task, s, e_tile, e_vector, e_lane)
    task = stage.fuse(axis["B"], axis["N"], s_task)
    if blocks.parallel:
        stage.parallel(task)
    at, inside = stage, task
    if joined:
        at, inside, s, e_tile, e_vector = _schedule_joined(schedule[joined], stage, task, blocks)
    else:
        inverse = schedule[stages["inverse"]]
        inverse.compute_at(stage, task)
        inverse.vectorize(inverse.op.axis[-1])
        inverse.set_scope("local")
    lane_fma = target.has_lane_fma and blocks.values.rows % GROUP == 0
    if lane_fma:
        exponentials = schedule.cache_read(stages["exponentials"], "local", [values])
    step = _schedule_values(schedule[values], at, s, (e_tile, e_vector), blocks)
    if lane_fma:
        _load_rows(schedule[exponentials], schedule[values], step)
    for name in ("sums", "exponentials", "maximum"):
        _schedule_rows(schedule[stages[name]], at, inside, blocks)
    _schedule_scores(schedule, stages, at, inside, blocks)
    part = schedule[queries]
    part.compute_at(stage, task)
    *_, h, s = part.op.axis
    s_block, s_lane = part.split(s, factor=blocks.lanes)
    steps = [h]
    if sizes[3] >= 4:  # four columns are transposed together
        steps = list(part.split(h, factor=4, tail="shift"))
        part.unroll(steps[1])
    part.reorder(s_block, *steps, s_lane)
    part.vectorize(s_lane)
    return schedule


def _copied(stages: dict[str, te.Tensor]) -> list[te.Tensor]:
    """Return what is computed once, before the tasks: key and value that a kernel computes."""
    scores = "groups" if "groups" in stages else "products"
    read = [
        tensor
        for name, other in ((scores, "queries"), ("values", "exponentials"))
        for tensor in stages[name].op.input_tensors
        if tensor.op is not stages[other].op
    ]
    return [tensor for tensor in read if is_injective(tensor.op)]


def _schedule_joined(
    joined: te.Stage, stage: te.Stage, task: te.IterVar, blocks: Blocks
) -> tuple[te.Stage, te.IterVar, te.IterVar, te.IterVar, te.IterVar]:
    """Chunks one after another; return the stage, its loop of chunks, its rows, tiles, vectors."""
    joined.compute_at(stage, task)
    b, n, s, e = joined.op.axis
    (chunk,) = joined.op.reduce_axis
    e_block, e_lane = joined.split(e, factor=blocks.value_lanes)
    joined.reorder(b, n, chunk, s, e_block, e_lane)
    joined.vectorize(e_lane)
    return joined, chunk, s, *joined.split(e_block, factor=blocks.values.vectors)


def _schedule_values(
    values: te.Stage,
    at: te.Stage,
    s: te.IterVar,
    columns: tuple[te.IterVar, te.IterVar],
    blocks: Blocks,
) -> te.IterVar:
    """Tiles of rows by vectors of the value, of which the stage `at` makes the result.

    `columns` are its loops over tiles and over vectors in one.  Returns the loop over keys.
    """
    tile = blocks.values
    e_tile, e_vector = columns
    s_tile, s_row = at.split(s, factor=tile.rows)
    at.reorder(e_tile, s_tile, s_row, e_vector)
    at.unroll(s_row)
    at.unroll(e_vector)
    values.compute_at(at, s_tile)
    values.set_scope("local")
    *_, s, e = values.op.axis
    (t,) = values.op.reduce_axis
    e_vector, e_lane = values.split(e, factor=blocks.value_lanes)
    values.reorder(t, s, e_vector, e_lane)
    values.unroll(s)
    values.unroll(e_vector)
    values.vectorize(e_lane)
    return t


def _load_rows(exponentials: te.Stage, values: te.Stage, step: te.IterVar) -> None:
    """Exponentials of neighbouring rows, which are contiguous, are loaded a group at a time."""
    exponentials.compute_at(values, step)
    outer, lane = exponentials.split(exponentials.op.axis[-1], factor=GROUP)
    exponentials.unroll(outer)
    exponentials.vectorize(lane)


def _schedule_rows(stage: te.Stage, at: te.Stage, inside: te.IterVar, blocks: Blocks) -> None:
    """A value for each row, or each score: some vectors of rows at a time."""
    stage.compute_at(at, inside)
    s = stage.op.axis[-1]
    outer, inner = stage.split(s, factor=blocks.lanes * blocks.together)
    if stage.op.reduce_axis:
        stage.reorder(outer, *stage.op.reduce_axis, inner)
        stage.set_scope("local")
    stage.vectorize(inner)


def _schedule_scores(
    schedule: te.Schedule,
    stages: dict[str, te.Tensor],
    at: te.Stage,
    inside: te.IterVar,
    blocks: Blocks,
) -> None:
    """Tiles of keys by vectors of rows."""
    tile = blocks.scores
    scores, products = schedule[stages["scores"]], schedule[stages["products"]]
    scores.compute_at(at, inside)
    *_, t, s = scores.op.axis
    s_block, s_lane = scores.split(s, factor=blocks.lanes)
    s_tile, s_vector = scores.split(s_block, factor=tile.vectors, tail="shift")
    t_tile, t_row = scores.split(t, factor=tile.rows, tail="shift")
    register_tile(scores, [s_tile, t_tile], [t_row, s_vector], s_lane)
    products.compute_at(scores, t_tile)
    products.set_scope("local")
    if groups := stages.get("groups"):
        sums = stages["products"]
        schedule_lane_fma(schedule, sums, groups, row=3, columns=[4], lanes=blocks.lanes)
        return
    *_, t, s = products.op.axis
    (h,) = products.op.reduce_axis
    s_vector, s_lane = products.split(s, factor=blocks.lanes)
    register_tile(products, [h], [t, s_vector], s_lane)
