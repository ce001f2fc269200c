"""Operators of graphs as tensor expressions: what an operator makes of te tensors.

``over_tensors(relay.scatter)(data, indices, updates)`` are the stages that the operators behind
it compute, for a schedule of the caller's own.  So a definition serves both languages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from slipway.errors import InvalidShapeError
from slipway.ir import builder
from slipway.relay import op_registry
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
)
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, TupleType, flatten
from slipway.relay.visit import post_order
from slipway.target import Target

MOST_CONSTANTS = 4096


def over_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, which takes and gives relay expressions, over te tensors.

    Raises InvalidShapeError for tensors with symbolic shapes.
    """

    @functools.wraps(function)
    def over(*args: Any, **kwargs: Any) -> Any:
        found: dict[int, Var] = {}
        kept: dict[int, Any] = {}

        def as_graph(value: Any) -> Any:
            if isinstance(value, te().Tensor):
                if id(value) not in found:
                    found[id(value)] = Var(value.op.name, _type_of(value))
                    kept[id(value)] = value
                return found[id(value)]
            if isinstance(value, (list, tuple)):
                return type(value)(as_graph(v) for v in value)
            return value

        made = function(*map(as_graph, args), **{k: as_graph(v) for k, v in kwargs.items()})
        body = made.astuple() if isinstance(made, TupleWrapper) else made
        values = {id(found[key]): [kept[key]] for key in found}
        results = evaluate(body, values)
        return results if isinstance(body.checked_type, TupleType) else results[0]

    return over


def _type_of(tensor: Any) -> TensorType:
    shape = []
    for extent in tensor.shape:
        value = getattr(extent, "value", extent)
        if not isinstance(value, int):
            raise InvalidShapeError(
                f"{tensor.op.name} has the symbolic extent {extent}: this expression needs numbers"
            )
        shape.append(value)
    return TensorType(tuple(shape), tensor.dtype)


def evaluate(
    body: Expr,
    values: dict[int, list[Any]],
    own: Mapping[str, Callable[..., list[Any]]] | None = None,
) -> list[Any]:
    """Return the te tensors of an expression; `values` has those of its variables, by id.

    `own` computes operators, by name, otherwise than they do.
    """
    for expr in post_order(body, into_functions=False):
        match expr:
            case Var() | Op() | Function():
                pass
            case Constant():
                values[id(expr)] = [_constant(expr.array)]
            case Tuple():
                values[id(expr)] = [t for f in expr.fields for t in values[id(f)]]
            case TupleGetItem():
                values[id(expr)] = [values[id(expr.tuple_value)][expr.index]]
            case Call() if isinstance(expr.op, Op):
                compute = (own or {}).get(expr.op.name)
                compute = compute or op_registry.get(expr.op.name).compute_function
                assert compute is not None
                tensors = [t for argument in expr.args for t in values[id(argument)]]
                out_types = flatten(expr.checked_type)
                values[id(expr)] = list(compute(expr.attrs, tensors, out_types))
            case Call() if isinstance(expr.op, Function):
                inside = {
                    id(param): values[id(argument)]
                    for param, argument in zip(expr.op.params, expr.args, strict=True)
                }
                values[id(expr)] = evaluate(expr.op.body, inside, own)
            case _:
                raise InvalidShapeError(f"a {type(expr).__name__} is no tensor expression")
    return values[id(body)]


def _constant(array: np.ndarray[Any, Any]) -> Any:
    """Return numbers that are known now: a formula where one gives them, else stored one by one."""
    m, dtype = te(), array.dtype.name
    steps = _steps(array)
    if steps is not None:
        first = array[(0,) * array.ndim].item() if array.size else 0

        def element(*positions: Any) -> Any:
            total: Any = m.const(first, dtype)
            for position, step in zip(positions, steps, strict=True):
                if step:
                    total = total + position.astype(dtype) * m.const(step, dtype)
            return total

        return m.compute(array.shape, element, name="constant", tag="broadcast")
    if array.size > MOST_CONSTANTS:
        raise InvalidShapeError(
            f"this expression has a table of {array.size} constants, more than {MOST_CONSTANTS}: "
            "compile it as a graph, with relay.build"
        )

    def fill(ins: Any, outs: Any) -> Any:
        ib = builder.create()
        out = ib.buffer_ptr(outs[0])
        target = Target.current(allow_none=True)
        if target is not None and "gpu" in target.keys:  # whose kernels have threads: one fills it
            ib.scope_attr(m.thread_axis("blockIdx.x"), "thread_extent", 1)
        for position in np.ndindex(*array.shape):
            out[tuple(position)] = m.const(array[position].item(), dtype)
        return ib.get()

    return m.extern([array.shape], [], fill, dtype=[dtype], name="constant")


def _steps(array: np.ndarray[Any, Any]) -> list[Any] | None:
    """Return by how much elements grow along each axis, where that is one number for each."""
    if array.dtype.kind not in "iuf" or array.size == 0:
        same = array.size > 0 and bool((array == array.flat[0]).all())
        return [0] * array.ndim if same else None
    origin = array[(0,) * array.ndim]
    if (array == origin).all():
        return [0] * array.ndim
    if array.dtype.kind == "f":
        return None
    steps, made = [], np.full(array.shape, int(origin), object)
    for axis, extent in enumerate(array.shape):
        position = [0] * array.ndim
        position[axis] = min(1, extent - 1)
        step = int(array[tuple(position)]) - int(origin)
        shape = [1] * array.ndim
        shape[axis] = extent
        made = made + (np.arange(extent).astype(object) * step).reshape(shape)
        steps.append(step)
    return steps if (made == array).all() else None
