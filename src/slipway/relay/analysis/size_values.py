"""What is known of integers that a model computes from shapes, where sizes are open.

``Shape`` of a tensor with open dimensions is a vector that the model computes when it runs.  What
its elements are is known while the file is read: numbers and formulas of the sizes.  A `Reshape` or
`Expand` to such a vector is one to these formulas, and what comes out as a number everywhere is a
constant again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from slipway.errors import TypeInferenceError
from slipway.ir import ops
from slipway.ir.visit import post_order_by
from slipway.relay.dims import ANY, SymbolDim, dim_of, is_open
from slipway.relay.expr import Call, Constant, Expr, Op, Tuple, TupleGetItem
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.ops.build import call
from slipway.relay.types import TensorType
from slipway.relay.visit import children

MOST = 64  # elements of a tensor that is taken for one of sizes
Known = np.ndarray[Any, Any]  # of objects: ints, bools, dimensions


class SizeValues:
    """The elements of small integer tensors, as far as they are numbers or formulas of sizes."""

    def __init__(self) -> None:
        self.known: dict[int, Known | None] = {}
        self.keep: list[Expr] = []  # ids stay valid while the objects live

    def shape(self, data: Expr) -> Expr:
        """Return the shape of a tensor as the int64 vector that the compiled model computes."""
        if ANY in data.tensor_type.shape:
            raise TypeInferenceError(
                "the size of an open dimension is needed here: give the input a fixed shape, or "
                'the dimension a name and a range, as relay.Dim("n", 1, 8)'
            )
        return self.enter(call("shape_of", data, "int64"), _objects(data.tensor_type.shape))

    def count(self, data: Expr) -> Expr:
        """Return the number of elements of a tensor as an int64 scalar."""
        made: Expr = call("prod", self.shape(data))
        return made

    def enter(self, made: Expr, elements: Known) -> Expr:
        """Note the elements of an expression, and return it."""
        self.known[id(made)] = elements
        self.keep.append(made)
        return made

    def of(self, expr: Any) -> Known | None:
        """Return the elements of a tensor; None where one depends on data."""
        if not is_small(expr):
            return None
        for each in post_order_by([expr], _below, known=self.known):
            self.enter(each, _elements(each, self.known))
        found = self.known[id(expr)]
        if found is not None and any(isinstance(v, _Part) for v in found.flat):
            return None
        return found

    def settled(self, expr: Expr) -> Expr:
        """Return the constant that an expression is where all its elements are numbers."""
        if isinstance(expr, Constant) or not is_small(expr):
            return expr
        found = self.of(expr)
        if found is None or any(is_open(v) for v in found.flat):
            return expr
        made: Expr = const(found.astype(expr.tensor_type.dtype))
        return made


def _objects(values: Sequence[Any]) -> Known:
    made = np.empty(len(values), object)
    made[:] = values
    return made


def is_small(expr: Any) -> bool:
    """Return whether an expression is a tensor that may be one of sizes."""
    type_ = getattr(expr, "type", None)
    return (
        isinstance(type_, TensorType)
        and not any(map(is_open, type_.shape))
        and type_.size <= MOST
        and (type_.dtype.startswith(("int", "uint", "float")) or type_.dtype == "bool")
    )


def _below(expr: Expr) -> Sequence[Expr]:
    """Return what the elements of an expression may depend on, as far as it is of sizes."""
    if isinstance(expr, Tuple | TupleGetItem):
        return children(expr)
    if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _RULES:
        return [a for a in expr.args if isinstance(a, Tuple) or is_small(a)]
    return ()


def _elements(expr: Expr, known: dict[int, Any]) -> Any:
    if isinstance(expr, Constant):
        return expr.array.astype(object)
    if is_call_of(expr, "shape_of"):
        shape = expr.args[0].tensor_type.shape
        return None if ANY in shape else _objects(shape)
    if isinstance(expr, Tuple):
        parts = [known.get(id(f)) for f in expr.fields]
        return None if any(p is None for p in parts) else parts
    if isinstance(expr, TupleGetItem):
        whole = known.get(id(expr.tuple_value))
        return None if whole is None else whole[expr.index]
    if not (isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _RULES):
        return None
    given = [known.get(id(a)) for a in expr.args]
    if any(g is None for g in given):
        return None
    try:
        found = _RULES[expr.op.name](expr, *given)
    except (TypeInferenceError, TypeError, ValueError, IndexError, ZeroDivisionError):
        return None  # it is computed when the model runs
    if not isinstance(expr.type, TensorType):
        return found
    found = np.asarray(found, object)
    return found if found.shape == expr.type.shape else None


def _of_elements(function: Callable[..., Any]) -> Callable[..., Known]:
    each = np.frompyfunc(function, function.__code__.co_argcount, 1)
    return lambda call, *given: each(*given)


def _whole(value: Any) -> Any:
    """Return a number as an int; halves of sizes are none."""
    if is_open(value):
        return value
    if value != int(value):
        raise ValueError
    return int(value)


def _quotient(a: Any, b: Any) -> Any:
    """Division of integers as relay's: towards zero, which is down for sizes."""
    a, b = _whole(a), _whole(b)
    if is_open(a) or is_open(b):
        if (a < 0) or (b <= 0):
            raise ValueError
        return a // b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


