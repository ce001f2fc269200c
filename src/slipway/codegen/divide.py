"""Integer division as the CPU has it: of every divisor, and rounded down.

``x / 0`` and ``x % 0`` are 0 and the smallest integer by -1 is itself, as in NumPy.  CPUs and C
do not agree on that (x86 stops the process), so a divisor that may be 0 or -1 is replaced by 1
first.  "quotient" and "remainder" are the bare instructions.
"""

from __future__ import annotations

from slipway import dtypes
from slipway.codegen.bounds import ValueBounds
from slipway.codegen.legalize import call, like, share
from slipway.ir import expr as E


def truncated(node: E.Div | E.Mod, bounds: ValueBounds) -> E.PrimExpr:
    """Division of integers toward zero, or its remainder, for every divisor."""
    quotient = isinstance(node, E.Div)
    name = "quotient" if quotient else "remainder"
    if _is_safe(node.a, node.b, bounds):
        return call(name, node.a, node.b)

    def general(x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
        special = _is_special(y, bounds)
        divided = call(name, x, _replaced(special, y))
        # Of -1 and 0 the product is the quotient; the remainder by 1 is 0 already.
        return E.Select(special, E.Mul(x, y), divided) if quotient else divided

    return share(node.a, lambda x: share(node.b, lambda y: general(x, y)))


def floor_div(node: E.FloorDiv, bounds: ValueBounds) -> E.PrimExpr:
    """FloorDiv as a truncating division, or a shift."""
    a, b = node.a, node.b
    shift = _power_of_two(b)
    if shift is not None:
        return call("shift_right", a, like(shift, a))
    if dtypes.is_uint(a.dtype) or (bounds.is_nonnegative(a) and bounds.is_nonnegative(b)):
        return truncated(E.Div(a, b), bounds)
    if _is_safe(a, b, bounds):
        return share(a, lambda x: share(b, lambda y: _floored(x, y, bounds.is_nonnegative(b))))

    def general(x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
        special = _is_special(y, bounds)

        def choose(d: E.PrimExpr) -> E.PrimExpr:
            rising = bounds.is_nonnegative(b)
            return E.Select(special, E.Mul(x, y), _floored(x, d, rising))

        return share(_replaced(special, y), choose, "d")

    return share(a, lambda x: share(b, lambda y: general(x, y)))


def _floored(x: E.PrimExpr, y: E.PrimExpr, rising: bool) -> E.PrimExpr:
    """The quotient, less one where the remainder has another sign than y."""
    zero = like(0, x)

    def fix(q: E.PrimExpr) -> E.PrimExpr:
        def test(r: E.PrimExpr) -> E.PrimExpr:
            if rising:
                wrong: E.PrimExpr = E.LT(r, zero)
            else:
                wrong = E.And(E.NE(r, zero), E.NE(E.LT(r, zero), E.LT(y, zero)))
            return E.Sub(q, E.Select(wrong, like(1, x), zero))

        remainder = E.Sub(x, E.Mul(q, y))
        return test(remainder) if rising else share(remainder, test)

    return share(call("quotient", x, y), fix)


def floor_mod(node: E.FloorMod, bounds: ValueBounds) -> E.PrimExpr:
    """FloorMod as a truncating remainder, or a mask."""
    a, b = node.a, node.b
    shift = _power_of_two(b)
    if shift is not None:
        return call("bitwise_and", a, like((1 << shift) - 1, a))
    if dtypes.is_uint(a.dtype) or (bounds.is_nonnegative(a) and bounds.is_nonnegative(b)):
        return truncated(E.Mod(a, b), bounds)
    zero = like(0, a)

    def fix(r: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
        wrong = E.And(E.NE(r, zero), E.NE(E.LT(r, zero), E.LT(y, zero)))
        return E.Add(r, E.Select(wrong, y, zero))

    def divided(y: E.PrimExpr) -> E.PrimExpr:
        return share(call("remainder", a, y), lambda r: fix(r, y))

    if _is_safe(a, b, bounds):
        return share(b, divided)
    return share(b, lambda y: share(_replaced(_is_special(y, bounds), y), divided, "d"))


def _is_safe(a: E.PrimExpr, b: E.PrimExpr, bounds: ValueBounds) -> bool:
    """Return whether `b` is surely not 0, nor -1 where that matters: any CPU divides by it."""
    low, high = bounds.of(b)
    return low >= 1 or high <= -2


def _is_special(y: E.PrimExpr, bounds: ValueBounds) -> E.PrimExpr:
    """Whether a divisor is 0 or -1."""
    zero = E.EQ(y, like(0, y))
    if dtypes.is_uint(y.dtype) or bounds.is_nonnegative(y):
        return zero
    return E.Or(zero, E.EQ(y, like(-1, y)))


def _replaced(special: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    return E.Select(special, like(1, y), y)


def _power_of_two(value: E.PrimExpr) -> int | None:
    """Return k where `value` is the constant 2^k."""
    if isinstance(value, E.Broadcast):
        value = value.value
    if isinstance(value, E.IntImm) and value.value > 0 and value.value & (value.value - 1) == 0:
        return value.value.bit_length() - 1
    return None
