"""Operators whose sizes are tensors: ``relay.reshape(x, shape)`` of a shape that a run computes.

    @TILE.make
    @sizes_may_be_tensors("reps", result=lambda data, reps: ...)
    def tile(data, reps): ...

makes, where `reps` is an expression, a call of ``dyn.tile``, as classic Relay has it.  Its type has
open dimensions (`relay.Any()`), and its meaning is the decorated function for the values that the
sizes have: the reference computes so, and `transform.graph.dynamic_to_static` puts the static
operator in its place when the values are known.  There is no te expression of it.

`needs_sizes` does the same for compositions that read the shapes of their arguments
(``relay.zeros_like``), where such a shape is not known yet.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import TypeInferenceError
from slipway.ir.node import node
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Tuple, TupleWrapper, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import (
    DYN_OPS,
    Attrs,
    BadArgument,
    F,
    OpDefinition,
    OpPattern,
    as_expr,
)
from slipway.relay.types import ANY, TensorType, TupleType, Type, flatten, is_open

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

Result = Callable[..., Type]


@node
class DynAttrs(Attrs):
    """Which arguments of the function are expressions, in order, and the values of the others."""

    tensors: tuple[str, ...] = ()
    options: tuple[Any, ...] = ()  # name, value, name, value, ...


class DynDefinition(OpDefinition):
    """An operator whose result has a shape that values decide, or sizes that are not known yet."""

    function: Callable[..., Any]  # the static form
    sizes: tuple[str, ...] = ()
    scalars: frozenset[str] = frozenset()  # those of the sizes that are one number
    result: Result | None = None
    needs_shapes: bool = False  # of its arguments

    def is_ready(self, call: Call) -> bool:
        """Return whether only the values of the sizes, if those, are still to be found."""
        return not (self.needs_shapes and any(map(has_unknown, call.args)))

    def named(self, attrs: DynAttrs, args: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of the function by name."""
        options = dict(zip(attrs.options[::2], attrs.options[1::2], strict=True))
        return {**options, **dict(zip(attrs.tensors, args, strict=True))}

    def sizes_of(self, call: Call) -> dict[str, Expr]:
        """Return the arguments, as expressions, that the shape of the result follows from."""
        given = zip(call.attrs.tensors, call.args, strict=True)
        return {name: arg for name, arg in given if name in self.sizes}

    def with_sizes(self, call: Call, sizes: Mapping[str, Any]) -> Expr:
        """Return the expression of static operators for the values of its sizes.

        Raises TypeInferenceError for sizes that the operator cannot have.
        """
        return self._static(call.attrs, call.args, sizes)

    def _static(self, attrs: DynAttrs, args: Sequence[Expr], sizes: Mapping[str, Any]) -> Expr:
        values = {n: _plain(v, n in self.scalars) for n, v in sizes.items()}
        given = {**self.named(attrs, args), **values}
        listed = {n: list(v.fields) if isinstance(v, Tuple) else v for n, v in given.items()}
        try:
            made = self.function(**listed)
        except BadArgument as error:
            raise TypeInferenceError(f"{self.name}: {error}") from None
        return made.astuple() if isinstance(made, TupleWrapper) else made

    def infer(self, attrs: Any, types: Sequence[Type]) -> Type:
        """Return the result type, of which values decide the sizes."""
        if self.result is not None:
            named = self.named(attrs, types)
            return self.result(
                **{n: named.get(n) for n in inspect.signature(self.result).parameters}
            )
        variables = tuple(Var(n, t) for n, t in zip(attrs.tensors, types, strict=True))
        return self._static(attrs, tuple(map(_as_fields, variables)), {}).checked_type

    def evaluate(self, attrs: Any, *arrays: Any) -> Any:
        """Run the static form for the values of the sizes."""
        args = tuple(_constant(a) for a in arrays)
        sizes = {n: a for n, a in zip(attrs.tensors, arrays, strict=True) if n in self.sizes}
        return interpret(self._static(attrs, args, sizes))


def _as_fields(variable: Var) -> Expr:
    """Return a variable, one of a tuple as a tuple of variables."""
    if not isinstance(variable.type, TupleType):
        return variable
    return Tuple(tuple(Var(f"{variable.name}{i}", t) for i, t in enumerate(variable.type.fields)))


def _constant(value: Any) -> Expr:
    if isinstance(value, tuple):
        return Tuple(tuple(_constant(v) for v in value))
    return Constant(np.asarray(value))


