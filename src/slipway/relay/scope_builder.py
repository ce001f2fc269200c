"""`ScopeBuilder`: Lets and Ifs written one below the other, in place of nested by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slipway.errors import TypeInferenceError
from slipway.relay.construct import var as make_var
from slipway.relay.expr import Expr, If, Let, TupleWrapper, Var
from slipway.relay.op_registry import as_expr
from slipway.relay.types import Type


class _Scope:
    def __init__(self) -> None:
        self.bindings: list[tuple[Var, Expr]] = []
        self.value: Expr | None = None
        self.choice: tuple[Expr, Expr] | None = None  # an If that waits for its else

    def close(self) -> Expr:
        if self.choice is not None:
            raise TypeInferenceError("an if_scope has no else_scope behind it")
        if self.value is None:
            raise TypeInferenceError("the scope has no value: call ret(value) at its end")
        body = self.value
        for name, value in reversed(self.bindings):
            body = Let(name, value, body)
        return body


class ScopeBuilder:
    """Builds an expression statement by statement.

    For example::

    sb = relay.ScopeBuilder()
    y = sb.let("y", relay.add(x, x))
    with sb.if_scope(condition):
        sb.ret(y)
    with sb.else_scope():
        sb.ret(x)
    body = sb.get()
    """

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Any, value: Any) -> Var:
        """Bind `value` to `var`: a Var, a name, or (name, type); return the variable."""
        bound = as_expr(value)
        if isinstance(var, str):
            var = make_var(var, bound.type)
        elif isinstance(var, (tuple, list)):
            if len(var) != 2:
                raise TypeInferenceError(f"let takes a name and a type, got {tuple(var)}")
            var = make_var(*var)
        if not isinstance(var, Var):
            raise TypeInferenceError(f"let takes a Var, a name or (name, type), got {var!r}")
        if var.type is not None and bound.type is not None and var.type != bound.type:
            raise TypeInferenceError(
                f"variable {var.name!r} is {var.type}, but its value is {bound.type}"
            )
        self._scopes[-1].bindings.append((var, bound))
        return var

    @contextmanager
    def if_scope(self, cond: Expr) -> Iterator[None]:
        """Open the branch taken where `cond` holds; an `else_scope` must follow."""
        self._scopes.append(_Scope())
        try:
            yield
        finally:
            inner = self._scopes.pop()
        outer = self._scopes[-1]
        if outer.value is not None or outer.choice is not None:
            raise TypeInferenceError("the scope has its value before this if_scope")
        outer.choice = (cond, inner.close())

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Open the other branch of the if_scope before."""
        if self._scopes[-1].choice is None:
            raise TypeInferenceError("an else_scope stands behind an if_scope")
        self._scopes.append(_Scope())
        try:
            yield
        finally:
            inner = self._scopes.pop()
        outer = self._scopes[-1]
        assert outer.choice is not None
        cond, true_branch = outer.choice
        outer.choice, outer.value = None, If(cond, true_branch, inner.close())

    def type_of(self, expr: Expr) -> Type | None:
        """Return the type of `expr`, None while it is not known."""
        return expr.type

    def ret(self, value: Any) -> None:
        """Set the value of the innermost scope."""
        scope = self._scopes[-1]
        if scope.value is not None or scope.choice is not None:
            raise TypeInferenceError("ret was called twice in one scope")
        scope.value = value.astuple() if isinstance(value, TupleWrapper) else as_expr(value)

    def get(self) -> Expr:
        """Return the expression."""
        return self._scopes[0].close()
