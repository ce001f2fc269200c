"""Simplify every expression under the bounds of the loops around it.

before: ``for i in range(16): if i < 16: B[i // 4 * 4 + i % 4] = A[i] * 1f``
after:  ``for i in range(16): B[i] = A[i]``

Also drops loops that run never or once, branches that are decided, and empty statements.
"""

from __future__ import annotations

from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc


def simplify(func: PrimFunc) -> PrimFunc:
    """Return `func` with all expressions in canonical form."""
    body = _Simplifier().visit(func.body)
    return func.replace(body=body)  # type: ignore[no-any-return]


class _Simplifier:
    def __init__(self) -> None:
        self.an = Analyzer()
        self.facts: dict[Any, bool] = {}  # comparisons decided by the branches around

    def visit(self, stmt: Any) -> Any:
        return _VISIT[type(stmt)](self, stmt)

    def store(self, node: S.BufferStore) -> Any:
        an = self.an
        value = an.simplify(node.value)
        indices = tuple(an.simplify(i) for i in node.indices)
        if value is node.value and all(a is b for a, b in zip(indices, node.indices, strict=True)):
            return node
        return S.BufferStore(node.buffer, value, indices)

    def loop(self, node: S.For) -> Any:
        an = self.an
        first, extent = an.simplify(node.min), an.simplify(node.extent)
        size = ops.as_int(extent)
        if size is not None and size <= 0:
            return S.NOP
        if size == 1 and node.kind != S.ForKind.THREAD and not node.annotations:
            an.bind_value(node.loop_var, first)
            return self.visit(node.body)
        start, steps = an.linear(first), an.linear(extent)
        last = start.plus(steps).shifted(-1)
        an.bind(node.loop_var, start.low, max(last.high, start.low))
        an.bind_last(node.loop_var, last)
        body = self.visit(node.body)
        if S.is_nop(body) and node.kind != S.ForKind.THREAD:
            return S.NOP
        if body is node.body and first is node.min and extent is node.extent:
            return node
        return S.For(node.loop_var, first, extent, node.kind, body, node.thread, node.annotations)

    def block(self, node: S.Block) -> Any:
        an = self.an
        bindings = tuple(an.simplify(value) for value in node.bindings)
        predicate = an.simplify(node.predicate)
        for axis in node.axes:
            if axis.dom is not None:
                an.bind_range(axis.var, axis.dom)
        init = None if node.init is None else self.visit(node.init)
        return node.replace(
            bindings=bindings, predicate=predicate, init=init, body=self.visit(node.body)
        )

    def branch(self, node: S.IfThenElse) -> Any:
        condition = self.known(self.an.simplify(node.condition))
        if isinstance(condition, E.IntImm):
            if condition.value:
                return self.visit(node.then_case)
            return self.visit(node.else_case) if node.else_case is not None else S.NOP
        keys = self.fact_keys(condition)
        outer = self.facts
        self.facts = {**outer, **dict.fromkeys(keys, True)}
        then_case = self.visit(node.then_case)
        single = keys if not isinstance(condition, E.And) else []
        self.facts = {**outer, **dict.fromkeys(single, False)}
        else_case = self.visit(node.else_case) if node.else_case is not None else None
        self.facts = outer
        if else_case is not None and S.is_nop(else_case):
            else_case = None
        if S.is_nop(then_case) and else_case is None:
            return S.NOP
        if (
            condition is node.condition
            and then_case is node.then_case
            and else_case is node.else_case
        ):
            return node
        return S.IfThenElse(condition, then_case, else_case)

    def fact_keys(self, condition: E.PrimExpr) -> list[Any]:
        """Return what names each comparison that `condition` is made of."""
        if isinstance(condition, E.And):
            return self.fact_keys(condition.a) + self.fact_keys(condition.b)
        if isinstance(condition, E.Call) and condition.op == "likely":
            return self.fact_keys(condition.args[0])
        if isinstance(condition, E.CmpOp) and condition.a.dtype in ("int32", "int64"):
            an = self.an
            difference = an.recombine(an.linear(condition.a).minus(an.linear(condition.b)))
            if all(a.pure for a in difference.terms):
                return [(type(condition), difference.key)]
        return []  # a condition on memory may change while the branch runs

    def known(self, condition: E.PrimExpr) -> Any:
        """Return `condition` with the comparisons that enclosing branches decided put in."""
        if not self.facts or isinstance(condition, E.IntImm):
            return condition
        if isinstance(condition, E.And):
            return ops.logical_and(self.known(condition.a), self.known(condition.b))
        if isinstance(condition, E.Call) and condition.op == "likely":
            inner = self.known(condition.args[0])
            return inner if isinstance(inner, E.IntImm) else condition
        keys = self.fact_keys(condition)
        verdict = self.facts.get(keys[0]) if keys else None
        if verdict is None:
            return condition
        return ops.TRUE if verdict else ops.FALSE

    def sequence(self, node: S.SeqStmt) -> Any:
        parts = [self.visit(s) for s in node.stmts]
        if all(a is b for a, b in zip(parts, node.stmts, strict=True)):
            return node
        return S.seq(parts)

    def let(self, node: S.LetStmt) -> Any:
        value = self.an.simplify(node.value)
        if isinstance(value, (E.IntImm, E.FloatImm, E.Var)) and value.dtype in ("int32", "int64"):
            self.an.bind_value(node.var, value)
            return self.visit(node.body)
        if value.dtype in ("int32", "int64"):
            self.an.bind(node.var, *self.an.linear(value).bounds())
        body = self.visit(node.body)
        if body is node.body and value is node.value:
            return node
        return S.LetStmt(node.var, value, body)

    def allocate(self, node: S.Allocate) -> Any:
        body = self.visit(node.body)
        if S.is_nop(body):
            return S.NOP
        return node if body is node.body else S.Allocate(node.buffer, body, node.annotations)

    def attribute(self, node: S.AttrStmt) -> Any:
        body = self.visit(node.body)
        value = self.an.simplify(node.value) if isinstance(node.value, E.PrimExpr) else node.value
        return node.replace(value=value, body=body)

    def assertion(self, node: S.AssertStmt) -> Any:
        condition = self.an.simplify(node.condition)
        body = self.visit(node.body)
        if isinstance(condition, E.IntImm) and condition.value:
            return body
        return node.replace(condition=condition, body=body)

    def repeat(self, node: S.While) -> Any:
        return node.replace(condition=self.an.simplify(node.condition), body=self.visit(node.body))

    def evaluate(self, node: S.Evaluate) -> Any:
        value = self.an.simplify(node.value)
        return node if value is node.value else S.Evaluate(value)


_VISIT: dict[type, Any] = {
    S.BufferStore: _Simplifier.store,
    S.For: _Simplifier.loop,
    S.Block: _Simplifier.block,
    S.IfThenElse: _Simplifier.branch,
    S.SeqStmt: _Simplifier.sequence,
    S.LetStmt: _Simplifier.let,
    S.Allocate: _Simplifier.allocate,
    S.AttrStmt: _Simplifier.attribute,
    S.AssertStmt: _Simplifier.assertion,
    S.While: _Simplifier.repeat,
    S.Evaluate: _Simplifier.evaluate,
}
