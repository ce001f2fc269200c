"""The graph of a computation whose schedule is searched: its operations in the order of logs."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any

from slipway import te
from slipway.arith.analyzer import Analyzer
from slipway.auto_scheduler.analysis import extent
from slipway.auto_scheduler.loop_state import State, StateObject
from slipway.auto_scheduler.steps import Replay, Step
from slipway.auto_scheduler.workload_registry import hash_of, workload_key_to_tensors
from slipway.errors import TuningError
from slipway.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    ProducerLoad,
    Reduce,
    Sub,
)  # fmt: skip
from slipway.ir.node import Node
from slipway.target import Target
from slipway.te.infer_bound import Bounds
from slipway.te.operation import ComputeOp, ExternOp, Operation, PlaceholderOp
from slipway.te.primitives.state import INLINE
from slipway.te.schedule import Schedule

_ARITHMETIC = (Add, Sub, Mul, Div, FloorDiv, FloorMod, Mod, Max, Min)
_COMPARISONS = (EQ, NE, LT, LE, GT, GE)


class LayoutRewriteOption(IntEnum):
    """What becomes of the layouts of a computation's inputs; here they stay as they are."""

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: Target, in_relay_integration: bool = False) -> int:
        """Return what classic TVM rewrites of its own accord."""
        if not target.kind.is_cpu:
            return LayoutRewriteOption.NO_REWRITE
        rewritten = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        return rewritten if in_relay_integration else LayoutRewriteOption.INSERT_TRANSFORM_STAGE


class ComputeDAG:
    """A computation: its tensors, inputs and results; its operations; its first state.

    It is made of tensors (inputs first, as a function's arguments are), of a workload's key, or of
    a schedule.
    """

    def __init__(self, compute_or_sche: Sequence[te.Tensor] | str | Schedule) -> None:
        if isinstance(compute_or_sche, str):
            compute_or_sche = workload_key_to_tensors(compute_or_sche)
        if isinstance(compute_or_sche, Schedule):
            self.ops = tuple(stage.op for stage in compute_or_sche.stages)
            self.outputs = tuple(s.op for s in compute_or_sche.stages if s.is_output)
            inputs = [op for op in self.ops if isinstance(op, PlaceholderOp)]
            self.tensors = [op.output(0) for op in (*inputs, *self.outputs)]
        else:
            self.tensors = _checked(compute_or_sche)
            self.ops = tuple(_in_order(self.tensors))
            read = {t.op for op in self.ops for t in op.input_tensors}
            self.outputs = tuple(op for op in self.ops if op not in read)
        for op in self.ops:
            _check(op)

    @property
    def init_state(self) -> StateObject:
        """The state without steps."""
        return StateObject(self, ())

    def get_init_state(self) -> State:
        """Return the state without steps, to edit."""
        return State(self.init_state, self)

    def replay(self, steps: Sequence[Step]) -> Replay:
        """Return a schedule on which steps have been carried out."""
        made = Replay(self.ops, self.outputs)
        for step in steps:
            made.do(step)
        return made

    def apply_steps_from_state(
        self, state: State | StateObject, layout_rewrite: int = 0
    ) -> tuple[te.Schedule, list[te.Tensor]]:
        """Return (schedule, arguments) of a state; tensors keep their layouts."""
        del layout_rewrite
        return self.replay(state.transform_steps).schedule, list(self.tensors)

    def print_python_code_from_state(self, state: State | StateObject) -> str:
        """Return Python that makes the schedule of a state, of a schedule `s` and its tensors."""
        return "\n".join(self.replay(state.transform_steps).code) + "\n"

    def infer_bound_from_state(self, state: State | StateObject) -> Any:
        """Return the state with the lengths of all loops, of those inside of others too."""
        replay = self.replay(state.transform_steps)
        an = Analyzer()
        bounds = Bounds(replay.schedule, an, self.tensors)
        known = {}
        for stage, axes in zip(replay.stages, replay.axes, strict=True):
            nest = bounds.nests.get(stage.op)
            if nest is None or stage.attach_type == INLINE:
                continue
            for loop in nest.loops:
                length = an.to_expr(loop.extent)
                if isinstance(length, IntImm):
                    known[loop.axis] = int(length)
            del axes
        # The lengths are those of this replay's loops: the state has to be of the same ones.
        found = StateObject(self, state.transform_steps, known)
        found._replay = replay
        if isinstance(state, StateObject):
            return found
        if not isinstance(state, State):  # of a log
            state = State(StateObject(self, state.transform_steps), self)
        return _Bounded(found, state)

    @cached_property
    def flop_ct(self) -> float:
        """Operations on elements: those of indices are not counted, comparisons of them neither."""
        return sum(_operations(op) for op in self.ops)

    def workload_key(self) -> str:
        """Return the key of a log for this computation: what it computes, and its shapes."""
        shapes = [[int(n) for n in t.shape] for t in self.tensors]  # type: ignore[call-overload]
        return json.dumps([hash_of(str(self)), *shapes])

    def __str__(self) -> str:
        lines = []
        for op in self.ops:
            for number in range(op.num_outputs):
                name = op.name if op.num_outputs == 1 else f"{op.name}.v{number}"
                if isinstance(op, PlaceholderOp):
                    shape = ", ".join(str(n) for n in op.shape)
                    lines.append(f"{name} = PLACEHOLDER [{shape}]")
                elif isinstance(op, ComputeOp):
                    axes = ", ".join(a.var.name for a in op.axis)
                    body = op.body[number]
                    if isinstance(body, Reduce):
                        lines.append(f"{name}({axes}) += {body.source[body.value_index]}")
                    else:
                        lines.append(f"{name}({axes}) = {body}")
                elif isinstance(op, ExternOp):
                    read = ", ".join(t.name for t in op.input_tensors)
                    lines.append(f"{name} = EXTERN {op.tag or op.name}({read})\n{op.body}")
        return "\n".join(lines) + "\n"

    def __reduce__(self) -> tuple[Any, ...]:
        return ComputeDAG, (self.tensors,)


