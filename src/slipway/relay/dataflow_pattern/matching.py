"""Does an expression look like a pattern: a search with backtracking.

An attempt yields every way to match, as a map from patterns to the expressions found; of two
alternatives the left one comes first.  Only the path of a dominator has several expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.ir.structural import structural_equal
from slipway.relay import op_registry
from slipway.relay.dataflow_pattern.patterns import (
    ENGINE,
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)
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
    Var,
)
from slipway.relay.types import TensorType

Found = Mapping[DFPattern, tuple[Any, ...]]
_COMMUTATIVE = frozenset(["add", "multiply"])


def match(pattern: DFPattern, expr: Expr) -> bool:
    """Return whether `expr` looks like `pattern`."""
    return find(pattern, expr) is not None


ENGINE.match = match


def find(pattern: DFPattern, expr: Expr) -> dict[DFPattern, list[Any]] | None:
    """Return what each part of `pattern` matches, or None where `expr` does not look like it."""
    for found in _attempt(pattern, expr, {}):
        return {part: list(exprs) for part, exprs in found.items()}
    return None


def _attempt(pattern: DFPattern, expr: Any, found: Found) -> Iterator[Found]:
    known = found.get(pattern)
    if known is not None:
        if known[0] is expr or (isinstance(expr, Op) and known[0] == expr):
            yield found
        return
    for made in _match(pattern, expr, found):
        yield {**made, pattern: (expr,)}


def _match(pattern: DFPattern, expr: Any, found: Found) -> Iterator[Found]:
    match pattern:
        case WildcardPattern():
            inner = getattr(pattern, "pattern", None)
            if inner is None:
                yield found
            else:
                yield from _attempt(inner, expr, found)
        case ExprPattern():
            if _is_same(pattern.expr, expr):
                yield found
        case VarPattern():
            if isinstance(expr, Var) and pattern.name in ("", expr.name):
                yield found
        case ConstantPattern():
            if isinstance(expr, Constant):
                yield found
        case AltPattern():
            yield from _attempt(pattern.left, expr, found)
            yield from _attempt(pattern.right, expr, found)
        case TypePattern() | DataTypePattern() | ShapePattern() | AttrPattern():
            if _fits(pattern, expr):
                yield from _attempt(pattern.pattern, expr, found)
        case CallPattern():
            if isinstance(expr, Call):
                yield from _call(pattern, expr, found)
        case DominatorPattern():
            yield from _dominated(pattern, expr, found)
        case _:
            pairs = _pairs(pattern, expr)
            if pairs is not None:
                yield from _all(pairs, found)


def _pairs(pattern: DFPattern, expr: Any) -> list[tuple[DFPattern, Any]] | None:
    """Return the parts that must match each other, or None where the kinds differ."""
    wanted: Sequence[DFPattern]
    match pattern:
        case TuplePattern() if isinstance(expr, Tuple):
            if pattern.fields is None:
                return []
            wanted, given = pattern.fields, expr.fields
        case TupleGetItemPattern() if isinstance(expr, TupleGetItem):
            if pattern.index not in (None, -1, expr.index):
                return None
            wanted, given = (pattern.tuple_value,), (expr.tuple_value,)
        case FunctionPattern() if isinstance(expr, Function):
            params = pattern.params
            wanted = (pattern.body,) if params is None else (*params, pattern.body)
            given = (expr.body,) if params is None else (*expr.params, expr.body)
        case IfPattern() if isinstance(expr, If):
            wanted = pattern.parts()
            given = (expr.cond, expr.true_branch, expr.false_branch)
        case LetPattern() if isinstance(expr, Let):
            wanted, given = pattern.parts(), (expr.var, expr.value, expr.body)
        case _:
            return None
    return list(zip(wanted, given, strict=True)) if len(wanted) == len(given) else None


def _all(pairs: Sequence[tuple[DFPattern, Any]], found: Found) -> Iterator[Found]:
    if not pairs:
        yield found
        return
    (pattern, expr), *rest = pairs
    for made in _attempt(pattern, expr, found):
        yield from _all(rest, made)


def _call(pattern: CallPattern, expr: Call, found: Found) -> Iterator[Found]:
    for made in _attempt(pattern.op, expr.op, found):
        if pattern.args is None:
            yield made
            continue
        if len(pattern.args) != len(expr.args):
            continue
        yield from _all(list(zip(pattern.args, expr.args, strict=True)), made)
        if isinstance(expr.op, Op) and expr.op.name in _COMMUTATIVE:
            yield from _all(list(zip(pattern.args, expr.args[::-1], strict=True)), made)


def _is_same(wanted: Any, expr: Any) -> bool:
    if wanted is expr or (isinstance(wanted, Op) and wanted == expr):
        return True
    if isinstance(wanted, (Op, Var)) or isinstance(expr, (Op, Var)):
        return False
    if isinstance(wanted, Constant) and isinstance(expr, Constant):
        same = wanted.array.dtype == expr.array.dtype
        return same and np.array_equal(wanted.array, expr.array)
    return type(wanted) is type(expr) and structural_equal(wanted, expr)


def _fits(pattern: DFPattern, expr: Any) -> bool:
    match pattern:
        case TypePattern():
            return isinstance(expr, Expr) and expr.type == pattern.type
        case DataTypePattern():
            found = getattr(expr, "type", None)
            return isinstance(found, TensorType) and found.dtype == pattern.dtype
        case ShapePattern():
            found = getattr(expr, "type", None)
            return isinstance(found, TensorType) and found.shape == pattern.shape
        case AttrPattern():
            return all(_has(expr, name, value) for name, value in pattern.attrs.items())
        case _:
            return False


def _has(expr: Any, name: str, value: Any) -> bool:
    if isinstance(expr, Op):
        return name == "TOpPattern" and op_registry.get(expr.name).pattern == value
    attrs = getattr(expr, "attrs", None)
    if attrs is None:
        return False
    if isinstance(expr, Function):
        return name in attrs and _equal(attrs[name], value)
    names = attrs if isinstance(attrs, Mapping) else attrs.FIELDS  # a mapping of make_node's
    return name in names and _equal(getattr(attrs, name), value)


def _equal(have: Any, want: Any) -> bool:
    if isinstance(have, (tuple, list)) or isinstance(want, (tuple, list)):
        if not (isinstance(have, (tuple, list)) and isinstance(want, (tuple, list))):
            return False
        return len(have) == len(want) and all(
            _equal(a, b) for a, b in zip(have, want, strict=True)
        )  # fmt: skip
    return bool(have == want)


def inputs_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the values that `expr` is computed from."""
    match expr:
        case Call():
            return expr.args
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple_value,)
        case _:
            return ()


def _dominated(pattern: DominatorPattern, expr: Any, found: Found) -> Iterator[Found]:
    for made in _attempt(pattern.child, expr, found):
        result = _ways_up(pattern, expr, made)
        if result is not None:
            yield result


def _ways_up(pattern: DominatorPattern, child: Any, found: Found) -> Found | None:
    """Follow every way up from `child`: each ends at one and the same match of the parent."""
    parent: Any = None
    path: dict[int, Any] = {}
    waiting = _up(child)
    while waiting:
        expr = waiting.pop()
        if expr is parent or id(expr) in path:
            continue
        if parent is None:
            made = next(iter(_attempt(pattern.parent, expr, found)), None)
            if made is not None:
                parent, found = expr, made
                continue
        step = next(iter(_attempt(pattern.path, expr, {})), None)
        further = _up(expr)
        if step is None or not further:
            return None
        path[id(expr)] = expr
        waiting += further
    if parent is None:
        return None
    return {**found, pattern.path: tuple(path.values())}


def _up(expr: Any) -> list[Expr]:
    """Return the inputs that lead up: variables and constants do where there is nothing else."""
    inputs = inputs_of(expr)
    inner = [e for e in inputs if not isinstance(e, (Var, Constant))]
    return inner or list(inputs)
