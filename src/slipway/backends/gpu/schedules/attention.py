"""Attention on a GPU without its matrix of scores.

A block has some query rows of one head and takes the keys chunk by chunk, a lane for each key::

    scores   (rows, lanes)   shared: each thread the product of its row and its key, bias and mask
    maximum  (rows)          shared: of the chunk, a tree over the lanes
    exponentials (rows, lanes)  shared: of the scores beside the maximum
    sum, mixed               each thread's own: of its row's exponentials, and of elements of value
    state                    each thread's own: joined with the chunks before, at one maximum

Keys and values of a chunk are fetched by all threads of the block together.  What a device keeps
in its memory are query, key, value and the result.

It is the default where threads run in step; elsewhere waiting for each other costs more than it
saves, and it can be asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from slipway import dtypes, te
from slipway.backends.gpu.limits import most_threads, shared_bytes
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    only_reader,
    readers_of,
    schedule_elements,
)
from slipway.backends.gpu.schedules.rows import combining_cost
from slipway.backends.gpu.warps import exchanging_threads, runs_in_step
from slipway.backends.stages import inline_injective, producers, shape_of
from slipway.backends.strategy import Knobs, Problem, register_strategy
from slipway.ir.expr import PrimExpr
from slipway.relay.ops.nn.attention import Operands, extents
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

_LANES = (8, 16, 32, 64)
_ROWS = (1, 2, 4, 8, 16)
_MOST_HEADS = 65535  # blocks along y, on every device
_STATE = "state"  # of the names of stages, by which the schedule knows them
_PARTS = ("scores", "maximum", "exponentials")
_PANEL = "panel"


@dataclass(frozen=True)
class AttentionBlockKnobs(Knobs):
    """A block has `rows` of the query, each with `lanes` threads, which take as many keys."""

    lanes: int
    rows: int


@dataclass(frozen=True)
class _Sizes:
    heads: int
    rows: int
    keys: int
    size: int
    value_size: int


def _sizes(attrs: Any, in_types: Sequence[Any]) -> _Sizes | None:
    """Return the sizes of an attention; None where one is open."""
    if not all(isinstance(n, int) for t in in_types for n in t.shape):
        return None
    operands = zip(in_types[:3], attrs.layouts(), strict=True)
    q, k, v = (extents(x.shape, layout) for x, layout in operands)
    return _Sizes(q["B"] * q["N"], q["S"], k["S"], q["H"], v["H"])


def _legal(sizes: _Sizes, dtype: str, target: Target) -> list[AttentionBlockKnobs]:
    """Return the knobs whose blocks fit a device of the target."""
    most = min(most_threads(target), ANY_GPU.most_threads)
    wide, own = 4 if dtypes.bits_of(dtype) < 64 else 8, dtypes.bytes_of(dtype)
    found = []
    for lanes, rows in product(_LANES, _ROWS):
        shared = lanes * (sizes.size + sizes.value_size + 2) * own  # odd rows
        shared += rows * (3 * lanes + 1) * wide
        if lanes * rows <= most and shared <= shared_bytes(target):
            found.append(AttentionBlockKnobs(lanes, rows))
    return found


def _applies(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    sizes = _sizes(attrs, in_types)
    if sizes is None or sizes.heads > _MOST_HEADS:
        return False
    return bool(_legal(sizes, in_types[0].dtype, target))


def serves(rows: int, size: int, target: Target) -> bool:
    """Return whether an attention of so many query rows and elements is better in one kernel."""
    if not runs_in_step(target) or not isinstance(rows, int) or not isinstance(size, int):
        return False
    return bool(_legal(_Sizes(1, rows, 1, size, size), "float32", target))


def _is_default(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    return runs_in_step(target) and _applies(attrs, in_types, target)


def _is_choice(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    return not runs_in_step(target) and _applies(attrs, in_types, target)


def _cost(problem: Problem, knobs: AttentionBlockKnobs) -> float:
    """Return the multiply-adds that the work of all threads is worth, where enough of them run."""
    sizes = _sizes(problem.attrs, problem.in_types)
    assert sizes is not None
    blocks = sizes.heads * -(-sizes.rows // knobs.rows)
    threads, chunks = knobs.lanes * knobs.rows, -(-sizes.keys // knobs.lanes)
    strips = -(-sizes.value_size // knobs.lanes)
    fetched = (sizes.size + sizes.value_size) / knobs.rows
    exponentials = (2 * strips + 1) * ANY_GPU.exponential_cost
    each = 2 * sizes.size + strips * 2 * knobs.lanes + exponentials + fetched
    warp = exchanging_threads(problem.target)
    if warp == 1 or threads % warp:
        each += ANY_GPU.barrier_cost * (4 + math.log2(knobs.lanes))
    else:
        each += ANY_GPU.barrier_cost * 4 + combining_cost(knobs.lanes, warp)
    running = blocks * threads
    busy = min(1.0, running / ANY_GPU.busy_threads) * min(1.0, threads / ANY_GPU.full_block)
    return running * chunks * each / busy


def _knobs(problem: Problem) -> AttentionBlockKnobs:
    sizes = _sizes(problem.attrs, problem.in_types)
    assert sizes is not None
    legal = _legal(sizes, problem.in_types[0].dtype, problem.target)
    return min(legal, key=lambda knobs: _cost(problem, knobs))


def _space(problem: Problem) -> dict[str, Sequence[Any]]:
    return {"lanes": _LANES, "rows": _ROWS}


def _compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: AttentionBlockKnobs
) -> list[te.Tensor]:
    """The stages of the module's text; j is a key's place in its chunk c."""
    (out,) = problem.out_types
    x = Operands(problem.attrs, inputs, out.dtype)
    lanes = knobs.lanes
    chunks = -(-x.keys // lanes)
    full = chunks * lanes == x.keys
    nothing = te.const(-math.inf, x.dtype)
    zero = te.const(0.0, x.dtype)
    grid = (x.batch, x.heads, x.rows)

    def key_at(c: PrimExpr, j: Any) -> Any:
        """The key at position j of chunk c; positions beyond the last key repeat it."""
        return c * lanes + j if full else te.min(c * lanes + j, x.keys - 1)

    if full:
        key, value = (partial(_of_whole, whole, key_at) for whole in (x.key, x.value))
    else:
        key, value = (
            _of_panel(x, inputs[n], problem.attrs.layouts()[n], (chunks, lanes), key_at)
            for n in (1, 2)
        )
    h = te.reduce_axis((0, x.size), name="h")
    products = te.compute(
        (*grid, chunks, lanes),
        lambda b, n, s, c, j: te.sum(x.query(b, n, s, h) * key(b, n, c, j, h), axis=[h]),
        name="products",
    )

    def score(b: PrimExpr, n: PrimExpr, s: PrimExpr, c: PrimExpr, j: PrimExpr) -> Any:
        found = x.masked(products(b, n, s, c, j), b, n, s, key_at(c, j))
        return found if full else te.Select(c * lanes + j < x.keys, found, nothing)

    scores = te.compute((*grid, chunks, lanes), score, name="scores")
    j1, j2 = (te.reduce_axis((0, lanes), name="j") for _ in range(2))
    maximum = te.compute(
        (*grid, chunks), lambda *i: te.max_of_numbers(scores(*i, j1), axis=[j1]), name="maximum"
    )

    def exponential(b: PrimExpr, n: PrimExpr, s: PrimExpr, c: PrimExpr, j: PrimExpr) -> Any:
        found, most = scores(b, n, s, c, j), maximum(b, n, s, c)
        return te.Select(found == nothing, zero, te.exp(found - most))

    exponentials = te.compute((*grid, chunks, lanes), exponential, name="exponentials")
    both = te.comm_reducer(
        lambda one, other: (one[0] + other[0], one[1] + other[1]), lambda *_: (zero, zero), "both"
    )
    total, mixed = te.compute(
        (*grid, chunks, x.value_size),
        lambda b, n, s, c, e: both(
            (exponentials(b, n, s, c, j2), exponentials(b, n, s, c, j2) * value(b, n, c, j2, e)),
            axis=[j2],
        ),
        name="chunk",
    )
    joined = te.comm_reducer(_joined, lambda *_: (nothing, zero, zero), "joined")
    c = te.reduce_axis((0, chunks), name="c")
    _, totals, sums = te.compute(
        (*grid, x.value_size),
        lambda b, n, s, e: joined(
            (maximum(b, n, s, c), total(b, n, s, c, e), mixed(b, n, s, c, e)), axis=[c]
        ),
        name=_STATE,
    )

    def quotient(*i: PrimExpr) -> Any:
        at = dict(zip(problem.attrs.out_layout, i, strict=True))
        here = [at[axis] for axis in "BNSH"]
        return (sums(*here) / totals(*here)).astype(out.dtype)

    return [te.compute(out.shape, quotient, name="T_attention", tag="attention_output")]


def _of_whole(whole: Any, key_at: Any, b: Any, n: Any, c: Any, j: Any, h: Any) -> Any:
    return whole(b, n, key_at(c, j), h)


def _of_panel(
    x: Operands, tensor: te.Tensor, layout: str, sizes: tuple[int, int], key_at: Any
) -> Any:
    """Return how to read key or value by chunk and position in it, by way of a chunk as a stage.

    What is read of the whole for a chunk whose positions repeat the last key follows from ``min``
    by no rule.
    """
    panel = _panel(tensor, layout, sizes, key_at)
    axes = layout.replace("S", "CJ")

    def read(b: Any, n: Any, c: Any, j: Any, h: Any) -> Any:
        at = {"B": b, "N": x.head(n), "C": c, "J": j, "H": h}
        return panel(*(at[axis] for axis in axes)).astype(x.dtype)

    return read


def _panel(tensor: te.Tensor, layout: str, sizes: tuple[int, int], key_at: Any) -> te.Tensor:
    """Return key or value with an axis of chunks and one of places in its layout's axis S."""
    at = layout.index("S")
    shape = shape_of(tensor)

    def element(*i: PrimExpr) -> Any:
        return tensor(*i[:at], key_at(i[at], i[at + 1]), *i[at + 2 :])

    panel: te.Tensor = te.compute(
        (*shape[:at], *sizes, *shape[at + 1 :]), element, name=_PANEL, tag="injective"
    )
    return panel


