"""What schedules of every backend do with the stages of a kernel: find them, inline, cut and fuse.

A `Loop` is an axis with its number of steps, which split and fused axes do not know themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from slipway import te
from slipway.ir.visit import post_order_by
from slipway.relay.dims import size_of


def extent_of(axis: te.IterVar) -> int:
    """Return the extent of an axis: a number, or the dimension it is where that is open."""
    return size_of(axis.extent)  # type: ignore[no-any-return]


def shape_of(tensor: te.Tensor) -> tuple[int, ...]:
    """Return a shape as Python ints, with the dimensions that are open as they are."""
    return tuple(size_of(d) for d in tensor.shape)


def producers(outs: Iterable[te.Tensor]) -> list[te.Operation]:
    """Return the operations under `outs`, inputs first, each once."""
    return post_order_by(
        [t.op for t in outs][::-1], lambda op: [t.op for t in op.input_tensors][::-1]
    )


def tagged(outs: Iterable[te.Tensor]) -> dict[str, te.Tensor]:
    """Return the stages under `outs` by each of their tags; of several with one tag the last."""
    return {tag: op.output(0) for op in producers(outs) for tag in op.tag.split(",") if tag}


def is_injective(op: te.Operation) -> bool:
    """Return whether an operation is a compute without reduction, which can be inlined."""
    return isinstance(op, te.ComputeOp) and not op.reduce_axis


def new_schedule(outs: Sequence[te.Tensor]) -> tuple[te.Schedule, te.Tensor]:
    """Return the schedule of a kernel with one output, and that output."""
    (output,) = {id(t.op): t for t in outs}.values()
    return te.create_schedule(output.op), output


def inline_injective(
    schedule: te.Schedule, outs: Sequence[te.Tensor], keep: Sequence[te.Tensor] = ()
) -> None:
    """Inline every computed tensor that is no reduction, no output and not in `keep`.

    What an operation of statements reads stays too: it reads memory.
    """
    kept = {id(t.op) for t in (*outs, *keep)}
    order = producers(outs)
    for op in order:
        if not isinstance(op, te.ComputeOp):
            kept.update(id(t.op) for t in op.input_tensors)
    for op in order:
        if is_injective(op) and id(op) not in kept:
            schedule[op].compute_inline()


@dataclass
class Loop:
    """A loop of a stage and how many steps it has; split and fused axes know none themselves."""

    axis: te.IterVar
    extent: int

    @staticmethod
    def of(axes: Iterable[te.IterVar]) -> list[Loop]:
        """Return the loops of a stage's own axes."""
        return [Loop(axis, extent_of(axis)) for axis in axes]


def fuse(stage: te.Stage, loops: Sequence[Loop]) -> Loop:
    """Fuse adjacent loops into one."""
    if len(loops) == 1:
        return loops[0]
    return Loop(stage.fuse(*(loop.axis for loop in loops)), prod(loop.extent for loop in loops))


def split(stage: te.Stage, loop: Loop, factor: int) -> tuple[Loop, Loop]:
    """Cut a loop into steps of `factor`; the last one may overlap, or be guarded in a reduction."""
    tail = "guard" if stage.op.reduce_axis else "shift"
    outer, inner = stage.split(loop.axis, factor=factor, tail=tail)
    return Loop(outer, -(-loop.extent // factor)), Loop(inner, factor)
