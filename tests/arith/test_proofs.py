"""Bounds, verdicts and rules of the Analyzer at their borders, against every value there is."""

import itertools
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import interval_of, union
from slipway.arith.linear import INF
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.buffer import decl_buffer
from slipway.ir.expr import IntImm, Var

COMPARISONS = {
    E.LT: operator.lt, E.LE: operator.le, E.GT: operator.gt, E.GE: operator.ge,
    E.EQ: operator.eq, E.NE: operator.ne,
}  # fmt: skip


def bound(low, high, name="x"):
    an, x = Analyzer(), Var(name)
    an.bind(x, low, high)
    return an, x


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("factor", [1, -1, 2])
def test_verdicts_on_every_small_range(kind, factor):
    """A verdict is given exactly where all values agree; for equality divisibility counts too."""
    for low, high in itertools.combinations_with_replacement(range(-2, 3), 2):
        for shift in range(-3, 4):
            an, x = bound(low, high)
            sum_of = an.linear(x * factor + shift)
            answers = {COMPARISONS[kind](v * factor + shift, 0) for v in range(low, high + 1)}
            assert an.decide(kind, sum_of) == (answers.pop() if len(answers) == 1 else None)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_comparisons_of_constants_and_floats_fold(kind):
    an = Analyzer()
    for a, b in itertools.product((1, 2, 3), repeat=2):
        for dtype in ("float32", "int32", "int8"):
            simple = an.simplify(kind(ops.const(a, dtype), ops.const(b, dtype)))
            assert isinstance(simple, IntImm)
            assert simple.value == COMPARISONS[kind](a, b)
    x = Var("x", "float32")
    open_one = kind(x, ops.const(1.0, "float32"))
    assert an.simplify(open_one) is open_one
    left = an.simplify(kind(x + ops.const(0.0, "float32"), ops.const(1.0, "float32")))
    assert left.a is x


def test_a_comparison_that_stays_open_stays_the_same_object():
    an, x = bound(0, 9)
    y = Var("y")
    an.bind(y, 0, 9)
    condition = E.LT(x, y)
    assert an.simplify(condition) is condition
    changed = an.simplify(E.LT(x + 0 * y, y + 1 - 1))
    assert (changed.a, changed.b) == (x, y)


# -- bounds of expressions that arithmetic does not look into --------------------------------------


def test_bounds_of_opaque_expressions():
    an, x = bound(-3, 5)
    y = Var("y")
    an.bind(y, 10, 12)
    flag = Var("flag", "bool")
    table = decl_buffer((9,), "int32", name="table")
    small = decl_buffer((9,), "uint8", name="small")
    assert an.bounds(E.Select(flag, x, y)) == (-3, 12)
    assert an.bounds(E.Select(flag, y, x)) == (-3, 12)
    assert an.bounds(E.Call("int32", "if_then_else", (flag, x, y))) == (-3, 12)
    assert an.bounds(E.Call("int32", "if_then_else", (flag, y, x))) == (-3, 12)
    assert an.bounds(E.Call("int32", "bitwise_and", (table[x], ops.const(7)))) == (0, 7)
    assert an.bounds(E.Call("int32", "bitwise_and", (table[x], ops.const(0)))) == (0, 0)
    assert an.bounds(E.Call("int32", "bitwise_and", (table[x], ops.const(-8)))) == (-INF, INF)
    assert an.bounds(E.Call("int32", "bitwise_or", (table[x], ops.const(7)))) == (-INF, INF)
    assert an.bounds(E.Mod(table[x], ops.const(5))) == (-4, 4)
    assert an.bounds(E.Mod(table[x], ops.const(-5))) == (-4, 4)
    assert an.bounds(table[x]) == (-INF, INF)
    assert an.bounds(E.Cast("int32", small[x])) == (0, 255)
    assert an.bounds(E.Cast("int32", flag)) == (0, 1)
    assert an.bounds(E.Cast("int64", x)) == (-3, 5)
    assert an.bounds(E.Cast("int32", Var("u", "uint32"))) == (-INF, INF)
    assert an.bounds(E.Cast("int32", Var("f", "float32"))) == (-INF, INF)


