"""What Python would decide by truth values, as calls that build expressions.

``and``, ``or``, ``not``, ``if else`` and chains of comparisons ask their operands for a truth
value, which a node has not.
"""

from __future__ import annotations

import ast
from typing import Any

from slipway.ir import ops
from slipway.ir.expr import IntImm, PrimExpr


class _Decisions(ast.NodeTransformer):
    """Calls in the place of what Python decides by truth values."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        name = "_all" if isinstance(node.op, ast.And) else "_any"
        return self._call(node, name, [self.visit(value) for value in node.values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return self._call(node, "_not", [self.visit(node.operand)])
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._call(node, "_choose", [self.visit(v) for v in (node.test, node.body,
                                                                    node.orelse)])  # fmt: skip

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        operands = [self.visit(v) for v in (node.left, *node.comparators)]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(a, [op], [b]), node)
            for a, op, b in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return pairs[0] if len(pairs) == 1 else self._call(node, "_all", pairs)

    @staticmethod
    def _call(node: ast.AST, name: str, args: list[Any]) -> ast.AST:
        made = ast.Call(ast.Name(name, ast.Load()), args, [])
        return ast.fix_missing_locations(ast.copy_location(made, node))


def decided(node: ast.expr) -> ast.expr:
    """Return an expression in which `CALLS` stand for what decides; `node` is changed."""
    return _Decisions().visit(node)  # type: ignore[no-any-return]


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, PrimExpr) and not isinstance(condition, IntImm):
        return ops.if_then_else(condition, yes, no)
    return yes if condition else no


def _all(*values: Any) -> Any:
    return ops.all_of([ops.as_expr(v) for v in values])


def _any(*values: Any) -> Any:
    return ops.any_of([ops.as_expr(v) for v in values])


def _not(value: Any) -> Any:
    return ops.logical_not(value) if isinstance(value, PrimExpr) else not value


CALLS = {"_choose": _choose, "_all": _all, "_any": _any, "_not": _not}
