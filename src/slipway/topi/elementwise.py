"""Elementwise functions; those of two tensors broadcast as NumPy's do.

Shapes are compared from the last dimension on: extents are equal, or one of them is 1.  Numbers may
stand for tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway.ir import ops
from slipway.te import math
from slipway.te.declare import compute, const
from slipway.te.tensor import BROADCASTING, Tensor

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike, ShapeLike

Element = Callable[..., Any]


def _unary(name: str, function: Element) -> Callable[..., Tensor]:
    def apply(x: Tensor) -> Tensor:
        return compute(x.shape, lambda *i: function(x(*i)), name)  # type: ignore[no-any-return]

    apply.__name__ = name
    apply.__doc__ = f"Return {name} of every element."
    return apply


abs = _unary("abs", math.abs)
ceil = _unary("ceil", math.ceil)
cos = _unary("cos", math.cos)
erf = _unary("erf", math.erf)
exp = _unary("exp", math.exp)
floor = _unary("floor", math.floor)
log = _unary("log", math.log)
negative = _unary("negative", ops.neg)
round = _unary("round", math.round)
rsqrt = _unary("rsqrt", math.rsqrt)
sigmoid = _unary("sigmoid", math.sigmoid)
sin = _unary("sin", math.sin)
sqrt = _unary("sqrt", math.sqrt)
tanh = _unary("tanh", math.tanh)


def cast(x: Tensor, dtype: str) -> Tensor:
    """Return the elements converted to `dtype`."""
    return compute(x.shape, lambda *i: ops.cast(x(*i), dtype), "cast")  # type: ignore[no-any-return]


def clip(x: Tensor, a_min: PrimExprLike, a_max: PrimExprLike) -> Tensor:
    """Return the elements, no less than `a_min` and no more than `a_max`."""
    low, high = const(a_min, x.dtype), const(a_max, x.dtype)
    bound = lambda *i: ops.maximum(ops.minimum(x(*i), high), low)  # noqa: E731
    return compute(x.shape, bound, "clip")  # type: ignore[no-any-return]


def full(shape: ShapeLike, dtype: str, fill_value: Tensor | PrimExprLike) -> Tensor:
    """Return a tensor whose elements are all `fill_value`."""
    return compute(shape, lambda *_: const(fill_value, dtype), "full")  # type: ignore[no-any-return]


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """Return a tensor like `x` whose elements are all `fill_value`."""
    return full(x.shape, x.dtype, fill_value)


def broadcast_shape(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the shape that the given ones broadcast to; ValueError when they do not."""
    result: list[Any] = []
    for place in range(1, max(len(s) for s in shapes) + 1):
        extent: Any = ops.const(1)
        for shape in shapes:
            if place > len(shape):
                continue
            given = shape[-place]
            if ops.as_int(given) == 1 or given is extent:
                continue
            if ops.as_int(extent) not in (1, ops.as_int(given)):
                raise ValueError(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
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
        return compute(broadcast_shape(*shapes), element, name)

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


def where(condition: Tensor, x: Tensor | PrimExprLike, y: Tensor | PrimExprLike) -> Tensor:
    """Return elements of `x` where `condition` holds, else of `y`; all three broadcast."""
    shape = broadcast_shape(*(t.shape for t in (condition, x, y) if isinstance(t, Tensor)))

    def element(*i: PrimExpr) -> Any:
        test = element_of(condition, i)
        chosen = test if test.dtype == "bool" else ops.not_equal(test, const(0, test.dtype))
        return ops.if_then_else(chosen, element_of(x, i), element_of(y, i))

    return compute(shape, element, "where")  # type: ignore[no-any-return]


BROADCASTING.update(
    add=add, subtract=subtract, multiply=multiply, divide=divide, negative=negative, cast=cast
)
