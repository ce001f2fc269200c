"""The schedule that every operator has on a GPU: a thread for each element.

What is computed elementwise is inlined into what reads it. Each stage that is left is a kernel of
its own, a thread for each of its elements, which does the whole of a reduction itself; of a long
one, a thread does a part (`partial_sums`). A reduction whose elements the output reads one by one
is kept in the registers of the output's threads.  Statements that no schedule divides (sorting,
say) are one thread's.  Where a model has images (`gpu.images`), a thread has a texel of four
elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway import te
from slipway.backends.gpu.images import is_texels, takes_images
from slipway.backends.gpu.limits import most_blocks, most_threads
from slipway.backends.gpu.schedules.partial_sums import add_up, cut_reductions, lane_sums
from slipway.backends.stages import extent_of, inline_injective, producers, shape_of
from slipway.backends.strategy import Knobs, Problem, register_pattern
from slipway.ir.expr import ProducerLoad
from slipway.ir.visit import children
from slipway.relay.op_registry import OpPattern
from slipway.relay.types import TensorType, flatten
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

_THREADS = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class ThreadKnobs(Knobs):
    """`threads`: how many a block has."""

    threads: int


def thread_knobs(problem: Problem) -> ThreadKnobs:
    """Return the default knobs."""
    return ThreadKnobs(min(ANY_GPU.full_block, most_threads(problem.target)))


def thread_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs."""
    most = most_threads(problem.target)
    return {"threads": tuple(n for n in _THREADS if n <= most) or (1,)}


