"""Walks over graphs as classes: a method for each kind of expression, to override.

`ExprFunctor` dispatches, `ExprVisitor` walks into everything, `ExprMutator` rebuilds what changed.
An expression used twice is visited once.  A class overrides what it is interested in and calls
``super()`` or `visit` for what lies inside::

    class Adds(relay.ExprVisitor):
        def visit_call(self, call):
            super().visit_call(call)
            self.count += call.op == relay.op.get("add")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.ir.depth import levels
from slipway.ir.function import GlobalVar
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
)
from slipway.relay.visit import post_order

_METHODS: dict[type, str] = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    GlobalVar: "visit_global_var",
    Op: "visit_op",
    Constant: "visit_constant",
}


class ExprFunctor:
    """Calls the method for the kind of expression; results are kept in `memo_map`."""

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}
        self._is_inside = False

    def visit(self, expr: Any) -> Any:
        """Visit `expr`, or return what its first visit gave."""
        if isinstance(expr, TupleWrapper):
            expr = expr.astuple()
        memo = self.__dict__.setdefault("memo_map", {})  # a subclass may not call __init__
        if expr in memo:
            return memo[expr]
        method = _METHODS.get(type(expr))
        if method is None:
            raise TypeError(f"{type(expr).__name__} is not a relay expression")
        function: Callable[[Any], Any] = getattr(self, method)
        if self.__dict__.get("_is_inside"):
            memo[expr] = function(expr)
            return memo[expr]
        self._is_inside = True
        try:
            with levels(len(post_order(expr)) if isinstance(expr, Expr) else 0):
                memo[expr] = function(expr)
        finally:
            self._is_inside = False
        return memo[expr]

    def _undefined(self, expr: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} does not say what to do with a {type(expr).__name__}"
        )

    def visit_function(self, fn: Function) -> Any:
        """Visit a function."""
        return self._undefined(fn)

    def visit_call(self, call: Call) -> Any:
        """Visit a call."""
        return self._undefined(call)

    def visit_let(self, let: Let) -> Any:
        """Visit a Let."""
        return self._undefined(let)

    def visit_var(self, var: Var) -> Any:
        """Visit a variable."""
        return self._undefined(var)

    def visit_if(self, ite: If) -> Any:
        """Visit an If."""
        return self._undefined(ite)

    def visit_tuple(self, tup: Tuple) -> Any:
        """Visit a tuple."""
        return self._undefined(tup)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """Visit the reading of a tuple's field."""
        return self._undefined(op)

    def visit_global_var(self, gvar: GlobalVar) -> Any:
        """Visit the name of a module's function."""
        return self._undefined(gvar)

    def visit_op(self, op: Op) -> Any:
        """Visit an operator."""
        return self._undefined(op)

    def visit_constant(self, const: Constant) -> Any:
        """Visit a constant."""
        return self._undefined(const)


class ExprVisitor(ExprFunctor):
    """Walks into every expression and gives nothing back."""

    def visit_function(self, fn: Function) -> Any:
        """Visit parameters and body."""
        for param in fn.params:
            self.visit(param)
        self.visit(fn.body)

    def visit_call(self, call: Call) -> Any:
        """Visit what is called and the arguments."""
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_let(self, let: Let) -> Any:
        """Visit variable, value and body."""
        self.visit(let.var)
        self.visit(let.value)
        self.visit(let.body)

    def visit_if(self, ite: If) -> Any:
        """Visit condition and branches."""
        self.visit(ite.cond)
        self.visit(ite.true_branch)
        self.visit(ite.false_branch)

    def visit_tuple(self, tup: Tuple) -> Any:
        """Visit the fields."""
        for field in tup.fields:
            self.visit(field)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """Visit the tuple."""
        self.visit(op.tuple_value)

    def visit_var(self, var: Var) -> Any:
        """Do nothing."""

    def visit_global_var(self, gvar: GlobalVar) -> Any:
        """Do nothing."""

    def visit_op(self, op: Op) -> Any:
        """Do nothing."""

    def visit_constant(self, const: Constant) -> Any:
        """Do nothing."""


class ExprMutator(ExprFunctor):
    """Gives an expression of what its parts became; the same object where nothing changed."""

    def visit_function(self, fn: Function) -> Any:
        """Rebuild of new parameters and body."""
        params = tuple(self.visit(p) for p in fn.params)
        body = self.visit(fn.body)
        same = all(a is b for a, b in zip(params, fn.params, strict=True))
        if same and body is fn.body:
            return fn
        return Function(params, body, None, fn.attrs)

    def visit_call(self, call: Call) -> Any:
        """Rebuild of a new callee and arguments."""
        op = self.visit(call.op)
        args = tuple(self.visit(a) for a in call.args)
        if op is call.op and all(a is b for a, b in zip(args, call.args, strict=True)):
            return call
        return Call(op, args, call.attrs, call.span)

    def visit_let(self, let: Let) -> Any:
        """Rebuild of new parts."""
        var, value = self.visit(let.var), self.visit(let.value)
        return let.replace(var=var, value=value, body=self.visit(let.body))

    def visit_if(self, ite: If) -> Any:
        """Rebuild of new parts."""
        return ite.replace(
            cond=self.visit(ite.cond),
            true_branch=self.visit(ite.true_branch),
            false_branch=self.visit(ite.false_branch),
        )

    def visit_tuple(self, tup: Tuple) -> Any:
        """Rebuild of new fields."""
        fields = tuple(self.visit(f) for f in tup.fields)
        same = all(a is b for a, b in zip(fields, tup.fields, strict=True))
        return tup if same else Tuple(fields)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """Rebuild of a new tuple."""
        value = self.visit(op.tuple_value)
        return op if value is op.tuple_value else TupleGetItem(value, op.index)

    def visit_var(self, var: Var) -> Any:
        """Keep it."""
        return var

    def visit_global_var(self, gvar: GlobalVar) -> Any:
        """Keep it."""
        return gvar

    def visit_op(self, op: Op) -> Any:
        """Keep it."""
        return op

    def visit_constant(self, const: Constant) -> Any:
        """Keep it."""
        return const


# Classic Relay has walks of their own for deep graphs; these serve any depth.
MixedModeVisitor, MixedModeMutator = ExprVisitor, ExprMutator
