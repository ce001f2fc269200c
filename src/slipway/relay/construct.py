"""How users make leaves of a graph: `var`, and binding values to variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slipway.errors import TypeInferenceError, did_you_mean
from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr, Function, Var
from slipway.relay.op_registry import as_expr
from slipway.relay.types import IncompleteType, TensorType, Type
from slipway.relay.visit import free_vars, substitute
from slipway.runtime.graph.input_values import converted


def var(
    name_hint: str, type_annotation: Type | None = None, shape: Any = None, dtype: str = "float32"
) -> Var:
    """Return a new variable.

    Give its type, or its shape (and dtype); without either the type must follow from use.
    """
    if type_annotation is not None and shape is not None:
        raise TypeInferenceError(
            f"relay.var({name_hint!r}): give type_annotation or shape, not both"
        )
    if isinstance(type_annotation, IncompleteType):
        type_annotation = None
    if isinstance(type_annotation, str):  # relay.var("x", "float32"): a scalar
        shape, dtype, type_annotation = (), type_annotation, None
    if isinstance(type_annotation, (tuple, list)):
        shape, type_annotation = type_annotation, None
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    return Var(name_hint, type_annotation)


def const(value: Any, dtype: str | None = None) -> Constant:
    """Return a Constant.

    Without `dtype`, whole numbers are int32 and others float32, Python's and NumPy's alike: arrays
    of NumPy's default dtypes are of these too.  An `NDArray` keeps its dtype.
    """
    if dtype is None and isinstance(value, np.ndarray | np.generic):
        dtype = {"float64": "float32", "int64": "int32"}.get(value.dtype.name)
        if dtype == "int32" and value.size:
            limits = np.iinfo(np.int32)
            if value.min() < limits.min or value.max() > limits.max:
                raise TypeInferenceError(
                    f"relay.const: an int64 array with {value.min()} to {value.max()} does not fit "
                    'int32, which is the default: give dtype="int64"'
                )
    return op_registry.const(value, dtype)


def bind(function: Expr, values: Mapping[Any, Any]) -> Any:
    """Return `function` with some parameters (by name or Var) replaced by values or expressions.

    An expression that is no Function has its free variables replaced.  Variables that a function's
    values bring with them become parameters of it, after its own.

    Raises TypeInferenceError when a value does not have its parameter's type.  Names that are no
    parameter are left out: a parameter file may hold more than the graph uses.
    """
    if not isinstance(function, Expr):
        raise TypeInferenceError(
            f"relay.bind takes an expression or a Function, not a {type(function).__name__}"
        )
    if not isinstance(values, Mapping):
        raise TypeInferenceError(
            f"relay.bind takes a table of values, {{'x': array}}, not a {type(values).__name__}"
        )
    own = list(function.params) if isinstance(function, Function) else free_vars(function)
    named = {p.name: p for p in own}
    names = [p.name for p in own]
    table: dict[Var, Expr] = {}
    for key, value in values.items():
        if isinstance(key, str) and names.count(key) > 1:
            raise TypeInferenceError(
                f"{names.count(key)} parameters are called {key!r}, so that the name does not tell "
                "which is meant: give them names of their own, or bind the Var itself"
            )
        target = named.get(key) if isinstance(key, str) else key
        if target is None:
            continue
        if not isinstance(target, Var):
            raise TypeInferenceError(
                f"relay.bind replaces variables, and {target!r} is a {type(target).__name__}: give "
                "names, or what relay.var returned"
            )
        bound = value if isinstance(value, Expr) else _as_constant(_fitting(target, value))
        if target.type is not None and bound.type != target.type:
            raise TypeInferenceError(
                f"parameter {target.name!r} is {target.type}, but the value given is {bound.type}"
            )
        table[target] = bound
    if not table:
        return function
    if not isinstance(function, Function):
        return substitute(function, table)
    kept = [p for p in own if p not in table]
    body = substitute(function.body, table)
    before = {*own, *free_vars(function)}
    brought = [v for v in free_vars(body) if v not in before]
    return Function((*kept, *brought), body, None, function.attrs)


def distinct_names(function: Function) -> Function:
    """Return `function` with parameters of one name told apart: x and x become x and x_1.

    The text of a function shows them so.  Executors know inputs by name.
    """
    names = [p.name for p in function.params]
    if len(set(names)) == len(names):
        return function
    taken, seen = set(names), set()
    table: dict[Var, Expr] = {}
    for param in function.params:
        name, number = param.name, 0
        while name in seen or (number and name in taken):
            number += 1
            name = f"{param.name}_{number}"
        seen.add(name)
        if number:
            table[param] = Var(name, param.type)
    params = tuple(table.get(p, p) for p in function.params)
    return Function(params, substitute(function.body, table), None, function.attrs)  # type: ignore[arg-type]


def _fitting(target: Var, value: Any) -> Any:
    """Return an array of NumPy's default dtypes as the parameter's, with one warning.

    Numbers of Python's, which have no dtype, need none.
    """
    is_array = hasattr(value, "dtype")
    value = value if is_array else np.asarray(value)
    found, wanted = str(value.dtype), getattr(target.type, "dtype", "")
    if found not in ("float64", "int64") or wanted in ("", found):
        return value
    return converted(f"parameter {target.name!r}", value, wanted, warn=is_array)


def _as_constant(value: Any) -> Constant:
    made = as_expr(value.numpy() if hasattr(value, "numpy") else np.asarray(value))
    assert isinstance(made, Constant)
    return made


def parameter(function: Function, name: str) -> Var:
    """Return the parameter called `name`.  Raises KeyError with the known names."""
    for p in function.params:
        if p.name == name:
            return p
    names = [p.name for p in function.params]
    raise KeyError(
        f"the function has no input {name!r}; it has {', '.join(names)}.{did_you_mean(name, names)}"
    )
