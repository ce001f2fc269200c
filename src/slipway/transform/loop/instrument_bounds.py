"""Bounds checks at run time, for "tir.instrument_bound_checkers": True.

before: ``B[i] = A[I[i]]``
after:  ``assert 0 <= I[i] and I[i] < n, "..."; B[i] = A[I[i]]``

An access is checked where its statement runs, after the conditions (if_then_else, Select) that
it stands in.  Vectorized loops become serial ones, so that a message is about one element.
"""

from __future__ import annotations

from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.visit import children, map_children

Check = tuple[E.PrimExpr, str]


def instrument_bounds(func: PrimFunc) -> PrimFunc:
    """Return `func` with an assertion in front of every access that is not proved to be inside."""
    made: PrimFunc = func.replace(body=_Checker(func.name).visit(func.body))
    return made


class _Checker:
    def __init__(self, name: str) -> None:
        self.name = name
        self.an = Analyzer()

    def visit(self, node: Any) -> Any:
        """Return the statement with assertions around it."""
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For):
            if node.loop_var.dtype in ("int32", "int64"):
                self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
            if node.kind == S.ForKind.VECTORIZED:
                node = node.replace(kind=S.ForKind.SERIAL)
        checks: dict[str, Check] = {}
        for child in children(node):
            if isinstance(child, E.PrimExpr):
                self._accesses(child, [], checks)
        if isinstance(node, S.BufferStore):
            self._indices(node.buffer, node.indices, [], checks)
        result: Any = map_children(node, self.visit)
        for condition, message in reversed(checks.values()):
            result = S.AssertStmt(condition, E.StringImm(message), result)
        return result

    def _accesses(self, node: Any, under: list[E.PrimExpr], checks: dict[str, Check]) -> None:
        if isinstance(node, E.Select):
            self._choice(node.condition, node.true_value, node.false_value, under, checks)
            return
        if isinstance(node, E.Call) and node.op == "if_then_else":
            test, yes, no = node.args
            self._choice(test, yes, no, under, checks)
            return
        if isinstance(node, E.Let):  # the variable is known only inside
            self._accesses(node.value, under, checks)
            return
        for child in children(node):
            if isinstance(child, E.PrimExpr):
                self._accesses(child, under, checks)
        if isinstance(node, E.BufferLoad):
            self._indices(node.buffer, node.indices, under, checks)

    def _choice(self, test: Any, yes: Any, no: Any, under: Any, checks: dict[str, Check]) -> None:
        self._accesses(test, under, checks)
        self._accesses(yes, [*under, test], checks)
        self._accesses(no, [*under, ops.logical_not(test)], checks)

    def _indices(self, buffer: Buffer, indices: Any, under: Any, checks: dict[str, Check]) -> None:
        for axis, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            if index.lanes > 1:
                continue  # written as vectors by the user: of constant width
            inside = [
                test
                for test in (ops.greater_equal(index, 0), ops.less(index, extent))
                if not self._proved(test)
            ]
            if not inside:
                continue
            condition = ops.all_of(inside)
            for test in under:
                condition = ops.if_then_else(test, condition, ops.const(True, "bool"))
            message = (
                f"{self.name}: the index {index} of dimension {axis} of {buffer.name} is outside "
                f"[0, {extent})"
            )
            checks.setdefault(f"{condition} {message}", (condition, message))

    def _proved(self, test: E.PrimExpr) -> bool:
        return bool(self.an.can_prove(test))
