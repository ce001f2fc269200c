"""What the Analyzer knows of each expression class: its linear form, and its local rules.

`BUILDERS` maps a node class to its conversion into a `Linear` (int32/int64 scalars only);
`RULES` maps a node class to a function that simplifies the operands and then the node itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.arith.linear import INDEX_TYPES, Linear
from slipway.ir import expr as E
from slipway.ir import ops

if TYPE_CHECKING:
    from slipway.arith.analyzer import Analyzer
    from slipway.ir.expr import PrimExpr

# -- integer expressions to linear sums --------------------------------------------------------


def _add(an: Analyzer, e: Any) -> Linear:
    return _merged(an, an.linear(e.a).plus(an.linear(e.b)))


def _sub(an: Analyzer, e: Any) -> Linear:
    return _merged(an, an.linear(e.a).minus(an.linear(e.b)))


def _merged(an: Analyzer, x: Linear) -> Linear:
    for atom in x.terms:
        if atom.remainders:
            return an.recombine(x)
    return x


def _mul(an: Analyzer, e: Any) -> Linear:
    return an.multiply(an.linear(e.a), an.linear(e.b))


def _floor(an: Analyzer, e: Any) -> Linear:
    x, y = an.linear(e.a), an.linear(e.b)
    quotient = type(e) is E.FloorDiv
    if y.is_const and y.const != 0:
        return (an.floordiv if quotient else an.floormod)(x, y.const)
    if x.is_const and x.const == 0:
        return x
    if y.low > 0 and x.low >= 0 and an.recombine(x.minus(y)).high < 0:
        return Linear({}, 0, x.dtype) if quotient else x
    if y.low > 0 and (times := _multiple(x, y)) is not None:
        return Linear({}, times if quotient else 0, x.dtype)
    return an.opaque(type(e)(an.to_expr(x), an.to_expr(y)))


def _multiple(x: Linear, y: Linear) -> int | None:
    """Return how many times y is x; None where it is no whole number of times."""
    atom, count = next(iter(y.terms.items()))
    times, remainder = divmod(x.terms.get(atom, 0), count)
    return times if not remainder and x.key == y.scaled(times).key else None


def _trunc(an: Analyzer, e: Any) -> Linear:
    x, y = an.linear(e.a), an.linear(e.b)
    quotient = type(e) is E.Div
    if y.is_const and y.const > 0 and x.low >= 0:
        return (an.floordiv if quotient else an.floormod)(x, y.const)
    if x.is_const and y.is_const and y.const != 0:
        fold = ops.truncdiv if quotient else ops.truncmod
        return an.linear(fold(an.to_expr(x), an.to_expr(y)))
    return an.opaque(type(e)(an.to_expr(x), an.to_expr(y)))


def _extreme(an: Analyzer, e: Any) -> Linear:
    pick = an.minimum if type(e) is E.Min else an.maximum
    return pick(an.linear(e.a), an.linear(e.b))


def _cast_index(an: Analyzer, e: Any) -> Linear:
    value = e.value
    if value.dtype in INDEX_TYPES:
        inner = an.linear(value)
        if inner.is_const:
            return an.linear(ops.const(inner.const, e.dtype))
        return an.opaque(E.Cast(e.dtype, an.to_expr(inner)))
    return an.opaque(ops.cast(an.simplify(value), e.dtype))


def _select_index(an: Analyzer, e: Any) -> Linear:
    condition = an.simplify(e.condition)
    if isinstance(condition, E.IntImm):
        return an.linear(e.true_value if condition.value else e.false_value)
    yes, no = an.linear(e.true_value), an.linear(e.false_value)
    if yes.key == no.key:
        return yes
    return an.opaque(E.Select(condition, an.to_expr(yes), an.to_expr(no)))


def _call_index(an: Analyzer, e: Any) -> Linear:
    if e.op == "if_then_else":
        condition = an.simplify(e.args[0])
        if isinstance(condition, E.IntImm):
            return an.linear(e.args[1] if condition.value else e.args[2])
    if e.op == "shift_left" and isinstance(e.args[1], E.IntImm) and 0 <= e.args[1].value < 31:
        return an.linear(e.args[0]).scaled(1 << e.args[1].value)
    args = tuple(an.simplify(a) if isinstance(a, E.PrimExpr) else a for a in e.args)
    same = all(a is b for a, b in zip(args, e.args, strict=True))
    return an.opaque(e if same else E.Call(e.dtype, e.op, args))


BUILDERS: dict[type, Callable[[Any, Any], Linear]] = {
    E.IntImm: lambda an, e: Linear({}, e.value, e.dtype),
    E.Var: lambda an, e: an._from_var(e),
    E.SizeVar: lambda an, e: an._from_var(e),
    E.Add: _add,
    E.Sub: _sub,
    E.Mul: _mul,
    E.FloorDiv: _floor,
    E.FloorMod: _floor,
    E.Div: _trunc,
    E.Mod: _trunc,
    E.Min: _extreme,
    E.Max: _extreme,
    E.Cast: _cast_index,
    E.Select: _select_index,
    E.Call: _call_index,
}

# -- every other expression ----------------------------------------------------------------------

_FOLD: dict[type, Callable[[Any, Any], Any]] = {
    E.Add: ops.add,
    E.Sub: ops.sub,
    E.Mul: ops.mul,
    E.Div: ops.div,
    E.Mod: ops.truncmod,
    E.FloorDiv: ops.floordiv,
    E.FloorMod: ops.floormod,
    E.Min: ops.minimum,
    E.Max: ops.maximum,
}


def _binary(an: Analyzer, e: Any) -> Any:
    a, b = an.simplify(e.a), an.simplify(e.b)
    kind = type(e)
    if isinstance(a, (E.IntImm, E.FloatImm)) and isinstance(b, (E.IntImm, E.FloatImm)):
        if kind in (E.Div, E.Mod, E.FloorDiv, E.FloorMod) and b.value == 0:
            return e if a is e.a and b is e.b else kind(a, b)
        return _FOLD[kind](a, b)
    vector = _vector_rule(an, kind, a, b)
    if vector is not None:
        return vector
    if _is_number(b, 0) and kind in (E.Add, E.Sub):
        return a
    if _is_number(a, 0) and kind is E.Add:
        return b
    if kind is E.Mul and (_is_number(b, 1) or _is_number(a, 1)):
        return a if _is_number(b, 1) else b
    return e if a is e.a and b is e.b else kind(a, b)


def _is_number(value: PrimExpr, number: int) -> bool:
    if isinstance(value, E.Broadcast):
        value = value.value
    if isinstance(value, E.FloatImm):
        # x + 0.0 is x but for x = -0.0, whose sign no kernel may rely on; the same licence that
        # fast-math nsz gives the code generators.
        return value.value == number
    return isinstance(value, E.IntImm) and value.value == number


def _vector_rule(an: Analyzer, kind: type, a: Any, b: Any) -> Any:
    """Ramp and Broadcast arithmetic of integers: the result stays a Ramp or Broadcast."""
    left, right = type(a), type(b)
    if left is E.Broadcast and right is E.Broadcast and a.num_lanes == b.num_lanes:
        return E.Broadcast(an.simplify(kind(a.value, b.value)), a.num_lanes)
    if kind not in (E.Add, E.Sub, E.Mul) or not {left, right} <= {E.Ramp, E.Broadcast}:
        return None
    if kind is E.Mul:
        if left is E.Ramp and right is E.Ramp:
            return None
        ramp, scalar = (a, b.value) if left is E.Ramp else (b, a.value)
        if ramp.base.dtype not in INDEX_TYPES:
            return None
        base, stride = E.Mul(ramp.base, scalar), E.Mul(ramp.stride, scalar)
        return E.Ramp(an.simplify(base), an.simplify(stride), ramp.num_lanes)
    if (a if left is E.Ramp else b).base.dtype not in INDEX_TYPES:
        return None
    zero = ops.const(0, (a if left is E.Ramp else b).stride.dtype)
    base_a, stride_a = (a.base, a.stride) if left is E.Ramp else (a.value, zero)
    base_b, stride_b = (b.base, b.stride) if right is E.Ramp else (b.value, zero)
    base, stride = an.simplify(kind(base_a, base_b)), an.simplify(kind(stride_a, stride_b))
    if isinstance(stride, E.IntImm) and stride.value == 0:
        return E.Broadcast(base, a.num_lanes if left is E.Ramp else b.num_lanes)
    return E.Ramp(base, stride, a.num_lanes)


def _and(an: Analyzer, e: Any) -> Any:
    return _kept(e, ops.logical_and(an.simplify(e.a), an.simplify(e.b)))


def _or(an: Analyzer, e: Any) -> Any:
    return _kept(e, ops.logical_or(an.simplify(e.a), an.simplify(e.b)))


def _not(an: Analyzer, e: Any) -> Any:
    return _kept(e, ops.logical_not(an.simplify(e.a)))


def _kept(e: Any, made: Any) -> Any:
    """Return `e` itself where what was made of it has the same class and operands."""
    same = type(made) is type(e) and all(getattr(made, f) is getattr(e, f) for f in e.FIELDS)
    return e if same else made


def _select(an: Analyzer, e: Any) -> Any:
    condition = an.simplify(e.condition)
    if isinstance(condition, E.Broadcast) and isinstance(condition.value, E.IntImm):
        condition = condition.value
    if isinstance(condition, E.IntImm):
        return an.simplify(e.true_value if condition.value else e.false_value)
    yes, no = an.simplify(e.true_value), an.simplify(e.false_value)
    if yes is no:
        return yes
    if condition is e.condition and yes is e.true_value and no is e.false_value:
        return e
    return E.Select(condition, yes, no)


def _cast(an: Analyzer, e: Any) -> Any:
    value = an.simplify(e.value)
    if isinstance(value, (E.IntImm, E.FloatImm)):
        return ops.cast(value, e.dtype)
    if isinstance(value, E.Broadcast):
        inner = an.simplify(ops.cast(value.value, dtypes.scalar_of(e.dtype)))
        return E.Broadcast(inner, value.num_lanes)
    return e if value is e.value else E.Cast(e.dtype, value)


def _call(an: Analyzer, e: Any) -> Any:
    if e.op == "if_then_else":
        condition = an.simplify(e.args[0])
        if isinstance(condition, E.IntImm):
            return an.simplify(e.args[1] if condition.value else e.args[2])
    args = tuple(an.simplify(a) if isinstance(a, E.PrimExpr) else a for a in e.args)
    if e.op == "likely" and isinstance(args[0], E.IntImm):
        return args[0]
    if all(a is b for a, b in zip(args, e.args, strict=True)):
        return e
    return E.Call(e.dtype, e.op, args)


def _load(an: Analyzer, e: Any) -> Any:
    indices = tuple(an.simplify(i) for i in e.indices)
    if all(a is b for a, b in zip(indices, e.indices, strict=True)):
        return e
    return E.BufferLoad(e.buffer, indices)


def _compare(an: Analyzer, e: PrimExpr) -> Any:
    return an._compare(e)


def _leaf(an: Analyzer, e: PrimExpr) -> Any:
    return e


RULES: dict[type, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(_FOLD, _binary),
    **dict.fromkeys((E.LT, E.LE, E.GT, E.GE, E.EQ, E.NE), _compare),
    **dict.fromkeys((E.Var, E.SizeVar, E.StringImm, E.IntImm, E.FloatImm), _leaf),
    E.And: _and,
    E.Or: _or,
    E.Not: _not,
    E.Select: _select,
    E.Cast: _cast,
    E.Call: _call,
    E.BufferLoad: _load,
}
