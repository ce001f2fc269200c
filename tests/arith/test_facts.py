"""What is stated of variables: ranges, values, both again, and what of it is remembered."""

import itertools

import pytest

from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.buffer import decl_buffer
from slipway.ir.expr import Range, SizeVar, Var

TABLE = decl_buffer((97,), "int32", name="table")


def number(value):
    return ops.const(value)


# -- ranges and values -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [-3, 0, 5])
@pytest.mark.parametrize("extent", [0, 1, 2, 3, 7])
def test_a_loop_of_numbers_runs_from_its_first_step_to_its_last(first, extent):
    an, x = Analyzer(), Var("x")
    an.bind_range(x, Range(number(first), number(extent)))
    steps = range(first, first + extent) or [first]  # of none nothing can be said: one is as good
    assert an.bounds(x) == (steps[0], steps[-1])
    assert an.linear(x).is_const == (len(steps) == 1)


def test_a_loop_whose_ends_are_sums():
    for shift, factor, extent in itertools.product((0, 2), (1, 4), (2, 3)):
        an, x, y = Analyzer(), Var("x"), Var("y")
        an.bind(y, 0, 2)
        an.bind_range(x, Range(y * factor + shift, number(extent)))
        assert an.bounds(x) == (shift, shift + 2 * factor + extent - 1)
    an, x, y, n = Analyzer(), Var("x"), Var("y"), SizeVar("n")
    an.bind(y, 0, 2)
    an.bind_range(x, Range(number(5), y + 1))
    assert an.bounds(x) == (5, 7)
    an.bind_range(x, Range(number(5), n))
    assert an.bounds(x) == (5, INF)
    an.bind_range(x, Range(number(5), 3 - n * 2))  # as few as none
    assert an.bounds(x) == (5, 7)


def test_a_loop_of_one_step_is_its_first_step():
    an, x, y = Analyzer(), Var("x"), Var("y")
    an.bind(y, 0, 2)
    an.bind_range(x, Range(y * 4 + 1, number(1)))
    assert an.linear(x).key == an.linear(y * 4 + 1).key
    assert an.bounds(x) == (1, 9)
    assert str(an.simplify(x * 2)) == "y * 8 + 2"
    an.bind_range(x, Range(y * 4 + 1, number(2)))
    assert an.bounds(x) == (1, 10)
    assert an.var_atom(x) in an.linear(x).terms


def stated(an, x, fact):
    """State one of the facts of x, and return what its bounds are then."""
    if isinstance(fact, tuple):
        an.bind(x, *fact)
        return fact
    an.bind_value(x, fact)
    return an.bounds(fact) if isinstance(fact, E.PrimExpr) else fact.bounds()


@pytest.mark.parametrize("used", [True, False])
def test_the_last_of_two_facts_counts(used):
    y = Var("y")
    facts = [(0, 3), (3, 3), (0, 0), (-1, 3), (0, 4), y + 1, y * 2 - 5, number(7)]
    for first, second in itertools.product(facts, repeat=2):
        an, x = Analyzer(), Var("x")
        an.bind(y, 0, 2)
        stated(an, x, first)
        products = [x + 1, x * y, E.FloorDiv(x, number(2)), ops.maximum(x, y)]
        if used:
            for expr in products:
                an.bounds(expr)
                an.simplify(E.LT(expr, number(2)))
        low, high = stated(an, x, second)
        assert an.bounds(x) == (low, high)
        assert an.bounds(x + 1) == (low + 1, high + 1)
        again = Analyzer()
        again.bind(y, 0, 2)
        stated(again, x, second)
        for expr in products:
            assert an.bounds(expr) == again.bounds(expr)
            for condition in (E.LT(expr, number(2)), E.GE(expr, number(2))):
                assert an.can_prove(condition) == again.can_prove(condition)
        if not isinstance(second, tuple):
            assert an.linear(x).key == an.linear(second).key