def _plain(value: Any, one: bool = False) -> Any:
    """Return sizes, an array, as Python has them: numbers, or tuples of numbers, or of tuples.

    With `one` an array of one element is that number.
    """
    array = np.asarray(value)
    if array.dtype.kind == "f" and (array == np.floor(array)).all() and not one:
        array = array.astype(np.int64)  # as classic Relay takes sizes that are floats
    return (
        array.item() if array.ndim == 0 or (one and array.size == 1) else _as_tuples(array.tolist())
    )


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def sizes_may_be_tensors(
    *sizes: str,
    result: Result,
    tensors: Sequence[str] = ("data",),
    needs_shapes: bool = False,
) -> Callable[[F], F]:
    """Let the arguments `sizes` of an operator's function be expressions; a decorator.

    `result` gives the type from the types (or values) of those of the function's arguments that it
    names; `tensors` are the other arguments that are expressions.  Constants are taken for the
    numbers that they are.  With `needs_shapes` the function reads the shapes of the tensors, so
    that it waits where one is unknown, too.
    """

    def decorate(function: F) -> F:
        definition = _enter(function)
        definition.sizes, definition.result = sizes, result
        definition.needs_shapes = needs_shapes
        parameters = inspect.signature(function)
        definition.scalars = frozenset(
            n for n in sizes if parameters.parameters[n].annotation in ("int", "float")
        )

        @functools.wraps(function)
        def made(*args: Any, **kwargs: Any) -> Any:
            bound = dict(parameters.bind(*args, **kwargs).arguments)
            for name in sizes:
                if isinstance(bound.get(name), Constant):
                    bound[name] = _plain(bound[name].array, name in definition.scalars)
            waits = any(isinstance(bound.get(name), Expr | TupleWrapper) for name in sizes)
            if needs_shapes and not waits:
                waits = any(has_unknown(as_expr(bound[name])) for name in tensors if name in bound)
            if not waits:
                return function(**bound)
            given = {
                name: _as_size(value) if name in sizes else as_expr(value)
                for name, value in bound.items()
                if name in (*tensors, *sizes) and value is not None
            }
            return _call(definition, given, bound)

        return made  # type: ignore[return-value]

    return decorate


def needs_sizes(function: F) -> F:
    """Let a composition wait for the sizes of its arguments where one is open; a decorator."""
    definition = _enter(function)
    definition.needs_shapes = True
    parameters = inspect.signature(function)

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        bound = dict(parameters.bind(*args, **kwargs).arguments)
        given = {n: as_expr(v) for n, v in bound.items() if _holds_expressions(v)}
        if not any(map(has_unknown, given.values())):
            return function(**bound)
        return _call(definition, given, bound)

    return made  # type: ignore[return-value]


def _enter(function: Callable[..., Any]) -> DynDefinition:
    name = f"dyn.{function.__name__}"
    if name in DYN_OPS:
        raise ValueError(f"the operator {name!r} is registered twice")
    made = DynDefinition(name, ("args...",), DynAttrs, OpPattern.OPAQUE, 0.0,
                         (function.__doc__ or "").partition("\n")[0])  # fmt: skip
    made.function = function
    made.make_function = function
    DYN_OPS[name] = made
    return made


def _call(definition: DynDefinition, given: Mapping[str, Expr], bound: Mapping[str, Any]) -> Any:
    options = [part for n, v in bound.items() if n not in given for part in (n, _fixed(v))]
    call = Call(definition.op, tuple(given.values()), DynAttrs(tuple(given), tuple(options)),
                op_registry.current_span())  # fmt: skip
    known = call.type
    return TupleWrapper(call, len(known.fields)) if isinstance(known, TupleType) else call


def _fixed(value: Any) -> Any:
    """Return a value that a node may hold."""
    return tuple(map(_fixed, value)) if isinstance(value, list | tuple) else value


def _as_size(value: ExprLike) -> Expr:
    if isinstance(value, Expr | TupleWrapper):
        return as_expr(value)
    kind = np.asarray(value).dtype.kind
    return as_expr(np.asarray(value, "float32" if kind == "f" else "int64"))


def _holds_expressions(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_expressions, value))
    return isinstance(value, Expr | TupleWrapper)


def has_unknown(expr: Expr) -> bool:
    """Return whether the type of an expression has a dimension of which nothing is known."""
    known = expr.type
    if not isinstance(known, TensorType | TupleType):
        return False
    return any(extent is ANY for leaf in flatten(known) for extent in leaf.shape)


def definition_of(expr: Expr) -> DynDefinition | None:
    """Return the definition of an operator of sizes yet unknown that `expr` calls, or None."""
    found = op_registry.call_definition(expr)
    return found if isinstance(found, DynDefinition) else None


def of_rank(rank: int, dtype: str) -> TensorType:
    """Return a type of which only the number of axes is known."""
    return TensorType((ANY,) * rank, dtype)


def length_of(argument: str, sizes: Any) -> int:
    """Return how many numbers a vector of sizes has, which must be known.  Raises BadArgument."""
    if not isinstance(sizes, TensorType):
        return int(np.size(sizes))
    if sizes.rank != 1 or is_open(sizes.shape[0]):
        raise BadArgument(argument, f"must be a vector of known length, not {sizes}")
    return int(sizes.shape[0])


def unknown_along(data: TensorType, axes: Sequence[int], dtype: str | None = None) -> TensorType:
    """Return a type with the sizes along `axes` unknown."""
    positions = {axis % data.rank for axis in axes}
    shape = tuple(ANY if i in positions else d for i, d in enumerate(data.shape))
    return TensorType(shape, dtype or data.dtype)
