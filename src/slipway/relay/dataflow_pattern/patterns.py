"""The language of patterns: what a part of a graph looks like.

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    pattern = is_op("nn.relu")(conv) | is_op("clip")(conv)

A pattern that occurs twice in another must match the same expression both times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr
from slipway.relay.types import Type


class Engine:
    """What patterns ask of the modules that are written in terms of them, which enter it."""

    match: Callable[[DFPattern, Expr], bool]
    partition: Callable[..., Expr]


ENGINE = Engine()


class DFPattern:
    """Base of all patterns.  Equality is identity: results are found under the pattern's object."""

    def __call__(self, *args: Any) -> CallPattern:
        """Return the pattern of a call of what this matches; ``(None)`` takes any arguments."""
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        return CallPattern(self, args)

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """Return this pattern where the attributes have these values."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """Return this pattern where the type is `ttype`."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """Return this pattern where the elements are of `dtype`."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[int]) -> ShapePattern:
        """Return this pattern where the shape is `shape`."""
        return ShapePattern(self, shape)

    def match(self, expr: Expr) -> bool:
        """Return whether `expr` looks like this."""
        return ENGINE.match(self, expr)

    def partition(
        self,
        expr: Expr,
        attrs: Mapping[str, Any] | None = None,
        check: Callable[[Expr], bool] = lambda x: True,
    ) -> Expr:
        """Return `expr` with each match made a function of its own, called in its place."""
        return ENGINE.partition(self, expr, attrs, check)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """Return the pattern of this, to which every way from `parent` leads over `path`."""
        return DominatorPattern(parent, path or wildcard(), self)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """Return this pattern, alone or inside what `option_constructor` makes of it."""
        return self | option_constructor(self)

    def parts(self) -> tuple[DFPattern, ...]:
        """Return the patterns that this is made of, in order."""
        return ()


class ExprPattern(DFPattern):
    """A certain expression: an operator, or one that is structurally equal."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr


class VarPattern(DFPattern):
    """A variable, of any name unless one is given."""

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint


class ConstantPattern(DFPattern):
    """Any constant."""


class WildcardPattern(DFPattern):
    """Any expression."""

    def redirect_to(self, pattern: DFPattern) -> None:
        """Make this wildcard stand for `pattern`."""
        self.pattern = pattern


class CallPattern(DFPattern):
    """A call; `args` None are any arguments."""

    def __init__(self, op: DFPattern, args: Iterable[Any] | None) -> None:
        self.op = op
        self.args = None if args is None else tuple(as_pattern(a) for a in args)

    def parts(self) -> tuple[DFPattern, ...]:
        """Return callee and arguments."""
        return (self.op, *(self.args or ()))


class FunctionPattern(DFPattern):
    """A function; `params` None are any parameters."""

    def __init__(self, params: Iterable[DFPattern] | None, body: DFPattern) -> None:
        self.params = None if params is None else tuple(params)
        self.body = body

    def parts(self) -> tuple[DFPattern, ...]:
        """Return parameters and body."""
        return (*(self.params or ()), self.body)


class IfPattern(DFPattern):
    """An If."""

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch

    def parts(self) -> tuple[DFPattern, ...]:
        """Return condition and branches."""
        return self.cond, self.true_branch, self.false_branch


class LetPattern(DFPattern):
    """A Let."""

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.var, self.value, self.body = var, value, body

    def parts(self) -> tuple[DFPattern, ...]:
        """Return variable, value and body."""
        return self.var, self.value, self.body


class TuplePattern(DFPattern):
    """A tuple; `fields` None are any fields."""

    def __init__(self, fields: Iterable[DFPattern] | None) -> None:
        self.fields = None if fields is None else tuple(fields)

    def parts(self) -> tuple[DFPattern, ...]:
        """Return the fields."""
        return self.fields or ()

    def __getitem__(self, index: int) -> DFPattern:
        return (self.fields or ())[index]

    def __len__(self) -> int:
        return len(self.fields or ())


class TupleGetItemPattern(DFPattern):
    """The reading of a tuple's field; `index` None is any field."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple_value, self.index = tuple_value, index
        self.tuple = tuple_value

    def parts(self) -> tuple[DFPattern, ...]:
        """Return the tuple."""
        return (self.tuple_value,)


class AltPattern(DFPattern):
    """One of two; the left one is tried first."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def parts(self) -> tuple[DFPattern, ...]:
        """Return both."""
        return self.left, self.right


class _Restricted(DFPattern):
    """A pattern with a further condition."""

    def __init__(self, pattern: DFPattern) -> None:
        self.pattern = pattern

    def parts(self) -> tuple[DFPattern, ...]:
        """Return the pattern."""
        return (self.pattern,)


class TypePattern(_Restricted):
    """An expression of a type."""

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        super().__init__(pattern)
        self.type = ttype


class DataTypePattern(_Restricted):
    """A tensor with elements of a dtype."""

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        super().__init__(pattern)
        self.dtype = dtype


class ShapePattern(_Restricted):
    """A tensor of a shape."""

    def __init__(self, pattern: DFPattern, shape: Sequence[int]) -> None:
        super().__init__(pattern)
        self.shape = tuple(shape)


class AttrPattern(_Restricted):
    """A call, a function or an operator whose attributes have certain values."""

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        super().__init__(pattern)
        self.attrs = dict(attrs)


class DominatorPattern(DFPattern):
    """`child`, where every way up from it leads over `path` to `parent`."""

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent, self.path, self.child = parent, path, child

    def parts(self) -> tuple[DFPattern, ...]:
        """Return parent, path and child."""
        return self.parent, self.path, self.child


def as_pattern(value: Any) -> DFPattern:
    """Return a pattern as it is; an expression or a number as the pattern of it."""
    if isinstance(value, DFPattern):
        return value
    return ExprPattern(op_registry.as_expr(value))


def is_var(name: str = "") -> VarPattern:
    """Return the pattern of a variable, of any name unless one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """Return the pattern of a constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """Return the pattern of an expression that is structurally equal to `expr`."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """Return the pattern of an operator.  Raises UnknownOperator with a suggestion."""
    return ExprPattern(op_registry.get(op_name).op)


def is_tuple(fields: Iterable[DFPattern] | None) -> TuplePattern:
    """Return the pattern of a tuple; None takes any fields."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Return the pattern of the reading of field `index`; None takes any."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """Return the pattern of an If."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """Return the pattern of a Let."""
    return LetPattern(var, value, body)


def wildcard() -> WildcardPattern:
    """Return the pattern of any expression."""
    return WildcardPattern()


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Return the pattern of an expression of a type."""
    return TypePattern(pattern or wildcard(), ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """Return the pattern of a tensor of a dtype."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_shape(shape: Sequence[int], pattern: DFPattern | None = None) -> ShapePattern:
    """Return the pattern of a tensor of a shape."""
    return ShapePattern(pattern or wildcard(), shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """Return the pattern of what has attributes of these values."""
    return AttrPattern(pattern or wildcard(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """Return the pattern of `child`, to which every way from `parent` leads over `path`."""
    return DominatorPattern(parent, path, child)


def is_leaf(pattern: DFPattern) -> bool:
    """Return whether what `pattern` matches lies outside of a match: its inputs end there."""
    if isinstance(pattern, ExprPattern):
        return isinstance(pattern.expr, Constant)
    if isinstance(pattern, WildcardPattern):
        return getattr(pattern, "pattern", None) is None
    return isinstance(pattern, VarPattern)