def test_products_of_variables():
    for (a, b), (c, d) in itertools.product([(-2, 3), (0, 4), (-5, -1), (2, 2)], repeat=2):
        an, x = bound(a, b)
        y = Var("y")
        an.bind(y, c, d)
        products = [p * q for p in range(a, b + 1) for q in range(c, d + 1)]
        assert an.bounds(x * y) == (min(products), max(products))
        assert an.can_prove_equal((x + 2) * (y - 3), x * y - 3 * x + 2 * y - 6)


@pytest.mark.parametrize("divisor", [-7, -3, -1, 1, 2, 6])
def test_quotients_and_remainders_of_either_sign(divisor):
    for low, high in ((-9, 9), (0, 20), (-20, -2), (3, 5)):
        an, x = bound(low, high)
        for build, plain in ((E.FloorDiv, operator.floordiv), (E.FloorMod, operator.mod)):
            expr = build(x, ops.const(divisor))
            values = [plain(v, divisor) for v in range(low, high + 1)]
            first, last = an.bounds(expr)
            assert first <= min(values)
            assert max(values) <= last
            if divisor > 0 and build is E.FloorDiv:
                assert (first, last) == (min(values), max(values))
            for v in (low, high):  # with the variable put in, it is that number
                told = an.substitute(an.linear(expr), {an.var_atom(x): an.constant(v)})
                assert (told.terms, told.const) == ({}, plain(v, divisor))


def test_half_open_bounds():
    an, n = Analyzer(), E.SizeVar("n")
    assert an.bounds(n) == (0, INF)
    assert an.bounds(n // 4) == (0, INF)
    assert an.bounds((0 - n) // 4) == (-INF, 0)
    assert an.bounds(n % 4) == (0, 3)
    assert an.bounds(ops.minimum(n, 7)) == (0, 7)
    assert an.bounds(ops.maximum(n, 7)) == (7, INF)
    assert an.bounds(Var("any")) == (-INF, INF)


# -- random expressions with products, choices and negative divisors -------------------------------

X, Y, FLAG = Var("x"), Var("y"), Var("flag", "bool")
SPANS = {X: range(-4, 5), Y: range(3)}


def value_of(expr, point):
    """Evaluate by Python's integers."""
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, Var):
        return point[expr]
    if isinstance(expr, E.Select):
        return value_of(expr.true_value if point[FLAG] else expr.false_value, point)
    a, b = value_of(expr.a, point), value_of(expr.b, point)
    plain = {
        E.Add: operator.add, E.Sub: operator.sub, E.Mul: operator.mul, E.Min: min, E.Max: max,
        E.FloorDiv: operator.floordiv, E.FloorMod: operator.mod,
        E.Div: lambda p, q: abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1),
        E.Mod: lambda p, q: abs(p) % abs(q) * (1 if p >= 0 else -1),
    }  # fmt: skip
    return plain[type(expr)](a, b)


def grown(inner):
    number = st.sampled_from([-6, -4, -3, -2, -1, 1, 2, 3, 4, 6, 8, 12]).map(ops.const)
    both = st.sampled_from([E.Add, E.Sub, E.Mul, E.Min, E.Max])
    split = st.sampled_from([E.FloorDiv, E.FloorMod, E.Div, E.Mod])
    return st.one_of(
        st.tuples(both, inner, inner).map(lambda t: t[0](t[1], t[2])),
        st.tuples(split, inner, number).map(lambda t: t[0](t[1], t[2])),
        st.tuples(inner, number).map(lambda t: E.Mul(*t)),
        st.tuples(inner, inner).map(lambda t: E.Select(FLAG, *t)),
    )


leaves = st.one_of(st.sampled_from([X, Y]), st.integers(-9, 9).map(ops.const))
expressions = st.recursive(leaves, grown, max_leaves=7)


def points():
    for x, y, flag in itertools.product(SPANS[X], SPANS[Y], (False, True)):
        yield {X: x, Y: y, FLAG: flag}


def fresh():
    an = Analyzer()
    for var, span in SPANS.items():
        an.bind(var, span[0], span[-1])
    return an


