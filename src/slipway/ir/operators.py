"""Python's operators on expressions: ``a + b`` builds an `Add`, through `ir.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway.lazy import Late

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike


class Builders(Late, package="slipway.ir"):
    """The functions of `ir.ops`, which are written in terms of expressions."""

    as_expr: Callable[..., PrimExpr]
    const: Callable[..., PrimExpr]
    match: Callable[..., tuple[PrimExpr, PrimExpr]]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., PrimExpr]: ...


BUILDERS = _ops = Builders()
BROADCASTING: set[type] = set()  # whole tensors, whose own operators take an expression


class ExprOperators:
    """Python operators that build expressions; shared by expressions and te tensors' elements."""

    __slots__ = ()

    def __add__(self, other: PrimExprLike) -> PrimExpr:
        if type(other) in BROADCASTING:
            return NotImplemented
        return _ops.add(self, other)

    def __radd__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.add(other, self)

    def __sub__(self, other: PrimExprLike) -> PrimExpr:
        if type(other) in BROADCASTING:
            return NotImplemented
        return _ops.sub(self, other)

    def __rsub__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.sub(other, self)

    def __mul__(self, other: PrimExprLike) -> PrimExpr:
        if type(other) in BROADCASTING:
            return NotImplemented
        return _ops.mul(self, other)

    def __rmul__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.mul(other, self)

    def __truediv__(self, other: PrimExprLike) -> PrimExpr:
        if type(other) in BROADCASTING:
            return NotImplemented
        return _ops.div(self, other)

    def __rtruediv__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.div(other, self)

    def __floordiv__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.floordiv(self, other)

    def __rfloordiv__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.floordiv(other, self)

    def __mod__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.floormod(self, other)

    def __rmod__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.floormod(other, self)

    def __neg__(self) -> PrimExpr:
        return _ops.neg(self)

    def __lshift__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.shift_left(self, other)

    def __rlshift__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.shift_left(other, self)

    def __rshift__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.shift_right(self, other)

    def __rrshift__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.shift_right(other, self)

    def __and__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.bitwise_and(self, other)

    def __rand__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.bitwise_and(other, self)

    def __or__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.bitwise_or(self, other)

    def __ror__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.bitwise_or(other, self)

    def __xor__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.bitwise_xor(self, other)

    def __rxor__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.bitwise_xor(other, self)

    def __invert__(self) -> PrimExpr:
        return _ops.bitwise_not(self)

    def __lt__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.less(self, other)

    def __le__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.less_equal(self, other)

    def __gt__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.greater(self, other)

    def __ge__(self, other: PrimExprLike) -> PrimExpr:
        return _ops.greater_equal(self, other)

    def __eq__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, tuple, list, dict)):
            return False
        return _ops.equal(self, other)

    def __ne__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, tuple, list, dict)):
            return True
        return _ops.not_equal(self, other)

    __hash__ = object.__hash__

    def equal(self, other: PrimExprLike) -> PrimExpr:
        """Return the expression ``self == other``."""
        return _ops.equal(self, other)

    def astype(self, dtype: str, span: object = None) -> PrimExpr:
        """Return this value converted to `dtype`."""
        return _ops.cast(self, dtype)