def test_what_is_stated_of_a_variable_after_its_use():
    an, x = Analyzer(), Var("x")
    assert an.bounds(x) == (-INF, INF)
    assert not an.can_prove(x < 4)
    an.bind(x, 0, 3)
    assert an.can_prove(x < 4)
    an, x, y = Analyzer(), Var("x"), Var("y")
    assert not an.can_prove_equal(x, y + 1)
    an.bind_value(x, y + 1)
    assert an.can_prove_equal(x, y + 1)


def test_the_same_fact_again_changes_nothing():
    an, x = Analyzer(), Var("x")
    an.bind(x, 0, 3)
    atom, total = an.var_atom(x), an.linear(x + 1)
    an.bind(x, 0, 3)
    assert an.var_atom(x) is atom
    assert an.linear(x + 1).key == total.key


def test_what_no_fact_touches_is_kept():
    """Values that arithmetic does not look into are known by their text, but for what they read."""
    an, x, y, flag = Analyzer(), Var("x"), Var("y"), Var("flag", "bool")
    an.bind(y, 0, 2)
    an.bind(x, 0, 3)
    other = E.Call("int32", "bitwise_or", (y, number(9)))
    mine = E.Select(flag, x, number(1))
    kept, stale = an.linear(other), an.linear(mine)
    assert stale.bounds() == (0, 3)
    an.bind(x, 0, 30)
    assert an.linear(other).key == kept.key
    assert an.linear(mine).key != stale.key
    assert an.bounds(mine) == (0, 30)
    assert an.linear(mine).terms.keys() != stale.terms.keys()
    real = Var("f", "float32")
    rounded = E.Cast("int32", E.Cast("float32", x) + real)
    for expr, other in ((mine, flag), (rounded, real)):
        before = an.linear(expr)
        assert [a.variables for a in before.terms] == [{an.var_atom(x), an.var_atom(other)}]
        an.bind(x, 0, before.const + 40)
        assert an.linear(expr).terms.keys() != before.terms.keys()
        assert [a.variables for a in an.linear(expr).terms] == [
            {an.var_atom(x), an.var_atom(other)}
        ]
        an.bind(x, 0, 30)


# -- names of atoms --------------------------------------------------------------------------------


def test_terms_stand_in_the_order_in_which_they_were_met():
    an, (x, y, z) = Analyzer(), (Var(n) for n in "xyz")
    for var in (x, y, z):
        an.linear(var)
    for order in itertools.permutations((x, y, z)):
        assert str(an.simplify(E.Add(E.Add(order[0], order[1]), order[2]))) == "x + y + z"
        product = an.simplify(E.Mul(E.Mul(order[0], order[1]), order[2]))
        assert str(product) == "x * y * z"


def test_equal_operands_make_equal_values():
    """Built again, of operands that are equal as sums; floats are equal as they are written."""
    an, x, y = Analyzer(), Var("x"), Var("y")
    f, g, h = (Var(n, "float32") for n in "fgh")
    flag = Var("flag", "bool")

    def masked(total):
        return E.Call("int32", "bitwise_or", (total, number(4)))

    def rounded(value):
        return E.Cast("int32", value)

    for build in (masked, lambda t: E.Cast("int64", E.FloorDiv(t, y)), lambda t: E.FloorMod(t, y)):
        assert an.can_prove_equal(build(x + y), build(y + x))
        assert an.can_prove_equal(build(x + 1), build(1 + x))
        assert not an.can_prove_equal(build(x + 1), build(x + 2))
    assert an.can_prove_equal(rounded(f), rounded(f))
    sums = [(f + g) + h, f + (g + h), (g + f) + h, (f - g) + h]
    for one, other in itertools.combinations(sums, 2):
        assert not an.can_prove_equal(rounded(one), rounded(other)), (one, other)
    assert not an.can_prove_equal(rounded(f), E.Cast("int32", g))
    assert not an.can_prove_equal(masked(x), E.Call("int32", "bitwise_and", (x, number(4))))
    load = TABLE[x]
    assert an.can_prove_equal(load + 1, load + 1)
    assert not an.can_prove_equal(load, TABLE[x])  # a store may lie between the two
    assert not an.can_prove_equal(E.Select(flag, x, y), E.Select(flag, y, x))