@settings(max_examples=200, deadline=None)
@given(expressions, st.sampled_from(list(COMPARISONS)), expressions)
def test_values_bounds_divisors_and_verdicts(expr, kind, other):
    an = fresh()
    simple = an.simplify(expr)
    low, high = an.bounds(expr)
    modulus, rest = an.modular_set(expr)
    verdict = an.simplify(kind(expr, other))
    equal = an.can_prove_equal(expr, other)
    for point in points():
        value, right = value_of(expr, point), value_of(other, point)
        assert value_of(simple, point) == value
        assert low <= value <= high
        assert value == rest if modulus == 0 else value % modulus == rest
        if isinstance(verdict, IntImm):
            assert verdict.value == COMPARISONS[kind](value, right)
        assert not equal or value == right


@settings(max_examples=120, deadline=None)
@given(expressions, st.tuples(st.integers(-5, 5), st.integers(0, 4)))
def test_intervals_while_one_variable_runs(expr, ends):
    """The ends are sums of the other variable alone, and hold every value in between."""
    an = fresh()
    first, extent = ends[0] if ends[0] >= -4 else -4, ends[1]
    last = min(4, first + extent)
    first = min(first, last)
    ranges = {an.var_atom(X): (an.constant(first), an.constant(last))}
    found = interval_of(an, an.linear(expr), ranges)
    if found is None:
        return
    low, high = (an.to_expr(end) for end in found)
    for point in points():
        if first <= point[X] <= last:
            for x in SPANS[X]:  # the ends do not depend on the variable that runs
                elsewhere = {**point, X: x}
                at = value_of(expr, point)
                assert value_of(low, elsewhere) <= at <= value_of(high, elsewhere)


@settings(max_examples=120, deadline=None)
@given(expressions, st.integers(-3, 3), st.integers(-4, 4))
def test_substitution_is_that_of_values(expr, factor, shift):
    an = fresh()
    y = an.var_atom(Y)
    put = an.linear(Y * factor + shift)
    an.bind(X, -20, 20)  # what is put in reaches further
    made = an.to_expr(an.substitute(an.linear(expr), {an.var_atom(X): put}))
    assert y.expr is Y
    for point in points():
        inside = {**point, X: point[Y] * factor + shift}
        assert value_of(made, point) == value_of(expr, inside)