class _Part:
    """A size over a number: what is between a quotient of reals and where it becomes whole."""

    def __init__(self, top: Any, by: int) -> None:
        self.top, self.by = top, by

    def _undecided(self, *other: object) -> NoReturn:
        raise TypeError

    __eq__ = __bool__ = _undecided
    __hash__ = object.__hash__

    def floor(self) -> Any:
        return self.top // self.by

    def ceil(self) -> Any:
        return (self.top + self.by - 1) // self.by


def _real_quotient(a: Any, b: Any) -> Any:
    if not is_open(a) and not is_open(b) and not isinstance(a, _Part):
        return a / b
    by = _whole(b)
    if is_open(by) or by <= 0:
        raise ValueError
    if isinstance(a, _Part):
        a, by = a.top, a.by * by
    try:
        if (a % by) == 0:
            return a // by
    except TypeInferenceError:
        pass  # it depends on the size whether it is whole
    return _Part(a, by)


def _of_parts(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """A sum, difference or product with parts of sizes."""
    (a, da), (b, db) = ((v.top, v.by) if isinstance(v, _Part) else (_whole(v), 1) for v in (a, b))
    if function is operator.mul:
        return _real_quotient(a * b, da * db)
    if function not in (operator.add, operator.sub):
        raise ValueError
    return _real_quotient(function(a * db, b * da), da * db)


def _rounded(how: Callable[[_Part], Any], plain: Callable[[Any], Any]) -> Any:
    def whole(a: Any) -> Any:
        if isinstance(a, _Part):
            return how(a)
        return a if is_open(a) else float(plain(a))

    return _of_elements(whole)


def _truncated(value: Any) -> Any:
    if isinstance(value, _Part):
        if value.top < 0:
            raise ValueError
        return value.floor()
    return value if is_open(value) else int(value)


def _divided(call: Call, a: Any, b: Any) -> Known:
    real = call.tensor_type.dtype.startswith("float")
    return np.frompyfunc(_real_quotient if real else _quotient, 2, 1)(a, b)  # type: ignore[no-any-return]


def _formula(value: Any) -> Any:
    return value.formula if isinstance(value, SymbolDim) else ops.as_expr(_whole(value), "int32")


def _choice(
    make: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    def choose(a: Any, b: Any) -> Any:
        if not is_open(a) and not is_open(b):
            return plain(a, b)
        return dim_of(make(_formula(a), _formula(b)))

    return choose


def _numbers(function: Callable[[Any, Any], Any]) -> Any:
    """A rule of two arguments for sizes, and for reals that are whole numbers."""

    def compute(a: Any, b: Any) -> Any:
        if isinstance(a, _Part) or isinstance(b, _Part):
            return _of_parts(function, a, b)
        if is_open(a) or is_open(b):
            return function(_whole(a), _whole(b))
        return function(a, b)

    return _of_elements(compute)


def _equal(a: Any, b: Any) -> bool:
    if not is_open(a) and not is_open(b):
        return bool(a == b)
    if a is b:
        return True
    if a < b or a > b:
        return False
    raise ValueError


def _take(call: Call, data: Known, indices: Known) -> Known:
    return np.take(data, indices.astype(np.int64), call.attrs.axis)


def _slice(call: Call, data: Known) -> Known:
    attrs, index = call.attrs, [slice(None)] * data.ndim
    axes = attrs.axes or range(len(attrs.begin))
    steps = attrs.strides or (1,) * len(attrs.begin)
    for axis, begin, end, step in zip(axes, attrs.begin, attrs.end, steps, strict=True):
        index[axis] = slice(begin, None if step < 0 and end < -data.shape[axis] else end, step)
    return data[tuple(index)]


def _cast(call: Call, data: Known) -> Known:
    dtype = call.tensor_type.dtype
    if dtype == "bool":
        return np.frompyfunc(lambda v: not _equal(v, 0), 1, 1)(data)  # type: ignore[no-any-return]
    if dtype.startswith("float"):
        return data
    return np.frompyfunc(_truncated, 1, 1)(data)  # type: ignore[no-any-return]


def _reduced(function: Any) -> Callable[[Call, Known], Any]:
    """A reduction by a function of two elements."""

    def reduce(call: Call, data: Known) -> Any:
        axes = call.attrs.axis
        axis = tuple(range(data.ndim)) if axis_is_all(axes) else tuple(axes)
        return function.reduce(data, axis=axis, keepdims=bool(call.attrs.keepdims))

    return reduce


def _extremes(make: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]) -> Any:
    return _reduced(np.frompyfunc(_choice(make, plain), 2, 1))


def axis_is_all(axes: Any) -> bool:
    """Return whether a reduction goes over all axes."""
    return axes is None or len(axes) == 0


def _reshape(call: Call, data: Known) -> Known:
    return data.reshape(call.tensor_type.shape)


MOVES: dict[str, Callable[..., Any]] = {  # of elements that stay what they are
    "take": _take, "strided_slice": _slice,
    "transpose": lambda call, data: np.transpose(data, call.attrs.axes or None),
    "reverse": lambda call, data: np.flip(data, call.attrs.axis),
    "reshape": _reshape, "squeeze": _reshape, "expand_dims": _reshape,
    "split": lambda call, data: np.split(data, call.attrs.indices, call.attrs.axis),
    "concatenate": lambda call, parts: np.concatenate(parts, call.attrs.axis),
    "stack": lambda call, parts: np.stack(parts, call.attrs.axis),
}  # fmt: skip
_RULES: dict[str, Callable[..., Any]] = {
    **MOVES, "cast": _cast, "prod": _reduced(np.multiply),
    "min": _extremes(ops.minimum, min), "max": _extremes(ops.maximum, max),
    "add": _numbers(operator.add), "subtract": _numbers(operator.sub),
    "multiply": _numbers(operator.mul), "divide": _divided, "floor_divide": _divided,
    "floor_mod": _numbers(operator.mod),
    "floor": _rounded(_Part.floor, np.floor), "ceil": _rounded(_Part.ceil, np.ceil),
    "negative": _of_elements(lambda a: -a),
    "minimum": _of_elements(_choice(ops.minimum, min)),
    "maximum": _of_elements(_choice(ops.maximum, max)),
    "equal": _of_elements(_equal), "not_equal": _of_elements(lambda a, b: not _equal(a, b)),
    "less": _of_elements(lambda a, b: bool(a < b)),
    "less_equal": _of_elements(lambda a, b: bool(a <= b)),
    "greater": _of_elements(lambda a, b: bool(a > b)),
    "greater_equal": _of_elements(lambda a, b: bool(a >= b)),
    "logical_not": _of_elements(lambda a: not a),
    "logical_and": _of_elements(lambda a, b: bool(a and b)),
    "logical_or": _of_elements(lambda a, b: bool(a or b)),
    "where": _of_elements(lambda c, a, b: a if c else b),
}  # fmt: skip
