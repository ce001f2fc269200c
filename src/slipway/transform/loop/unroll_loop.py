"""Unroll loops: write the body once per step.

before: ``unrolled for i in range(2): B[i] = A[i]``
after:  ``B[0] = A[0]; B[1] = A[1]``

Loops marked "unrolled" with a constant extent are expanded.  With the option
"tir.UnrollLoop": {"auto_max_step": n}, or the pragma "auto_unroll_max_step" on a loop around them,
serial loops whose bodies come to at most n statements are unrolled too, unless "auto_max_depth" or
"auto_max_extent" of the option forbid it.  A loop that would become more than `MOST_STORES`
stores, with the loops in it, stays a loop: no compiler is done with such code.
"""

from __future__ import annotations

from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.visit import children, map_children
from slipway.transform.context import PassContext

MOST_STORES = 4096  # that one loop becomes


def unroll_loop(func: PrimFunc) -> PrimFunc:
    """Return `func` with the loops marked for it expanded."""
    options = PassContext.current().config.get("tir.UnrollLoop", {})
    unroller = _Unroller(
        int(options.get("auto_max_step", 0)),
        int(options.get("auto_max_depth", 8)),
        int(options.get("auto_max_extent", 0)),
    )
    return func.replace(body=unroller.visit(func.body))  # type: ignore[no-any-return]


class _Unroller:
    def __init__(self, auto_max_step: int, auto_max_depth: int, auto_max_extent: int) -> None:
        self.auto_max_step = auto_max_step
        self.auto_max_depth = auto_max_depth
        self.auto_max_extent = auto_max_extent
        self.an = Analyzer()
        self.values: dict[Atom, Linear] = {}
        self.names: dict[int, Any] = {}
        # By expression and what its variables are here, so that copies share what is alike.
        self.memo: dict[tuple[int, ...], tuple[Any, ...]] = {}
        self.inside: dict[int, tuple[Any, tuple[int, ...]]] = {}
        self.around: list[tuple[E.Var, E.Range]] = []  # the loops that stay

    # -- statements: expand, substituting the current values of unrolled variables ----------------

    def visit(self, stmt: S.Stmt) -> S.Stmt:
        if isinstance(stmt, S.For):
            return self.loop(stmt)
        if isinstance(stmt, S.SeqStmt):
            return S.seq(self.visit(s) for s in stmt.stmts)
        if not self.names:
            return map_children(stmt, self._child)  # type: ignore[no-any-return]
        if isinstance(stmt, S.BufferStore):
            value = self.expr(stmt.value)
            return S.BufferStore(stmt.buffer, value, tuple(self.expr(i) for i in stmt.indices))
        if isinstance(stmt, S.LetStmt):
            return self._fresh_let(stmt)
        return map_children(stmt, self._child)  # type: ignore[no-any-return]

    def _child(self, node: Any) -> Any:
        if isinstance(node, S.Stmt):
            return self.visit(node)
        if isinstance(node, E.PrimExpr) and self.names:
            return self.expr(node)
        return node

    def _fresh_let(self, stmt: S.LetStmt) -> S.Stmt:
        """A copy of a let binds a variable of its own."""
        var = E.Var(stmt.var.name, stmt.var.dtype)
        value = self.expr(stmt.value)
        self.names[id(stmt.var)] = var
        if var.dtype in ("int32", "int64"):
            fresh = Linear({self.an.var_atom(var): 1}, 0, var.dtype)
            self.values[self.an.var_atom(stmt.var)] = fresh
        body = self.visit(stmt.body)
        return S.LetStmt(var, value, body)

    def loop(self, node: S.For) -> S.Stmt:
        extent = self.extent(node)
        pragmas = dict(node.annotations)
        outer_limit = self.auto_max_step
        if "pragma_auto_unroll_max_step" in pragmas:
            self.auto_max_step = int(pragmas["pragma_auto_unroll_max_step"])
        wanted = node.kind == S.ForKind.UNROLLED
        if node.kind == S.ForKind.SERIAL and extent is not None and self.auto_max_step:
            steps = count_statements(node.body)
            wanted = steps is not None and extent * steps <= self.auto_max_step
            if self.auto_max_extent and extent > self.auto_max_extent:
                wanted = False
            if wanted and loop_depth(node) > self.auto_max_depth:
                wanted = False
        try:
            if not wanted or extent is None or extent * expanded_size(node.body) > MOST_STORES:
                return self._keep(node)
            return self._expand(node, extent)
        finally:
            self.auto_max_step = outer_limit

    def extent(self, node: S.For) -> int | None:
        """Return how many steps a loop has here, where that is known."""
        extent = self.expr(node.extent)
        if node.kind == S.ForKind.UNROLLED and not isinstance(extent, E.IntImm):
            an = Analyzer()  # of its own: here the variables of loops that stay have no ranges
            for var, dom in self.around:
                an.bind_range(var, dom)
            extent = an.simplify(extent)
        return ops.as_int(extent)

    def _keep(self, node: S.For) -> S.Stmt:
        if not self.names:
            self.around.append((node.loop_var, E.Range(node.min, node.extent)))
            body = self.visit(node.body)
            self.around.pop()
            return node if body is node.body else node.replace(body=body)
        # Each copy of a loop gets its own variable.
        var = E.Var(node.loop_var.name, node.loop_var.dtype)
        saved = self.names.get(id(node.loop_var))
        first, extent = self.expr(node.min), self.expr(node.extent)
        if var.dtype in ("int32", "int64"):
            self.an.bind_range(var, E.Range(first, extent))
            atom = self.an.var_atom(node.loop_var)
            self.values[atom] = Linear({self.an.var_atom(var): 1}, 0, var.dtype)
        self.names[id(node.loop_var)] = var
        self.around.append((var, E.Range(first, extent)))
        body = self.visit(node.body)
        self.around.pop()
        if saved is None:
            del self.names[id(node.loop_var)]
            self.values.pop(self.an.var_atom(node.loop_var), None)
        thread = node.thread
        return S.For(var, first, extent, node.kind, body, thread, node.annotations)

    def _expand(self, node: S.For, extent: int) -> S.Stmt:
        first = self.expr(node.min)
        start = self.an.linear(first)
        atom = self.an.var_atom(node.loop_var)
        copies = []
        for step in range(extent):
            value = start.shifted(step)
            self.values[atom] = value
            self.names[id(node.loop_var)] = self.an.to_expr(value)
            copies.append(self.visit(node.body))
        self.values.pop(atom, None)
        self.names.pop(id(node.loop_var), None)
        return S.seq(copies)

    # -- expressions -------------------------------------------------------------------------------

    def expr(self, node: Any) -> Any:
        """Return `node` with the variables of unrolled loops replaced by their current values."""
        names = self.names
        if isinstance(node, E.Var):
            return names.get(id(node), node)
        if type(node) in _LEAVES or not names:
            return node
        now = [names[var] for var in self.variables(node) if var in names]
        key = (id(node), *map(id, now))
        known = self.memo.get(key)
        if known is None:
            known = self.memo[key] = (self.changed(node), node, now)  # ids stay those of these
        return known[0]

    def variables(self, node: Any) -> tuple[int, ...]:
        """Return the ids of the variables in an expression."""
        known = self.inside.get(id(node))
        if known is None:
            found: dict[int, None] = {}
            for child in children(node):
                if isinstance(child, E.Var):
                    found[id(child)] = None
                elif isinstance(child, E.PrimExpr):
                    found.update(dict.fromkeys(self.variables(child)))
            known = self.inside[id(node)] = (node, tuple(found))
        return known[1]

    def changed(self, node: Any) -> Any:
        """Return what `expr` does, which has not been asked for it under these values yet."""
        if node.dtype in ("int32", "int64"):
            linear = self.an.linear(node)
            if all(a.pure for a in linear.terms):
                if all(a.variables.isdisjoint(self.values) for a in linear.terms):
                    return self.an.to_expr(linear)
                return self.an.to_expr(self.an.substitute(linear, self.values))
        if isinstance(node, E.BinaryOp):
            a, b = self.expr(node.a), self.expr(node.b)
            make: Any = type(node)
            return node if a is node.a and b is node.b else make(a, b)
        result = map_children(
            node, lambda child: self.expr(child) if isinstance(child, E.PrimExpr) else child
        )
        if isinstance(result, (E.CmpOp, E.Select)) or (
            isinstance(result, E.Call) and result.op in ("likely", "if_then_else")
        ):
            return self.an.simplify(result)
        return result


