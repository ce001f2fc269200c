"""What the Analyzer makes of single expressions at the borders of its rules."""

import itertools

import pytest
from random_expressions import FLAG, REAL, TABLE, X, Y, analyzer, value

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import interval_of
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import Var


def number(value, dtype="int32"):
    return ops.const(value, dtype)


def folded(expr):
    """Return the number that an expression of constants becomes."""
    made = Analyzer().simplify(expr)
    assert isinstance(made, (E.IntImm, E.FloatImm)), made
    return made.value


# -- intervals of products -------------------------------------------------------------------------


@pytest.mark.parametrize("low", [-3, -2, -1, 0, 1])
def test_ends_of_a_product_with_a_factor_of_either_sign(low):
    for first, last in ((0, 3), (-2, 1), (-3, -1)):
        an, p, q = Analyzer(), Var("p"), Var("q")
        an.bind(p, low, low + 2)
        an.bind(q, -3, 3)
        found = interval_of(
            an, an.linear(p * q), {an.var_atom(q): (an.constant(first), an.constant(last))}
        )
        ends = [an.to_expr(end) for end in found]
        for factor in range(low, low + 3):
            fixed = Analyzer()
            fixed.bind(p, factor, factor)
            lowest, most = (fixed.linear(end).const for end in ends)
            products = [factor * v for v in range(first, last + 1)]
            assert lowest <= min(products)
            assert max(products) <= most
            if low >= 0:
                assert (lowest, most) == (min(products), max(products))


# -- division --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [E.FloorDiv, E.FloorMod, E.Div, E.Mod])
def test_division_by_a_variable(kind):
    """Below its divisor and not below 0, a number has the quotient 0 and is its own remainder."""
    for low, high, above in itertools.product((-1, 0, 1), (1, 2, 4), (0, 1, 2)):
        an, p, d = Analyzer(), Var("p"), Var("d")
        an.bind(p, low, high)
        an.bind(d, 0, 2)
        for top, bottom in (
            (p, d + high + above),
            (p, p + above),
            (d, d + 1),
            (number(low), d + 1),
        ):
            expr = kind(top, bottom)
            if an.bounds(bottom)[0] <= 0:
                continue
            made = an.simplify(expr)
            for v, w in itertools.product(range(low, high + 1), range(3)):
                fixed = Analyzer()
                fixed.bind(p, v, v)
                fixed.bind(d, w, w)
                assert fixed.linear(made).const == fixed.linear(expr).const
            less = an.can_prove(top < bottom) and an.bounds(top)[0] >= 0
            if less and kind in (E.FloorDiv, E.FloorMod):
                assert an.can_prove_equal(made, number(0) if kind is E.FloorDiv else top), expr
    an = analyzer()
    for kind in (E.FloorDiv, E.FloorMod):
        assert str(an.simplify(kind(number(0), Y + 1))) == "0"


def test_division_of_what_is_not_negative_is_that_of_floor():
    an = analyzer()
    for divisor in (1, 2, 3):
        d = number(divisor)
        assert an.can_prove_equal(E.Div(Y, d), E.FloorDiv(Y, d))
        assert an.can_prove_equal(E.Mod(Y, d), E.FloorMod(Y, d))
        assert an.can_prove_equal(E.Div(Y + 1, d), E.FloorDiv(Y + 1, d))
        assert not an.can_prove_equal(E.Div(X, d), E.FloorDiv(X, d)) or divisor == 1


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
def test_divisions_of_numbers(dtype):
    for top, bottom in itertools.product((-7, -1, 0, 1, 7), (-3, -1, 1, 2)):
        a, b = number(top, dtype), number(bottom, dtype)
        quotient = abs(top) // abs(bottom) * (1 if (top < 0) == (bottom < 0) else -1)
        assert folded(E.Div(a, b)) == quotient
        assert folded(E.Mod(a, b)) == top - quotient * bottom
        assert folded(E.FloorDiv(a, b)) == top // bottom
        assert folded(E.FloorMod(a, b)) == top % bottom


