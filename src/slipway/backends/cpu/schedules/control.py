"""Branches and loops whose number of iterations is data, as one kernel around the kernels inside.

    if condition[()]:            states = initial states
        kernels of one body      going = condition(states)
    else:                        while going[()]:
        kernels of the other         kernels of the body
                                     states = new states
                                     going = condition(states)

The kernels are scheduled as those of a graph are (`inlined`); only those of the branch that is
taken run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.schedules.inlined import (
    InlinedKernels,
    copy,
    cycles_of,
    kernels_of,
    new_states,
)
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer

if TYPE_CHECKING:
    from slipway.relay.expr import Function
    from slipway.target import Target


Statements = Callable[[list[Buffer], list[Buffer]], S.Stmt]


@dataclass(frozen=True)
class CopyKnobs(Knobs):
    """The lanes of the vectors that states and results are copied in."""

    lanes: int


def _default(problem: Problem) -> CopyKnobs:
    """Choose a register's lanes for the widest element that is copied."""
    lanes = (vector_lanes(problem.target, t.dtype) for t in problem.out_types)
    return CopyKnobs(min(lanes, default=1))


def _space(problem: Problem) -> Space:
    return {"lanes": (1, 2, 4, 8, 16, 32, 64)}


def _made(
    problem: Problem,
    inputs: Sequence[te.Tensor],
    statements: Callable[[list[Buffer], list[Buffer]], S.Stmt],
) -> list[te.Tensor]:
    types = problem.out_types
    made = te.extern(
        [t.shape for t in types], inputs, statements, problem.op, [t.dtype for t in types],
        tag=problem.op,
    )  # fmt: skip
    return list(made) if isinstance(made, list) else [made]


def _branch_cost(problem: Problem, knobs: CopyKnobs) -> float:
    """Return the cycles of the dearer branch."""
    attrs = problem.attrs
    return max(cycles_of(body, problem.target) for body in (attrs.then_body, attrs.else_body))


def _loop_cost(problem: Problem, knobs: CopyKnobs) -> float:
    """Return the cycles of one turn."""
    attrs = problem.attrs
    return sum(cycles_of(body, problem.target) for body in (attrs.condition, attrs.body))


def branch(problem: Problem, inputs: Sequence[te.Tensor], knobs: CopyKnobs) -> list[te.Tensor]:
    """Return the results of the branch that is taken."""
    attrs, target = problem.attrs, problem.target
    bodies = [kernels_of(body) for body in (attrs.then_body, attrs.else_body)]

    def statements(ins: list[Buffer], outs: list[Buffer]) -> S.Stmt:
        one, other = (_results(target, body, ins[1:], outs, knobs.lanes) for body in bodies)
        return S.IfThenElse(_scalar(ins[0]), one, other)

    return _made(problem, inputs, statements)


def _results(
    target: Target, body: Function, ins: Sequence[Buffer], outs: Sequence[Buffer], lanes: int
) -> S.Stmt:
    inside = InlinedKernels(target, body, ins, dict(enumerate(outs)))
    copies = [copy(a, b, lanes) for a, b in zip(inside.found, outs, strict=True)]
    return inside.around([*inside.statements, *copies])


def while_loop(problem: Problem, inputs: Sequence[te.Tensor], knobs: CopyKnobs) -> list[te.Tensor]:
    """Return the states after the last turn."""
    attrs, target, lanes = problem.attrs, problem.target, knobs.lanes
    condition, body = kernels_of(attrs.condition), kernels_of(attrs.body)

    def statements(ins: list[Buffer], outs: list[Buffer]) -> S.Stmt:
        others = ins[len(outs) :]
        begin = [copy(a, b, lanes) for a, b in zip(ins, outs, strict=False)]
        going = decl_buffer((), "bool", "going")
        asking = _results(target, condition, (*outs, *others), [going], 1)
        iteration = InlinedKernels(target, body, (*outs, *others), {}, len(outs))
        once = iteration.around([*iteration.statements, *new_states(iteration, outs, lanes)])
        if attrs.iteration is not None:
            size = attrs.iteration
            number = ops.cast(_scalar(outs[0]), size.formula.dtype)
            once = S.LetStmt(size.formula, ops.minimum(number, size.high), once)
        again = S.While(_scalar(going), S.seq((once, asking)))
        return S.Allocate(going, S.seq((*begin, asking, again)))

    return _made(problem, inputs, statements)


def _scalar(buffer: Buffer) -> E.PrimExpr:
    return E.BufferLoad(buffer, tuple(ops.const(0, "int32") for _ in buffer.shape))


register_strategy(
    "branch", name="branch.kernels", compute=branch, default=_default, space=_space,
    cost=_branch_cost,
)(as_they_are(CopyKnobs))  # fmt: skip
register_strategy(
    "while_loop", name="while_loop.kernels", compute=while_loop, default=_default, space=_space,
    cost=_loop_cost,
)(as_they_are(CopyKnobs))  # fmt: skip
