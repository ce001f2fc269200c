"""Statements at which threads meet, as generators: a thread stops there until all have come.

A statement without a barrier, or an instruction of a warp, is a closure as in ``interpret.py``; the
others yield a `Meeting` and go on once the machine resumes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.instructions.warp_products import PRODUCT
from slipway.ir.instructions.warp_shuffles import SHUFFLES
from slipway.ir.visit import children, post_order, walk

if TYPE_CHECKING:
    from slipway.ir.interpreter.interpret import Machine

BARRIER, ACTIVE = "storage_sync", "warp_activemask"
EXCHANGES = (*SHUFFLES, ACTIVE)  # whose value comes from other threads
MEETINGS = frozenset((BARRIER, *EXCHANGES, PRODUCT))


@dataclass
class Meeting:
    """Where a thread has stopped: a call, what stands around it, and what the thread brings."""

    call: E.Call
    around: tuple[str, ...]  # conditions and loops, outermost first
    stages: tuple[str, ...]  # that the innermost of them computes
    number: int  # no other call of the program has it
    operands: tuple[Any, ...] = field(default=())


Steps = Callable[[], Iterator[Meeting]]


def has_meeting(node: Any) -> bool:
    """Return whether threads meet in `node`."""
    return any(isinstance(n, E.Call) and n.op in MEETINGS for n in walk(node))


def stages_of(node: S.Stmt) -> tuple[str, ...]:
    """Return the names of the buffers that `node` stores to, in order."""
    names = (n.buffer.name for n in walk(node) if isinstance(n, S.BufferStore))
    return tuple(dict.fromkeys(names))


Operands = Callable[[E.Call], Callable[[], tuple[Any, ...]]]


class StepCompiler:
    """Makes the generators of one kernel.

    `operands` gives what reads the operands that the running thread brings to a call.
    """

    def __init__(self, machine: Machine, operands: Operands) -> None:
        self.machine, self.operands = machine, operands
        self.calls = 0

    def of(self, node: S.Stmt, around: tuple[str, ...], stages: tuple[str, ...]) -> Steps:
        """Return a function that begins a statement for the thread that is running."""
        if not has_meeting(node):
            return self._plain(node)
        match node:
            case S.SeqStmt():
                parts = [self.of(inner, around, stages) for inner in node.stmts]
                return lambda: (meeting for part in parts for meeting in part())
            case S.For():
                return self._loop(node, around, stages_of(node) or stages)
            case S.While():
                return self._while(node, around, stages_of(node) or stages)
            case S.IfThenElse():
                return self._branch(node, around, stages)
            case S.Allocate():
                return self._behind(
                    lambda: self.machine.allocate(node.buffer), node.body, around, stages
                )
            case S.LetStmt():
                return self._let(node, around, stages)
            case S.AttrStmt() | S.AssertStmt():
                return self.of(node.body, around, stages)
            case S.Evaluate() | S.BufferStore():
                return self._last(node, around, stages)
        raise LoweringError(f"threads cannot meet in a {type(node).__name__}: {node}")

    def _plain(self, node: S.Stmt) -> Steps:
        run = self.machine.compile(node)

        def steps() -> Iterator[Meeting]:
            run()
            return iter(())

        return steps

    def _behind(
        self,
        first: Callable[[], Any],
        body: S.Stmt,
        around: tuple[str, ...],
        stages: tuple[str, ...],
    ) -> Steps:
        inner = self.of(body, around, stages)

        def steps() -> Iterator[Meeting]:
            first()
            yield from inner()

        return steps

    def _let(self, node: S.LetStmt, around: tuple[str, ...], stages: tuple[str, ...]) -> Steps:
        meet, value = self._meetings(node.value, around, stages), self.machine.compile(node.value)
        inner, values, key = self.of(node.body, around, stages), self.machine.values, id(node.var)

        def steps() -> Iterator[Meeting]:
            yield from meet()
            values[key] = value()
            yield from inner()

        return steps

    def _loop(self, node: S.For, around: tuple[str, ...], stages: tuple[str, ...]) -> Steps:
        m = self.machine
        first, extent, key = m.compile(node.min), m.compile(node.extent), id(node.loop_var)
        text = f"loop {node.loop_var.name} of {node.extent} steps"
        body = self.of(node.body, (*around, text), stages)

        def steps() -> Iterator[Meeting]:
            start = int(first())
            for value in range(start, start + int(extent())):
                m.values[key] = value
                yield from body()

        return steps

    def _while(self, node: S.While, around: tuple[str, ...], stages: tuple[str, ...]) -> Steps:
        inside = (*around, f"while {node.condition}")
        condition = self.machine.compile(node.condition)
        meet = self._meetings(node.condition, around, stages)
        body = self.of(node.body, inside, stages)

        def steps() -> Iterator[Meeting]:
            while True:
                yield from meet()
                if not condition():
                    return
                yield from body()

        return steps

    def _branch(
        self, node: S.IfThenElse, around: tuple[str, ...], stages: tuple[str, ...]
    ) -> Steps:
        meet = self._meetings(node.condition, around, stages)
        condition = self.machine.compile(node.condition)
        then, other = node.then_case, node.else_case
        yes = self.of(then, (*around, f"if {node.condition}"), stages_of(then) or stages)
        no: Steps = lambda: iter(())  # noqa: E731
        if other is not None:
            no = self.of(other, (*around, f"if not {node.condition}"), stages_of(other) or stages)

        def steps() -> Iterator[Meeting]:
            yield from meet()
            yield from (yes if condition() else no)()

        return steps

    def _last(
        self, node: S.Evaluate | S.BufferStore, around: tuple[str, ...], stages: tuple[str, ...]
    ) -> Steps:
        call = node.value if isinstance(node, S.Evaluate) else None
        if isinstance(call, E.Call) and call.op in (BARRIER, PRODUCT):
            return self._call(call, around, stages)
        own = (node.buffer.name,) if isinstance(node, S.BufferStore) else stages
        parts = [self._meetings(child, around, own) for child in children(node)]
        run = self.machine.compile(node)

        def steps() -> Iterator[Meeting]:
            for part in parts:
                yield from part()
            run()

        return steps

    def _call(self, call: E.Call, around: tuple[str, ...], stages: tuple[str, ...]) -> Steps:
        self.calls += 1
        number = self.calls
        bring = self.operands(call)
        return lambda: iter((Meeting(call, around, stages, number, bring()),))

    def _meetings(self, node: Any, around: tuple[str, ...], stages: tuple[str, ...]) -> Steps:
        """Return what brings the values of the exchanges in an expression, innermost first."""
        calls = [n for n in post_order(node) if isinstance(n, E.Call) and n.op in EXCHANGES]
        parts = [self._call(call, around, stages) for call in calls]
        return lambda: (meeting for part in parts for meeting in part())