@pytest.mark.parametrize("kind", [E.FloorDiv, E.FloorMod, E.Div, E.Mod])
def test_division_by_zero_is_left_to_who_runs_it(kind):
    an = analyzer()
    for dtype in ("int32", "int8"):
        made = an.simplify(kind(number(7, dtype), number(0, dtype)))
        assert isinstance(made, kind), made
    assert "0" in str(an.simplify(kind(Y, number(0))))
    plain = kind(number(7, "int8"), number(0, "int8"))
    assert an.simplify(plain) is plain
    sums = E.Add(number(3, "int8"), number(4, "int8"))
    made = an.simplify(kind(sums, number(0, "int8")))
    assert (made.a.value, made.b.value) == (7, 0)


def test_floats_of_numbers():
    one, two, zero = (number(v, "float32") for v in (1.0, 2.0, 0.0))
    assert folded(E.Div(one, two)) == 0.5
    assert folded(E.Div(two, number(-1.0, "float32"))) == -2.0
    assert folded(E.Div(two, one)) == 2.0
    assert isinstance(Analyzer().simplify(E.Div(one, zero)), E.Div)
    assert folded(E.Cast("int32", number(2.5, "float32"))) == 2
    assert folded(E.Cast("float32", number(2))) == 2.0
    assert folded(E.Cast("int64", number(7))) == 7
    assert analyzer().simplify(E.Cast("int64", number(7) + 0)).dtype == "int64"


# -- what stays the same object --------------------------------------------------------------------


def test_zero_and_one_disappear_from_small_integers():
    an, x = Analyzer(), Var("x", "int8")
    zero, one = number(0, "int8"), number(1, "int8")
    assert an.simplify(E.Add(x, zero)) is x
    assert an.simplify(E.Sub(x, zero)) is x
    assert an.simplify(E.Mul(x, one)) is x
    assert an.simplify(E.Mul(one, x)) is x
    for kept in (E.Add(x, one), E.Sub(x, one), E.Mul(x, zero), E.Sub(zero, x)):
        assert an.simplify(kept) is kept


def test_calls_and_loads_with_simple_operands_are_kept():
    an = analyzer()
    four = number(4)
    call = E.Call("int32", "bitwise_or", (X, four))
    assert an.simplify(call) is call
    made = an.simplify(E.Call("int32", "bitwise_or", (X + Y - Y, four)))
    assert made.args[0] is X
    made = an.simplify(E.Call("int32", "bitwise_or", (X, four + 0 * X)))
    assert (made.args[0], made.args[1].value) == (X, 4)
    named = E.Call("int32", "call_pure_extern", (E.StringImm("f"), X))
    assert an.simplify(named) is named
    real = E.Call("float32", "fma", (REAL, REAL, REAL))
    assert an.simplify(real) is real
    both = E.Call("float32", "pow", (REAL, E.Cast("float32", X + Y - Y)))
    assert an.simplify(both).args[1].value is X
    counted = E.Call("float32", "ldexp", (number(3), REAL))
    assert an.simplify(counted) is counted
    load = TABLE[X]
    assert an.simplify(E.Cast("float32", load)).value is load
    moved = an.simplify(E.Cast("float32", TABLE[X + Y - Y])).value
    assert moved.indices[0] is X
    assert an.simplify(E.Not(FLAG)).a is FLAG


def test_shifts_by_what_is_no_number_of_bits_are_kept():
    an = analyzer()
    for count in (-1, 31, 40):
        call = E.Call("int32", "shift_left", (X, number(count)))
        assert an.simplify(call) is call


def test_vectors_of_any_form_give_vectors_of_their_lanes():
    an = analyzer()
    ramp, wide = E.Ramp(X, number(2), 4), E.Broadcast(Y, 4)
    for made in (
        an.simplify(E.Sub(ramp, E.Ramp(Y, number(2), 4))),
        an.simplify(E.Add(ramp, E.Ramp(Y, number(-2), 4))),
    ):
        assert isinstance(made, E.Broadcast)
        assert made.num_lanes == 4
    for expr in (E.Add(ramp, wide), E.Sub(wide, ramp), E.Mul(wide, ramp), E.Mul(ramp, wide)):
        made = an.simplify(expr)
        assert isinstance(made, E.Ramp)
        assert (value(made) == value(expr)).all()
