"""The reference interpreter: runs a relay graph with the operators' NumPy references.

Slow and exact; the oracle for importers, graph passes and generated code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import ExecutionError, did_you_mean
from slipway.ir.deep import Steps, run
from slipway.ir.expr import Var as VarNode
from slipway.ir.function import IRModule
from slipway.ir.visit import post_order_by
from slipway.relay import op_registry
from slipway.relay.construct import distinct_names
from slipway.relay.dims import at, line_of
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from slipway.relay.narrowed import attrs_with_sizes, narrowed
from slipway.relay.types import SymbolDim, TensorType, TupleType, Type
from slipway.relay.visit import evaluated_before

Value = Any  # an array, a tuple of Values, or a Function


def interpret(
    program: IRModule | Expr,
    *args: Any,
    params: Mapping[str, Any] | None = None,
    **inputs: Any,
) -> Any:
    """Run `main` of a module (or a function, or an expression) on NumPy arrays.

    Inputs are given in order or by name, `params` by name; the result is an array or a tuple of
    arrays.  Raises ExecutionError for a missing, unknown or wrongly typed input.
    """
    module = program if isinstance(program, IRModule) else None
    function: Any = program["main"] if isinstance(program, IRModule) else program
    if not isinstance(function, Function):
        function = function.as_function()
    values = _bind(function, args, {**(params or {}), **inputs}, strict=set(inputs))
    sizes = _sizes(function, values)
    if sizes:
        function = narrowed(function, sizes)
    return _Interpreter(module).run(function, values)


def _bind(
    function: Function, args: Sequence[Any], named: Mapping[str, Any], strict: set[str]
) -> list[Any]:
    function = distinct_names(function)
    names = [p.name for p in function.params]
    unknown = sorted(strict - set(names))
    if unknown:
        raise ExecutionError(
            f"there is no input {unknown[0]!r}; the inputs are {', '.join(names)}."
            f"{did_you_mean(unknown[0], names)}"
        )
    if len(args) > len(names):
        raise ExecutionError(f"got {len(args)} inputs, but there are {len(names)}")
    given = dict(zip(names, args, strict=False))
    given.update((n, v) for n, v in named.items() if n in names)
    values = []
    for p in function.params:
        if p.name not in given:
            raise ExecutionError(f"the input {p.name!r} is missing")
        values.append(_value(p.name, given[p.name], p.type))
    return values


def _value(name: str, value: Any, type_: Type | None) -> Value:
    """Return an input as its type has it: an array, or a tuple of such."""
    if isinstance(type_, TupleType):
        if not isinstance(value, (tuple, list)) or len(value) != len(type_.fields):
            raise ExecutionError(f"the input {name!r} must be a tuple, {type_}")
        pairs = zip(value, type_.fields, strict=True)
        return tuple(_value(f"{name}[{i}]", v, t) for i, (v, t) in enumerate(pairs))
    dtype = getattr(type_, "dtype", None) if isinstance(value, (bool, int, float)) else None
    if dtype and isinstance(value, float) and not dtypes.is_float(dtype):
        dtype = None  # 1.5 is no integer
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value, dtype)
    if isinstance(type_, TensorType):
        found = TensorType(array.shape, array.dtype.name)
        if not type_.takes(found):
            raise ExecutionError(f"the input {name!r} must be {type_}, got {found}")
    return array


def _sizes(function: Function, values: Sequence[Any]) -> dict[VarNode, VarNode | int]:
    """Return the open sizes that inputs have as an axis, or some times as one.

    Raises ExecutionError for a size out of its range, and for inputs that disagree about one.
    """
    shaped: list[tuple[str, Sequence[Any], tuple[int, ...]]] = [
        (p.name, p.type.shape, np.shape(value))
        for p, value in zip(function.params, values, strict=True)
        if isinstance(p.type, TensorType)
    ]
    axes = [
        (name, shape, found, dim, extent)
        for name, shape, found in shaped
        for dim, extent in zip(shape, found, strict=True)
        if isinstance(dim, SymbolDim)
    ]
    sizes: dict[Any, int] = {}
    for name, shape, found, dim, extent in axes:
        line = line_of(dim)
        if line is None:
            continue
        variable = line.variable
        size = sizes.setdefault(variable, line.size(extent))
        bounds = SymbolDim(variable)
        if not bounds.low <= size or (bounds.high is not None and size > bounds.high):
            upper = "" if bounds.high is None else f" to {bounds.high}"
            raise ExecutionError(
                f"the input {name!r} has shape {_text(shape)}, got {_text(found)}: "
                f"{variable.name} is {bounds.low}{upper}"
            )
    for name, shape, found, dim, extent in axes:
        if sizes.keys() >= set(dim.variables) and at(dim, sizes) != extent:
            known = ", ".join(f"{v.name} = {sizes[v]}" for v in dim.variables)
            raise ExecutionError(
                f"the input {name!r} has shape {_text(shape)}, got {_text(found)}: the axis {dim} "
                f"has {at(dim, sizes)} elements with {known}, as another axis tells"
            )
    return dict(sizes)


def _text(shape: Sequence[Any]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def evaluate_call(
    call: Call, arguments: Sequence[Value], sizes: Mapping[VarNode, int] | None = None
) -> Value:
    """Run the reference of one operator call on already computed arguments.

    `sizes` are those that values have told so far.
    """
    definition = op_registry.get(call.op.name)
    attrs = attrs_with_sizes(call.attrs, sizes) if sizes else call.attrs
    result = definition.evaluate(attrs, *arguments)
    return tuple(result) if isinstance(result, (tuple, list)) else np.asarray(result)


class _Interpreter:
    def __init__(self, module: IRModule | None) -> None:
        self.module = module
        self.told: dict[VarNode, int] = {}

    def run(self, function: Function, values: Sequence[Value]) -> Value:
        environment = {id(p): v for p, v in zip(function.params, values, strict=True)}
        return run(self.evaluate(function.body, environment))

    def evaluate(self, root: Expr, environment: dict[int, Value]) -> Steps[Value]:
        """Evaluate `root`; Lets and Ifs are entered only through their own evaluation."""
        done = dict(environment)
        for expr in post_order_by([root], evaluated_before, known=done):
            if isinstance(expr, (Let, If)) or (
                isinstance(expr, Call) and not isinstance(expr.op, Op)
            ):
                done[id(expr)] = yield self._nested(expr, done)
            else:
                done[id(expr)] = self._one(expr, done)
        return done[id(root)]

    def _one(self, expr: Expr, done: dict[int, Value]) -> Value:
        match expr:
            case Constant():
                return expr.array
            case Function() | Op():
                return _Closure(expr, done) if isinstance(expr, Function) else expr
            case Tuple():
                return tuple(done[id(f)] for f in expr.fields)
            case TupleGetItem():
                return done[id(expr.tuple_value)][expr.index]
            case Call():
                arguments = [done[id(a)] for a in expr.args]
                if op_registry.is_call_of(expr, "sized") and isinstance(expr.attrs.size, SymbolDim):
                    self.told[expr.attrs.size.variables[0]] = int(np.reshape(arguments[1], ()))
                return evaluate_call(expr, arguments, self.told)
            case Var():
                raise ExecutionError(f"the variable {expr.name!r} has no value")
            case _:
                raise TypeError(f"cannot evaluate a {type(expr).__name__}")

    def _nested(self, expr: Let | If | Call, done: dict[int, Value]) -> Steps[Value]:
        """Evaluate what holds expressions that are not evaluated before it."""
        if isinstance(expr, Call):
            return (yield self._call(expr, [done[id(a)] for a in expr.args], done))
        if isinstance(expr, If):
            branch = expr.true_branch if bool(done[id(expr.cond)]) else expr.false_branch
            return (yield self.evaluate(branch, done))
        inner: Expr = expr
        scope = dict(done)
        while isinstance(inner, Let):
            scope[id(inner.var)] = yield self.evaluate(inner.value, scope)
            inner = inner.body
        return (yield self.evaluate(inner, scope))

    def _call(self, call: Call, arguments: list[Value], done: dict[int, Value]) -> Steps[Value]:
        target: Any = call.op
        if isinstance(target, GlobalVar):
            if self.module is None:
                raise ExecutionError(f"@{target.name} is called, but there is no module")
            target = self.module[target.name]
            done = {}  # it sees nothing of its caller, whose values are its own where it recurs
        if not isinstance(target, Function):
            target = done[id(target)]
        if isinstance(target, _Closure):
            scope = {**target.scope}
            scope.update((id(p), v) for p, v in zip(target.function.params, arguments, strict=True))
            return (yield self.evaluate(target.function.body, scope))
        scope = {**done, **{id(p): v for p, v in zip(target.params, arguments, strict=True)}}
        return (yield self.evaluate(target.body, scope))


class _Closure:
    """A function value with the variables it sees."""

    def __init__(self, function: Function, scope: dict[int, Value]) -> None:
        self.function = function
        self.scope = scope
