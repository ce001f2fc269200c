"""Elementwise functions; those of two tensors broadcast as NumPy's do.

Shapes are compared from the last dimension on: extents are equal, or one of them is 1.  Numbers may
stand for tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import math
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.tag import BROADCAST, ELEMWISE

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike, ShapeLike

Element = Callable[..., Any]


def _unary(name: str, function: Element) -> Callable[..., Tensor]:
    def apply(x: Tensor) -> Tensor:
        return compute(x.shape, lambda *i: function(x(*i)), name, ELEMWISE)  # type: ignore[no-any-return]

    apply.__name__ = name
    apply.__doc__ = f"Return {name} of every element."
    return apply


def _sign(x: PrimExpr) -> PrimExpr:
    zero = ops.const(0, x.dtype)
    up, down = ops.cast(ops.greater(x, zero), x.dtype), ops.cast(ops.less(x, zero), x.dtype)
    return ops.sub(up, down)


abs = _unary("abs", math.abs)
acos = _unary("acos", math.acos)
acosh = _unary("acosh", math.acosh)
asin = _unary("asin", math.asin)
asinh = _unary("asinh", math.asinh)
atan = _unary("atan", math.atan)
atanh = _unary("atanh", math.atanh)
bitwise_not = _unary("bitwise_not", ops.bitwise_not)
ceil = _unary("ceil", math.ceil)
cos = _unary("cos", math.cos)
cosh = _unary("cosh", math.cosh)
erf = _unary("erf", math.erf)
exp = _unary("exp", math.exp)
fast_erf = _unary("fast_erf", math.erf)
fast_exp = _unary("fast_exp", math.exp)
fast_tanh = _unary("fast_tanh", math.tanh)
floor = _unary("floor", math.floor)
identity = _unary("identity", lambda x: x)
isfinite = _unary("isfinite", math.isfinite)
isinf = _unary("isinf", math.isinf)
isnan = _unary("isnan", math.isnan)
log = _unary("log", math.log)
log10 = _unary("log10", math.log10)
log2 = _unary("log2", math.log2)
logical_not = _unary("logical_not", lambda x: ops.logical_not(_truth(x)))
negative = _unary("negative", ops.neg)
round = _unary("round", math.round)
rsqrt = _unary("rsqrt", math.rsqrt)
sigmoid = _unary("sigmoid", math.sigmoid)
sign = _unary("sign", _sign)
sin = _unary("sin", math.sin)
sinh = _unary("sinh", math.sinh)
sqrt = _unary("sqrt", math.sqrt)
tan = _unary("tan", math.tan)
tanh = _unary("tanh", math.tanh)
trunc = _unary("trunc", math.trunc)


def _truth(x: PrimExpr) -> PrimExpr:
    """Return whether an element is not 0."""
    return x if x.dtype == "bool" else ops.not_equal(x, ops.const(0, x.dtype))


def cast(x: Tensor | PrimExpr, dtype: str) -> Any:
    """Return the elements converted to `dtype`; of an expression, the expression converted."""
    if not isinstance(x, Tensor):
        return ops.cast(ops.as_expr(x), dtype)
    return compute(x.shape, lambda *i: ops.cast(x(*i), dtype), "cast", ELEMWISE)


def clip(x: Tensor, a_min: PrimExprLike, a_max: PrimExprLike) -> Tensor:
    """Return the elements, no less than `a_min` and no more than `a_max`."""
    low, high = const(a_min, x.dtype), const(a_max, x.dtype)
    bound = lambda *i: ops.maximum(ops.minimum(x(*i), high), low)  # noqa: E731
    return compute(x.shape, bound, "clip", ELEMWISE)  # type: ignore[no-any-return]


def full(shape: ShapeLike, dtype: str, fill_value: Tensor | PrimExprLike) -> Tensor:
    """Return a tensor whose elements are all `fill_value`."""
    return compute(shape, lambda *_: const(fill_value, dtype), "full", ELEMWISE)  # type: ignore[no-any-return]


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """Return a tensor like `x` whose elements are all `fill_value`."""
    return full(x.shape, x.dtype, fill_value)


def broadcast_shape(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the shape that the given ones broadcast to; InvalidShapeError when they do not."""
    result: list[Any] = []
    for position in range(1, max(len(s) for s in shapes) + 1):
        extent: Any = ops.const(1)
        for shape in shapes:
            if position > len(shape):
                continue
            given = shape[-position]
            if ops.as_int(given) == 1 or given is extent:
                continue
            if ops.as_int(extent) not in (1, ops.as_int(given)):
                raise InvalidShapeError(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
            extent = given
        result.append(extent)
    return tuple(reversed(result))


def element_of(x: Tensor | PrimExprLike, indices: tuple[Any, ...]) -> Any:
    """Return the element of `x` that belongs to `indices` of a shape it broadcasts to."""
    if not isinstance(x, Tensor):
        return x
    mine = indices[len(indices) - x.ndim :]
    return x(*(0 if ops.as_int(n) == 1 else i for n, i in zip(x.shape, mine, strict=True)))


def _binary(name: str, function: Element) -> Callable[..., Any]:
    def apply(lhs: PrimExprLike, rhs: PrimExprLike) -> Any:
        shapes = [x.shape for x in (lhs, rhs) if isinstance(x, Tensor)]
        if not shapes:
            return function(lhs, rhs)
        element = lambda *i: function(element_of(lhs, i), element_of(rhs, i))  # noqa: E731
        tag = BROADCAST if len(shapes) == 2 else ELEMWISE
        return compute(broadcast_shape(*shapes), element, name, tag)

    apply.__name__ = name
    apply.__doc__ = f"Return {name} of the elements of two tensors (or numbers), broadcast."
    return apply


add = _binary("add", ops.add)
subtract = _binary("subtract", ops.sub)
multiply = _binary("multiply", ops.mul)
divide = _binary("divide", ops.div)
power = _binary("power", math.power)
maximum = _binary("maximum", ops.maximum)
minimum = _binary("minimum", ops.minimum)
equal = _binary("equal", ops.equal)
greater = _binary("greater", ops.greater)
less = _binary("less", ops.less)
not_equal = _binary("not_equal", ops.not_equal)
greater_equal = _binary("greater_equal", ops.greater_equal)
less_equal = _binary("less_equal", ops.less_equal)
floor_divide = _binary("floor_divide", ops.floordiv)
floor_mod = _binary("floor_mod", ops.floormod)
mod = _binary("mod", lambda x, y: _remainder(ops.as_expr(x), y))
left_shift = _binary("left_shift", operator.lshift)
right_shift = _binary("right_shift", operator.rshift)
bitwise_and = _binary("bitwise_and", operator.and_)
bitwise_or = _binary("bitwise_or", operator.or_)
bitwise_xor = _binary("bitwise_xor", operator.xor)
logical_and = _binary("logical_and", lambda x, y: ops.logical_and(_test(x), _test(y)))
logical_or = _binary("logical_or", lambda x, y: ops.logical_or(_test(x), _test(y)))
logical_xor = _binary("logical_xor", lambda x, y: ops.not_equal(_test(x), _test(y)))


def _test(x: PrimExprLike) -> PrimExpr:
    return _truth(ops.as_expr(x))


def _remainder(x: PrimExpr, y: PrimExprLike) -> PrimExpr:
    """Return the remainder of C's division: it has the sign of `x`."""
    return math.fmod(x, y) if dtypes.is_float(x.dtype) else ops.truncmod(x, y)


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors of one shape."""
    terms = list(xs)
    if not terms or not same_shapes(terms):
        raise InvalidShapeError(
            f"elemwise_sum adds tensors of one shape, got {[t.shape for t in terms]}; "
            "topi.add broadcasts"
        )

    def element(*i: PrimExpr) -> Any:
        total = terms[0](*i)
        for term in terms[1:]:
            total = ops.add(total, term(*i))
        return total

    return compute(terms[0].shape, element, "elemwise_sum", ELEMWISE)  # type: ignore[no-any-return]


def same_shapes(tensors: Sequence[Tensor]) -> bool:
    """Return whether tensors have one shape: the same numbers, and the same variables."""
    return len({tuple(map(str, t.shape)) for t in tensors}) == 1


def where(condition: Tensor, x: Tensor | PrimExprLike, y: Tensor | PrimExprLike) -> Tensor:
    """Return elements of `x` where `condition` holds, else of `y`; all three broadcast."""
    shape = broadcast_shape(*(t.shape for t in (condition, x, y) if isinstance(t, Tensor)))

    def element(*i: PrimExpr) -> Any:
        chosen = _truth(element_of(condition, i))
        return ops.if_then_else(chosen, element_of(x, i), element_of(y, i))

    return compute(shape, element, "where", BROADCAST)  # type: ignore[no-any-return]
