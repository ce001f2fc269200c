"""A loop over steps as one kernel: around the kernels of its body, each with its own schedule.

    states = initial states
    for t in range(steps):
        kernel_0(states, x[t], ..., temporary)
        kernel_1(temporary, ..., y[t])
        states = new states

The kernels of the body are lowered as those of a graph are, with views of single steps as their
arguments: packed weights, register tiles and parallel loops are the same.  What lies between them
stays in the caches.  States are updated at the end of a step, when nobody reads the old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.schedules.inlined import (
    InlinedKernels,
    copy,
    cycles_of,
    kernels_of,
    new_states,
    shape_of,
    view,
)
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.relay.dims import usual
from slipway.relay.expr import Function
from slipway.relay.ops.recurrence import LoopAttrs
from slipway.relay.ops.tensor.tensors import number
from slipway.relay.types import TensorType, flatten

if TYPE_CHECKING:
    from slipway.target import Target


@dataclass(frozen=True)
class ScanKnobs(Knobs):
    """The lanes of the vectors that states and rows are copied in."""

    lanes: int


def _default(problem: Problem) -> ScanKnobs:
    """Choose a register's lanes for the widest element that is copied."""
    lanes = (vector_lanes(problem.target, t.dtype) for t in problem.out_types)
    return ScanKnobs(min(lanes, default=1))


def _space(problem: Problem) -> Space:
    return {"lanes": (1, 2, 4, 8, 16, 32, 64)}


def _cost(problem: Problem, knobs: ScanKnobs) -> float:
    """Return the cycles of all steps' kernels."""
    attrs = problem.attrs
    first = problem.in_types[attrs.states : attrs.states + attrs.sequences]
    steps = usual(flatten(first[0])[0].shape[0]) if first else int(attrs.steps or 0)
    return steps * cycles_of(attrs.body, problem.target)


def loop(problem: Problem, inputs: Sequence[te.Tensor], knobs: ScanKnobs) -> list[te.Tensor]:
    """Return the last states and the stacked outputs of the operator scan on `inputs`."""
    target, attrs = problem.target, problem.attrs
    types = [t for t in problem.out_types if isinstance(t, TensorType)]
    body = kernels_of(attrs.body)

    def statements(ins: list[Buffer], outs: list[Buffer]) -> S.Stmt:
        return _Loop(target, attrs, body, ins, outs, knobs.lanes).statement()

    made = te.extern(
        [t.shape for t in types], inputs, statements, "scan", [t.dtype for t in types], tag="scan"
    )
    return list(made) if isinstance(made, list) else [made]


register_strategy(
    "scan", name="scan.kernels", compute=loop, default=_default, space=_space, cost=_cost,
)(as_they_are(ScanKnobs))  # fmt: skip


class _Loop:
    """Builds the statements of one scan from its buffers."""

    def __init__(
        self,
        target: Target,
        attrs: LoopAttrs,
        body: Function,
        ins: list[Buffer],
        outs: list[Buffer],
        lanes: int,
    ) -> None:
        self.target = target
        self.lanes = lanes
        self.body = body
        count, sequences = attrs.states, attrs.sequences
        self.states, self.outputs = outs[:count], outs[count:]
        self.initial = ins[:count]
        self.sequences = ins[count : count + sequences]
        self.others = ins[count + sequences :]
        self.step = E.Var("t", "int32")
        self.steps = shape_of(self.sequences[0])[0] if sequences else int(attrs.steps or 0)
        last = number(self.steps - 1, "int32")
        self.position = ops.sub(last, self.step) if attrs.reverse else self.step

    def statement(self) -> S.Stmt:
        """Return the whole loop."""
        begin = [copy(a, b, self.lanes) for a, b in zip(self.initial, self.states, strict=True)]
        steps = S.For(
            self.step, ops.const(0, "int32"), number(self.steps, "int32"), "serial", self._once()
        )
        return S.seq((*begin, steps))

    def _once(self) -> S.Stmt:
        """Return one step: the kernels of the body, then the new states."""
        slices = [self._row(sequence) for sequence in self.sequences]
        rows = [self._row(output) for output in self.outputs]
        count = len(self.states)
        given = (*self.states, *slices, *self.others)
        step = InlinedKernels(self.target, self.body, given, dict(enumerate(rows, count)), count)
        done = list(step.statements)
        done += [copy(a, b, self.lanes) for a, b in zip(step.found[count:], rows, strict=True)]
        done += new_states(step, self.states, self.lanes)
        return step.around(done)

    def _row(self, buffer: Buffer) -> Buffer:
        """Return the part of a sequence that belongs to this step."""
        shape = shape_of(buffer)[1:]
        offset = ops.mul(self.position, number(prod(shape), "int32"))
        return view(buffer, shape, offset)