def _joined(one: Any, other: Any) -> tuple[Any, Any, Any]:
    """What two stretches of keys come to: maximum, and sums at that maximum."""
    most = te.Select(one[0] > other[0], one[0], other[0])

    def factor(maximum: Any) -> Any:  # a stretch of masked keys adds nothing
        nothing, zero = te.const(-math.inf, maximum.dtype), te.const(0.0, maximum.dtype)
        return te.Select(maximum == nothing, zero, te.exp(maximum - most))

    left, right = factor(one[0]), factor(other[0])
    return most, one[1] * left + other[1] * right, one[2] * left + other[2] * right


@register_strategy(
    "nn.attention", "nn.attention_bias", name="threads.attention", priority=20,
    applies=_is_default, compute=_compute, default=_knobs, space=_space, cost=_cost,
)  # fmt: skip
@register_strategy(
    "nn.attention", "nn.attention_bias", name="threads.attention", priority=-5,
    applies=_is_choice, compute=_compute, default=_knobs, space=_space, cost=_cost,
)  # fmt: skip
def schedule_attention(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: AttentionBlockKnobs
) -> te.Schedule:
    """Some rows for each block; a thread for each element where the kernel does more than that."""
    schedule = te.create_schedule([t.op for t in outs])
    ops = {op.name: op for op in producers(outs) if isinstance(op, te.ComputeOp)}
    state, chunk, products = (ops[name] for name in (_STATE, "chunk", "products"))
    kept = [ops[name].output(0) for name in _PARTS]
    panels = [t for reader in (products, chunk) for t in reader.input_tensors if _is_panel(t)]
    inline_injective(schedule, outs, keep=[anchor, *kept, *panels])
    is_result = any(t.op is anchor.op for t in outs)
    out = anchor if is_result else only_reader(readers_of(schedule, outs), anchor.op, outs)
    if len(outs) != 1 or out is None:
        return schedule_elements(problem, outs, anchor, ThreadKnobs(ANY_GPU.full_block))
    if not is_result:
        schedule[anchor].compute_inline()
    along = [te.thread_axis(f"threadIdx.{axis}") for axis in "yx"]
    stage = schedule[out]
    axes = dict(zip(problem.attrs.out_layout, stage.op.axis, strict=True))
    block, row = stage.split(axes["S"], factor=knobs.rows)
    strip, lane = stage.split(axes["H"], factor=knobs.lanes)
    stage.reorder(axes["B"], axes["N"], block, strip, row, lane)
    stage.bind(stage.fuse(axes["B"], axes["N"]), te.thread_axis("blockIdx.y"))
    stage.bind(block, te.thread_axis("blockIdx.x"))
    stage.bind(strip, te.thread_axis("vthread"))  # a thread's elements are `lanes` apart
    stage.bind(row, along[0])
    stage.bind(lane, along[1])

    sums = schedule[state]
    sums.set_scope("local")
    sums.compute_at(stage, lane)
    *outer, element = state.axis
    (step,) = state.reduce_axis
    sums.reorder(*outer, step, element)
    part = schedule[chunk]
    part.set_scope("local")
    part.compute_at(sums, step)
    part.reorder(*chunk.axis[:-1], *chunk.reduce_axis, chunk.axis[-1])
    for name in _PARTS:
        filled = schedule[ops[name]]
        filled.set_scope("shared")
        filled.compute_at(sums, step)
        _, down = filled.split(ops[name].axis[2], factor=knobs.rows)
        filled.bind(down, along[0])
        keys = ops[name].reduce_axis[0] if name == "maximum" else ops[name].axis[4]
        _, across = filled.split(keys, factor=knobs.lanes)
        filled.bind(across, along[1])
        if name == "scores":
            schedule[products].set_scope("local")
            schedule[products].compute_at(filled, across)
    for number, reader in ((1, products), (2, chunk)):
        _fetch(schedule, problem, number, reader, (sums, step), knobs, along)
    return schedule