def test_the_variables_inside_of_what_arithmetic_does_not_look_into():
    an, x, y, n = Analyzer(), Var("x"), Var("y"), Var("n")
    f, flag = Var("f", "float32"), Var("flag", "bool")
    an.bind_value(n, x + y)
    for expr, inside in (
        (TABLE[x * 2 + 1], {x}), (E.Select(flag, x, y), {flag, x, y}), (E.Cast("int32", f), {f}),
        (E.Call("int32", "bitwise_or", (n, number(4))), {x, y}), (TABLE[n], {x, y}),
        (E.Select(x < 3, TABLE[y], number(0)), {x, y}),
        (E.Cast("int32", E.Cast("float32", x) + f), {x, f}),
    ):  # fmt: skip
        (atom,) = an.linear(expr).terms
        assert atom.variables == {an.var_atom(v) for v in inside}, expr
        assert not atom.pure


def test_masks():
    an, x = Analyzer(), Var("x")
    an.bind(x, -9, 9)
    for mask in (-2, -1):
        masked = E.Call("int32", "bitwise_and", (TABLE[x], number(mask)))
        assert an.bounds(masked) == (-INF, INF)


# -- quotients, extremes and products at their borders ---------------------------------------------


def same_for_all(an, one, other, low, high, x):
    """Assert that two sums are the same number for each value of x."""
    for value in range(low, high + 1):
        put = {an.var_atom(x): an.constant(value)}
        ends = [an.substitute(an.linear(expr), put) for expr in (one, other)]
        assert ends[0].key == ends[1].key, (one, other, value)