def thread_cost(problem: Problem, knobs: ThreadKnobs) -> float:
    """Return a cost by which blocks that are full are better."""
    elements = sum(prod(t.shape) for o in problem.out_types for t in flatten(o))
    blocks = -(-elements // knobs.threads)
    return float(blocks * knobs.threads)


@register_pattern(
    OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE, OpPattern.OUT_ELEMWISE_FUSABLE,
    OpPattern.TUPLE, OpPattern.OPAQUE, name="threads.elements", default=thread_knobs,
    space=thread_space, cost=thread_cost,
)  # fmt: skip
def schedule_elements(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: ThreadKnobs
) -> te.Schedule:
    """A thread for each element."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    results = {id(t.op): t for t in outs}
    readers = readers_of(schedule, outs)
    most = most_blocks(problem.target)
    if not takes_images(problem.target):
        for part in cut_reductions(schedule, outs, problem.target):
            bind_elements(schedule, part, knobs.threads, most)
    beside = lane_sums(schedule, outs, problem.target)
    ends: dict[int, Any] = {}  # the threads' axis of what computes each stage, and what that is
    holders = dict(results)
    for tensor in results.values():
        if has_texels(tensor, problem.target) and len(tensor.op.outputs) == 1:
            ends[id(tensor.op)] = bind_texels(schedule, tensor, knobs.threads, most)
            continue
        ends[id(tensor.op)] = bind_elements(schedule, tensor, knobs.threads, most)
    for op in producers(outs):
        if not isinstance(op, te.ComputeOp) or id(op) in results or not op.reduce_axis:
            continue
        tensor = op.output(0)
        reader = only_reader(readers, op, outs)
        if reader is not None and ends[id(reader.op)] is not None:
            schedule[tensor].compute_at(schedule[reader], ends[id(reader.op)])
            schedule[tensor].set_scope("local")
            ends[id(op)] = ends[id(reader.op)]
            holders[id(op)] = reader
            if has_texels(tensor, problem.target):
                _vectorize(schedule[tensor])
        else:
            ends[id(op)] = bind_elements(schedule, tensor, knobs.threads, most)
            holders[id(op)] = tensor
    for number, part in beside.items():
        add_up(schedule, part, holders[number], ends[number])
    return schedule


def has_texels(tensor: te.Tensor, target: Target) -> bool:
    """Return whether a stage's elements are whole texels of what could be an image."""
    shape = shape_of(tensor)
    known = isinstance(tensor.op, te.ComputeOp) and all(isinstance(n, int) for n in shape)
    return takes_images(target) and known and is_texels(TensorType(shape, tensor.dtype))


def bind_texels(
    schedule: te.Schedule, tensor: te.Tensor, threads: int, most: int | None
) -> te.IterVar:
    """Bind a stage's texels to threads; return the axis of the threads.

    A texel is computed in registers, where its numbers may be sums, or stand under conditions.
    """
    texel = schedule.cache_write(tensor, "local")
    stage = schedule[tensor]
    *axes, lanes = stage.op.axis
    total = prod(extent_of(axis) for axis in axes)
    factor = max(1, min(threads, total))
    block, thread = stage.split(stage.fuse(*axes), factor=factor, tail="guard")
    bind_blocks(stage, block, -(-total // factor), most)
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    stage.vectorize(lanes)
    schedule[texel].compute_at(stage, thread)
    _vectorize(schedule[texel])
    bound: te.IterVar = thread
    return bound


def _vectorize(stage: te.Stage) -> None:
    *axes, lanes = stage.op.axis
    if stage.op.reduce_axis:
        stage.reorder(*axes, *stage.op.reduce_axis, lanes)
    stage.vectorize(lanes)


def bind_elements(
    schedule: te.Schedule, tensor: te.Tensor, threads: int, most: int | None
) -> te.IterVar | None:
    """Bind a stage's elements to threads; return the axis of the threads, None where it has none.

    A stage without axes is one thread's.  A thread reduces in registers.
    """
    stage = schedule[tensor]
    axes = list(stage.op.axis) if isinstance(stage.op, te.ComputeOp) else []
    if not axes:
        return None
    inside = None
    if stage.op.reduce_axis:
        several = list(stage.op.outputs)
        made = schedule.cache_write(several if len(several) > 1 else several[0], "local")
        inside = made[0] if isinstance(made, list) else made
        axes = list(stage.op.axis)
    total = prod(extent_of(axis) for axis in axes)
    fused = axes[0] if len(axes) == 1 else stage.fuse(*axes)
    factor = max(1, min(threads, total))
    block, thread = stage.split(fused, factor=factor, tail="guard")
    bind_blocks(stage, block, -(-total // factor), most)
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    if inside is not None:
        schedule[inside].compute_at(stage, thread)
    return thread


def bind_tiles(
    stage: te.Stage, axes: Sequence[te.IterVar], inner: Sequence[te.IterVar], tiles: int,
    problem: Problem, threads: int,
) -> te.IterVar:  # fmt: skip
    """Give a thread each step of `axes`, and it the loops of `inner`; return the threads' axis."""
    stage.reorder(*axes, *inner)
    threads = min(threads, most_threads(problem.target), tiles)
    block, thread = stage.split(stage.fuse(*axes), factor=threads, tail="guard")
    bind_blocks(stage, block, -(-tiles // threads), most_blocks(problem.target))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    for axis in inner:
        stage.unroll(axis)
    bound: te.IterVar = thread
    return bound


def bind_blocks(stage: te.Stage, block: te.IterVar, count: int, most: int | None) -> None:
    """Bind an axis of `count` steps to blocks along x, and along y where x has not so many."""
    if most is not None and count > most:
        rows = -(-count // most)
        row, block = stage.split(block, factor=-(-count // rows), tail="guard")
        stage.bind(row, te.thread_axis("blockIdx.y"))
    stage.bind(block, te.thread_axis("blockIdx.x"))


# The stages that read a stage, by the id of its operation: each with the indices at which it reads,
# or with None where it is no computation whose elements could hold the other's.
Readers = dict[int, list[tuple[te.Operation, list[tuple[Any, ...]] | None]]]


def readers_of(schedule: te.Schedule, outs: Sequence[te.Tensor]) -> Readers:
    """Return who reads what, of the stages that are not inlined, seeing through those that are."""
    found: Readers = {}
    for reader in producers(outs):
        if schedule[reader].attach_type == "inline":
            continue
        if not isinstance(reader, te.ComputeOp):
            for tensor in reader.input_tensors:
                found.setdefault(id(tensor.op), []).append((reader, None))
            continue
        for number, positions in _indices_read(schedule, reader).items():
            found.setdefault(number, []).append((reader, positions))
    return found


def only_reader(readers: Readers, op: te.ComputeOp, outs: Sequence[te.Tensor]) -> te.Tensor | None:
    """Return the only stage that reads `op`, if it is an output and reads element by element."""
    known = readers.get(id(op), [])
    if len(known) != 1 or len(op.outputs) != 1:
        return None
    reader, positions = known[0]
    if positions is None or not isinstance(reader, te.ComputeOp):
        return None
    own = [axis.var for axis in reader.axis]
    shape = shape_of(op.output(0))
    if reader.reduce_axis or shape != shape_of(reader.output(0)):
        return None
    for position in positions:
        if any(i is not v and n > 1 for i, v, n in zip(position, own, shape, strict=True)):
            return None
    return next((t for t in outs if t.op is reader), None)


def _indices_read(schedule: te.Schedule, reader: te.ComputeOp) -> dict[int, list[tuple[Any, ...]]]:
    """Return the indices at which `reader` reads each stage, by the id of its operation.

    Those through inlined stages that are no axis of `reader`, of its results or its sum, are None.
    An inlined stage that is read alike several times is looked at once.
    """
    found: dict[int, list[tuple[Any, ...]]] = {}
    axes = (*reader.axis, *reader.reduce_axis)
    own: dict[int, Any] = {id(axis.var): axis.var for axis in axes}
    todo: list[tuple[Any, dict[int, Any]]] = [(body, own) for body in reader.body]
    seen: set[tuple[int, ...]] = set()
    nodes: set[tuple[int, int]] = set()
    kept = [own]  # so that their ids stay theirs
    while todo:
        node, names = todo.pop()
        if (id(node), id(names)) in nodes:
            continue
        nodes.add((id(node), id(names)))
        if isinstance(node, ProducerLoad):
            inner = node.producer.op
            inside = tuple(names.get(id(i)) for i in node.indices)
            if schedule[node.producer].attach_type != "inline":
                found.setdefault(id(inner), []).append(inside)
            elif (key := (id(inner), *(id(value) for value in inside))) not in seen:
                seen.add(key)
                mapping = {
                    id(axis.var): value for axis, value in zip(inner.axis, inside, strict=True)
                }
                kept.append(mapping)
                todo += [(body, mapping) for body in inner.body]
            todo += [(index, names) for index in node.indices]  # not what computes the producer
            continue
        todo += [(child, names) for child in children(node)]
    return found