class _Bounded(State):
    """A state whose lengths are known."""

    def __init__(self, bounded: StateObject, state: State) -> None:
        super().__init__(state, state.compute_dag)
        self._replay, self._lengths = bounded.replay, bounded._lengths
        self._take_over(state)


def _checked(tensors: Sequence[te.Tensor]) -> list[te.Tensor]:
    given = list(tensors)
    for tensor in given:
        if not isinstance(tensor, te.Tensor):
            raise TuningError(f"a computation is a list of tensors, got {tensor!r}")
    if not given:
        raise TuningError("a computation is a list of tensors, inputs first; this one is empty")
    return given


def _check(op: Operation) -> None:
    if isinstance(op, ExternOp):
        return  # it stays as its loops are written; what is computed around it is searched
    if not isinstance(op, ComputeOp | PlaceholderOp):
        raise TuningError(
            f"{op.name!r} is {op}: schedules are searched for te.compute, not for scans; write it "
            "as te.compute, or schedule it by hand"
        )
    names = [axis.var.name for axis in op.root_iter_vars]
    for name in names:
        if names.count(name) > 1:
            raise TuningError(
                f"two axes of {op.name!r} are called {name!r}: logs tell loops by their names; "
                "give each its own"
            )
    for axis in op.root_iter_vars:
        if axis.dom is None or not isinstance(axis.dom.extent, IntImm):
            raise TuningError(f"the axis {axis.var.name!r} of {op.name!r} has no fixed length")


def _in_order(tensors: Sequence[te.Tensor]) -> list[Operation]:
    """Return the operations, producers first, in the order of classic TVM's logs.

    Of those that are ready, the one comes first that a walk from the last tensor reaches last.
    """
    found: dict[Operation, int] = {}
    readers: dict[Operation, list[Operation]] = {}
    waiting: dict[Operation, int] = {}
    stack = [tensor.op for tensor in tensors]
    while stack:
        op = stack.pop()
        if op in found:
            continue
        found[op] = len(found)
        waiting[op] = len(op.input_tensors)
        for tensor in op.input_tensors:
            readers.setdefault(tensor.op, []).append(op)
            stack.append(tensor.op)
    ready = [(-position, id(op), op) for op, position in found.items() if not waiting[op]]
    heapq.heapify(ready)
    order: list[Operation] = []
    while ready:
        op = heapq.heappop(ready)[2]
        order.append(op)
        for reader in readers.get(op, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (-found[reader], id(reader), reader))
    return order


def _operations(op: Operation) -> float:
    if not isinstance(op, ComputeOp):
        return 0.0
    said = dict(op.attrs).get("FLOP")
    if said is not None:
        return float(said)
    points = math.prod(extent(axis) for axis in op.root_iter_vars)
    body = op.body[0]
    parts: list[Node] = list(op.body)
    if isinstance(body, Reduce):
        parts = [*body.source, *body.combiner.result]
    return float(points * sum(_count(part, op.output_dtype(0)) for part in parts))


def _count(expr: Node, dtype: str) -> int:
    """Count the operations on elements in an expression; indices of what it reads are left out."""
    kind = dtype.rstrip("0123456789")
    count, stack = 0, [expr]
    while stack:
        at = stack.pop()
        if isinstance(at, ProducerLoad):
            continue
        if isinstance(at, _ARITHMETIC):
            count += at.dtype.startswith(kind)
        elif isinstance(at, _COMPARISONS):
            count += at.a.dtype.startswith(kind)
        for name in at.FIELDS:
            value = getattr(at, name)
            stack += [
                n for n in (value if type(value) is tuple else (value,)) if isinstance(n, Node)
            ]
    return count