def _fetch(
    schedule: te.Schedule,
    problem: Problem,
    number: int,
    reader: te.ComputeOp,
    at: tuple[te.Stage, te.IterVar],
    knobs: AttentionBlockKnobs,
    along: Sequence[te.IterVar],
) -> None:
    """Let all threads of a block fetch a chunk of keys or values, if the kernel is given them."""
    *others, tensor = reader.input_tensors
    layout = problem.attrs.layouts()[number]
    if _is_panel(tensor):
        panel, layout = tensor, layout.replace("S", "CS")
        schedule[panel].set_scope("shared")
    elif not others or not isinstance(tensor.op, te.PlaceholderOp):
        return  # computed in the kernel, or the query as well
    else:
        panel = schedule.cache_read(tensor, "shared", [reader.output(0)])
    stage = schedule[panel]
    stage.compute_at(*at)
    if layout[-1] == "H":  # keys an odd number of elements apart lie in different banks
        stage.storage_align(stage.op.axis[layout.index("S")], 2, 1)
    fused = stage.fuse(*stage.op.axis)
    fused, across = stage.split(fused, factor=knobs.lanes)
    _, down = stage.split(fused, factor=knobs.rows)
    stage.bind(down, along[0])
    stage.bind(across, along[1])


def _is_panel(tensor: te.Tensor) -> bool:
    """Return whether a tensor is a chunk of keys or values that the kernel is given."""
    op = tensor.op
    return (
        isinstance(op, te.ComputeOp)
        and op.name == _PANEL
        and all(isinstance(t.op, te.PlaceholderOp) for t in op.input_tensors)
    )