def test_intervals_are_tight_where_the_form_is_simple():
    an = fresh()
    x, y = an.var_atom(X), an.var_atom(Y)
    ranges = {x: (an.constant(1), an.constant(3))}

    def ends(expr):
        found = interval_of(an, an.linear(expr), ranges)
        return None if found is None else tuple(str(an.to_expr(e)) for e in found)

    assert ends(X) == ("1", "3")
    assert ends(X * 2 + 5) == ("7", "11")
    assert ends(5 - X) == ("2", "4")
    assert ends(X * Y) == ("y", "y * 3")
    assert ends((X + 8) // 4) == ("2", "2")
    assert ends((X + 8) % 4) == ("1", "3")
    assert ends(ops.minimum(X * 4, 7)) == ("4", "7")
    assert ends(ops.maximum(X * 4, 7)) == ("7", "12")
    assert ends(Y + 1) == ("y + 1", "y + 1")
    n = Var("n")
    assert ends(n * X) is None or ends(n * X) == ("n", "n * 3")
    a, b = (an.constant(1), an.constant(4)), (an.constant(-2), an.constant(2))
    assert [e.const for e in union(an, a, b)] == [-2, 4]
    assert union(an, a, a) is a
    assert y in an.linear(Y).terms


# -- vectors ---------------------------------------------------------------------------------------


def lanes_of(expr, point):
    if isinstance(expr, E.Ramp):
        base, stride = value_of(expr.base, point), value_of(expr.stride, point)
        return base + stride * np.arange(expr.num_lanes)
    if isinstance(expr, E.Broadcast):
        return np.full(expr.num_lanes, value_of(expr.value, point))
    plain = {E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply}
    return plain[type(expr)](lanes_of(expr.a, point), lanes_of(expr.b, point))


vectors = st.one_of(
    st.tuples(leaves, leaves).map(lambda t: E.Ramp(t[0], t[1], 4)),
    leaves.map(lambda e: E.Broadcast(e, 4)),
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([E.Add, E.Sub, E.Mul]), vectors, vectors)
def test_sums_and_products_of_vectors(kind, a, b):
    an = fresh()
    simple = an.simplify(kind(a, b))
    both = isinstance(a, E.Ramp) and isinstance(b, E.Ramp)
    if not (kind is E.Mul and both):
        assert isinstance(simple, (E.Ramp, E.Broadcast))
    assert simple.lanes == 4
    for point in points():
        np.testing.assert_array_equal(lanes_of(simple, point), lanes_of(kind(a, b), point))


def test_zero_and_one_disappear_from_floats():
    an, x = Analyzer(), Var("x", "float32")
    zero, one, two = (ops.const(v, "float32") for v in (0.0, 1.0, 2.0))
    assert an.simplify(E.Add(x, zero)) is an.simplify(E.Add(zero, x)) is x
    assert an.simplify(E.Sub(x, zero)) is an.simplify(E.Mul(x, one)) is x
    assert an.simplify(E.Mul(one, x)) is x
    for kept in (E.Sub(zero, x), E.Add(x, one), E.Mul(x, two), E.Mul(x, zero), E.Div(x, one)):
        assert an.simplify(kept) is kept
    wide = Var("v", "float32x4")
    assert an.simplify(E.Add(wide, E.Broadcast(zero, 4))) is wide
    assert an.simplify(E.Mul(E.Broadcast(one, 4), wide)) is wide


def test_choices_of_known_conditions():
    an, x = bound(0, 3)
    f, g = Var("f", "float32"), Var("g", "float32")
    for condition, chosen in ((x < 4, f), (x < 0, g)):
        assert an.simplify(E.Select(condition, f, g)) is chosen
        assert an.simplify(E.Call("float32", "if_then_else", (condition, f, g))) is chosen
        assert an.can_prove_equal(E.Select(condition, x, x + 9), x if chosen is f else x + 9)
        call = E.Call("int32", "if_then_else", (condition, x, x + 9))
        assert an.can_prove_equal(call, x if chosen is f else x + 9)
    assert an.simplify(E.Select(x < 2, f, f)) is f
    stays = E.Select(x < 2, f, g)
    assert an.simplify(stays) is stays
    assert an.can_prove(E.Call("bool", "likely", (x < 4,)))
    assert an.can_prove_equal(E.Select(x < 2, x, x), x)


def test_shifts_are_products():
    an, x = bound(0, 3)
    for count in (0, 1, 30):
        shifted = E.Call("int32", "shift_left", (x, ops.const(count)))
        assert an.linear(shifted).terms == {an.var_atom(x): 1 << count}
    wide = E.Call("int32", "shift_left", (x, ops.const(31)))
    assert an.linear(wide).terms.keys() != {an.var_atom(x)}


def test_sums():
    an, x = bound(0, 3)
    y = Var("y")
    sum_of = an.linear(x * 4 + y * 6 + 7)
    assert sum_of.modular() == (2, 1)
    assert an.linear(x * 4 + 9).modular() == (4, 1)
    assert an.linear(x * 4 - 1).modular() == (4, 3)
    assert an.constant(9).modular() == (0, 9)
    assert an.constant(-9).modular() == (0, -9)
    assert (sum_of.scaled(0).terms, sum_of.scaled(0).const) == ({}, 0)
    assert sum_of.scaled(1) is sum_of is sum_of.shifted(0)
    assert sum_of.scaled(-2).const == -14
    assert sum_of.minus(sum_of).terms == {}
    assert sum_of.plus(sum_of, 3).key == sum_of.scaled(4).key
    assert an.constant(2).plus(sum_of, 3).key == sum_of.scaled(3).shifted(2).key
    assert sum_of.plus(an.constant(2), -3).const == 1
    assert str(an.constant(-4).to_expr()) == "-4"
    texts = {
        x * 4 + 1: "x * 4 + 1", x - 1: "x - 1", 5 - x: "5 - x", 0 - x: "0 - x",
        y - x * 3: "y - x * 3", y * 2 - x * 3 - 4: "y * 2 - x * 3 - 4",
        x + y * 8 + x: "y * 8 + x * 2",
    }  # fmt: skip
    for expr, text in texts.items():
        fresh_one = Analyzer()
        assert str(fresh_one.simplify(expr)) == text