_LEAVES = (E.IntImm, E.FloatImm, E.StringImm)


def loop_depth(stmt: S.Stmt) -> int:
    """Return how many loops are nested in `stmt`, itself included."""
    inner = [loop_depth(c) for c in children(stmt) if isinstance(c, S.Stmt)]
    return max(inner, default=0) + isinstance(stmt, S.For)


def expanded_size(stmt: S.Stmt) -> int:
    """Return how many stores and calls `stmt` has when the loops marked for it are expanded."""
    inner = sum(expanded_size(c) for c in children(stmt) if isinstance(c, S.Stmt))
    if isinstance(stmt, S.For) and stmt.kind == S.ForKind.UNROLLED:
        copies = (ops.as_int(stmt.extent) or 1) * inner
        return copies if copies <= MOST_STORES else inner
    return max(inner, 1)


def count_statements(stmt: S.Stmt) -> int | None:
    """Return how many stores and calls `stmt` runs, or None when that is not constant."""
    if isinstance(stmt, S.For):
        extent, inner = ops.as_int(stmt.extent), count_statements(stmt.body)
        if (
            extent is None
            or inner is None
            or stmt.kind
            not in (
                S.ForKind.SERIAL,
                S.ForKind.UNROLLED,
            )
        ):
            return None
        return extent * inner
    if isinstance(stmt, S.SeqStmt):
        total = 0
        for inner_stmt in stmt.stmts:
            steps = count_statements(inner_stmt)
            if steps is None:
                return None
            total += steps
        return total
    if isinstance(stmt, S.IfThenElse):
        first = count_statements(stmt.then_case)
        second = count_statements(stmt.else_case) if stmt.else_case is not None else 0
        return None if first is None or second is None else first + second
    if isinstance(stmt, (S.Allocate, S.AttrStmt, S.LetStmt, S.AssertStmt)):
        return count_statements(stmt.body)
    return None if isinstance(stmt, S.While) else 1