@pytest.mark.parametrize("c", [2, 3, 4])
@pytest.mark.parametrize("size", [6, 8, 9, 10, 11, 12])
def test_a_quotient_of_a_remainder(c, size):
    """(x % 12) // 3 is (x // 3) % 4; not so with a factor, a summand, or where 3 divides no 12."""
    an, x = Analyzer(), Var("x")
    an.bind(x, -30, 30)
    for factor, more in itertools.product((1, 2), range(-2, 3)):
        remainder = E.FloorMod(x, number(size))
        quotient = E.FloorDiv(remainder * factor + more, number(c))
        for value in range(-30, 31):
            found = an.substitute(an.linear(quotient), {an.var_atom(x): an.constant(value)})
            assert (found.terms, found.const) == ({}, (value % size * factor + more) // c)
        if size % c == 0 and (factor, more) == (1, 0):
            parts = E.FloorMod(E.FloorDiv(x, number(c)), number(size // c))
            assert an.can_prove_equal(quotient, parts)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (-1, 2), (0, 4), (1, 4), (-1, 3), (3, 3)])
def test_a_small_part_of_a_sum_goes_with_its_common_factor(low, high):
    """(4 * x + y) // 8 is x // 2 where y is 0, 1, 2 or 3, and only there."""
    an, x, y = Analyzer(), Var("x"), Var("y")
    an.bind(x, -9, 9)
    an.bind(y, low, high)
    quotient, remainder = (kind(x * 4 + y, number(8)) for kind in (E.FloorDiv, E.FloorMod))
    for p, q in itertools.product(range(-9, 10), range(low, high + 1)):
        put = {an.var_atom(x): an.constant(p)}
        if low < high:
            put[an.var_atom(y)] = an.constant(q)
        found = [an.substitute(an.linear(e), put) for e in (quotient, remainder)]
        assert [f.const for f in found] == [(p * 4 + q) // 8, (p * 4 + q) % 8]
    small = 0 <= low <= high < 4
    assert an.can_prove_equal(quotient, E.FloorDiv(x, number(2))) == small
    assert an.can_prove_equal(remainder, E.FloorMod(x, number(2)) * 4 + y) == small


@pytest.mark.parametrize("divisor", [1, 2, 4, 7])
def test_between_two_multiples_a_remainder_is_a_difference(divisor):
    for first in range(-9, 9):
        for extent in range(1, divisor + 1):
            an, x = Analyzer(), Var("x")
            an.bind(x, first, first + extent - 1)
            quotients = {v // divisor for v in range(first, first + extent)}
            whole, rest = (kind(x, number(divisor)) for kind in (E.FloorDiv, E.FloorMod))
            if len(quotients) == 1:
                (q,) = quotients
                assert an.can_prove_equal(whole, number(q))
                assert an.can_prove_equal(rest, x - q * divisor)
            else:
                assert not an.linear(whole).is_const


def test_quotients_of_what_has_no_end():
    an, n, x = Analyzer(), SizeVar("n"), Var("x")
    for sum_of in (n, x, n + x, 0 - n):
        for kind in (E.FloorDiv, E.FloorMod):
            (atom,) = an.linear(kind(sum_of, number(4))).terms
            assert atom.kind in ("div", "mod")


def test_a_quotient_of_a_quotient_joins_its_remainder():
    """3 * (t // 6) + (t // 2) % 3 is t // 2, as often as it is there."""
    an, t, y = Analyzer(), Var("t"), Var("y")
    half = E.FloorDiv(t, number(2))
    sixth, rest = E.FloorDiv(t, number(6)), E.FloorMod(half, number(3))
    for times, more in itertools.product((1, -2), (number(0), y + 1)):
        assert an.can_prove_equal((sixth * 3 + rest) * times + more, half * times + more)
        assert not an.can_prove_equal((sixth * 4 + rest) * times + more, half * times + more)
        assert not an.can_prove_equal((sixth * 3 - rest) * times + more, half * times + more)
    assert str(an.simplify(sixth * 3 + rest)) == "t // 2"


def test_extremes_that_touch_are_decided():
    an, x, y = Analyzer(), Var("x"), Var("y")
    an.bind(x, 0, 3)
    for low, high in itertools.product((-1, 0, 1), (2, 3, 4)):
        lower, upper = ops.minimum(x, number(high)), ops.maximum(x, number(low))
        assert an.can_prove_equal(E.Min(x, number(high)), x) == (high >= 3)
        assert an.can_prove_equal(E.Max(x, number(low)), x) == (low <= 0)
        assert an.bounds(lower) == (0, min(high, 3))
        assert an.bounds(upper) == (max(low, 0), 3)
    for kind in (E.Min, E.Max):
        assert an.can_prove_equal(kind(x, y) + 1, kind(y, x) + 1)
        assert not an.can_prove_equal(kind(x, y), kind(x, y + 1))
    assert not an.can_prove_equal(E.Min(x, y), E.Max(x, y))


def test_bounds_of_products_with_one_and_without_end():
    ends = [(1, 3), (-1, 3), (1, 1), (0, 0), (-1, -1), (0, 2)]
    for (a, b), (c, d) in itertools.product(ends, repeat=2):
        an, x, y = Analyzer(), Var("x"), Var("y")
        an.bind(x, a, b)
        an.bind(y, c, d)
        products = [p * q for p in range(a, b + 1) for q in range(c, d + 1)]
        assert an.bounds(x * y) == (min(products), max(products))
    an, x, n, m = Analyzer(), Var("x"), SizeVar("n"), SizeVar("m")
    an.bind(x, 0, 3)
    assert an.bounds(x * n) == an.bounds(n * x) == an.bounds(n * m) == (0, INF)
    an.bind(x, -1, 3)
    assert an.bounds(x * n) == (-INF, INF)
    an, x, y, below = Analyzer(), Var("x"), Var("y"), Var("below")
    an.bind(x, 0, 3)
    an.bind(below, -INF, 5)
    an.linear(x)  # its atom comes first
    assert an.bounds(x * y) == an.bounds(y * x) == (-INF, INF)
    assert an.bounds(x * below) == (-INF, 15)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (4, 4), (16, 1), (17, 1), (3, 6), (5, 4)])
def test_products_of_long_sums_stay_products(first, second):
    """Of up to 16 terms they are multiplied out; the value is that of the product either way."""
    an = Analyzer()
    names = [Var(f"v{n}") for n in range(first + second)]
    one, other = names[0] * 2, names[first] * 3
    for n, var in enumerate(names[1:first]):
        one = one + var * (n + 1)
    for n, var in enumerate(names[first + 1 :]):
        other = other - var * (n + 2)
    product = an.linear(one * other)
    assert len(product.terms) == (first * second if first * second <= 16 else 1)
    assert an.can_prove_equal(other * one + 1, one * other + 1)
    assert frozenset().union(*(a.variables for a in product.terms)) == set(map(an.var_atom, names))
    made = an.simplify(one * other)
    assert an.simplify(made) is made
    if first * second > 16:
        assert not an.can_prove_equal(one * other, one * (other + 1))
        small = Analyzer()
        for n, name in enumerate(names):
            small.bind(name, n % 3 - 1, n % 3)
        ends = [p * q for p in small.bounds(one) for q in small.bounds(other)]
        assert small.bounds(one * other) == (min(ends), max(ends))
    numbers = {an.var_atom(var): an.constant(n % 5 - 1) for n, var in enumerate(names)}
    ends = [an.substitute(an.linear(part), numbers) for part in (one, other)]
    found = an.substitute(product, numbers)
    assert (found.terms, found.const) == ({}, ends[0].const * ends[1].const)


def test_what_reads_memory_anywhere_is_not_pure():
    an, x, y = Analyzer(), Var("x"), Var("y")
    load = TABLE[y]
    for pure, part in ((True, y), (False, load)):
        for expr in (
            E.Mul(x, part), E.Mul(part, x), E.FloorDiv(x + part, number(3)),
            E.FloorMod(x + part, number(3)), E.Min(x, part), E.Max(part, x), E.Min(part, x + 2),
            E.FloorDiv(E.Min(x, part), number(3)), E.Mul(E.FloorMod(part, number(3)), x),
        ):  # fmt: skip
            (atom,) = an.linear(expr).terms
            assert atom.pure == pure, expr
            assert atom.variables == {an.var_atom(x), an.var_atom(y)}


# -- what is remembered ----------------------------------------------------------------------------


def test_numbers_are_simple_as_they_are():
    an = Analyzer()
    for value in (number(3), number(3000), ops.const(2.5, "float32"), ops.TRUE):
        assert an.simplify(value) is value


def test_nothing_is_simplified_twice(monkeypatch):
    """A value that is read twice, thirty times over, would take 2 ** 30 steps."""
    an, f, x, flag = Analyzer(), Var("f", "float32"), Var("x"), Var("flag", "bool")
    value = f
    for _ in range(30):
        value = value * value + E.Cast("float32", x + 1 - 1)
    made = an.simplify(value)
    both = an.simplify(E.And(flag, E.LT(x + 1 - 1, number(3))))
    rebuilt = []
    rebuild = Analyzer.rebuild
    monkeypatch.setattr(Analyzer, "rebuild", lambda an, e: rebuilt.append(e) or rebuild(an, e))
    for one in (value, made, both):
        again = an.simplify(one)
        assert again is (made if one is value else one)
    assert rebuilt == []


def test_a_size_that_can_only_be_zero():
    an, none = Analyzer(), SizeVar("none", "int32", 0, 0)
    assert an.bounds(none + 3) == (3, 3)
    assert an.bounds(SizeVar("open", "int32", 2, -1) * 1) == (2, INF)
