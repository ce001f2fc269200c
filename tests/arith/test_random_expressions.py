"""What the Analyzer says of random expressions is so at every point."""

import numpy as np
import pytest
from random_expressions import COMPARISONS, POINTS, SPANS, Draw, N, X, Y, analyzer, value

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import interval_of, union
from slipway.arith.linear import INF
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.visit import children

PARTS = range(10)


def draws(part, count=40):
    """Yield what draws the expressions of a part: a test of few would be mostly pytest."""
    for seed in range(part * count, (part + 1) * count):
        yield Draw(seed)


def same(made, expr, points=POINTS):
    np.testing.assert_array_equal(value(made, points), value(expr, points), f"{expr}\n{made}")


def assert_simple(an, expr):
    """Assert that nothing in a simplified expression can be simplified further."""
    assert an.simplify(expr) is expr
    if expr.dtype in ("int32", "int64") or not children(expr):
        return  # a sum is simple as a whole
    fields = [getattr(expr, f) for f in expr.FIELDS]
    again = type(expr)(*fields)
    assert an.simplify(again) is again, f"{again}: {an.simplify(again)}"
    for child in children(expr):
        if isinstance(child, E.PrimExpr):
            assert_simple(an, child)


@pytest.mark.parametrize("part", PARTS)
def test_simplified_expressions_have_the_same_values(part):
    for draw in draws(part):
        an = analyzer()
        for expr in (draw.whole(4), draw.truth(4), draw.real(4), draw.vector(2)):
            made = an.simplify(expr)
            assert made.dtype == expr.dtype
            same(made, expr)
            assert_simple(an, made)


@pytest.mark.parametrize("part", PARTS)
def test_bounds_and_divisors_hold_every_value(part):
    for draw in draws(part):
        an, expr = analyzer(), draw.whole(4)
        found = value(expr)
        low, high = an.bounds(expr)
        assert low <= found.min(), expr
        assert found.max() <= high, expr
        modulus, rest = an.modular_set(expr)
        assert (found == rest if modulus == 0 else found % modulus == rest).all(), expr


@pytest.mark.parametrize("part", PARTS)
def test_verdicts_are_right(part):
    for draw in draws(part):
        an, a, b = analyzer(), draw.whole(3), draw.pick(draw.whole(3), draw.number())
        for kind, plain in COMPARISONS.items():
            verdict = an.simplify(kind(a, b))
            holds = plain(value(a), value(b))
            assert an.can_prove(kind(a, b)) == (verdict is ops.TRUE)
            if isinstance(verdict, E.IntImm):
                assert (holds == verdict.value).all(), kind(a, b)
        if an.can_prove_equal(a, b):
            same(a, b)


@pytest.mark.parametrize("part", PARTS)
def test_intervals_hold_every_value(part):
    """Whatever the variable that runs is inside of its ends: those may depend on others."""
    for draw in draws(part):
        an, expr = analyzer(), draw.whole(3)
        first, extent = draw.random.randint(-4, 2), draw.random.randint(0, 2)
        shift = draw.pick(0, 0, 1)
        ends = an.linear(Y * shift + first), an.linear(Y * shift + first + extent)
        found = interval_of(an, an.linear(expr), {an.var_atom(X): ends})
        if found is None:
            assert -INF in an.bounds(expr) or INF in an.bounds(expr), expr
            continue
        low, high = (an.to_expr(end) for end in found)
        inside = np.abs(POINTS[X]) <= 4
        for x in range(first, first + 2 * shift + extent + 1):
            runs = {**POINTS, X: np.full_like(POINTS[X], x)}
            start = POINTS[Y] * shift + first
            inside = (start <= x) & (x <= start + extent)
            if abs(x) <= 4:
                assert (value(low, runs) <= value(expr, runs))[inside].all(), expr
                assert (value(high, runs) >= value(expr, runs))[inside].all(), expr


@pytest.mark.parametrize("part", PARTS)
def test_a_union_holds_both_intervals(part):
    for draw in draws(part, 20):
        an = analyzer()
        pair = [(draw.sum(), draw.sum()) for _ in range(2)]
        (a, b), (c, d) = (tuple(map(an.linear, ends)) for ends in pair)
        low, high = (value(an.to_expr(end)) for end in union(an, (a, b), (c, d)))
        np.testing.assert_array_equal(low, np.minimum(value(pair[0][0]), value(pair[1][0])))
        np.testing.assert_array_equal(high, np.maximum(value(pair[0][1]), value(pair[1][1])))


@pytest.mark.parametrize("part", PARTS)
def test_substitution_is_that_of_values(part):
    for draw in draws(part):
        an, expr = Analyzer(), draw.whole(3)
        an.bind(X, -99, 99)
        an.bind(Y, -99, 99)
        puts = {X: draw.sum((Y,)), Y: draw.sum((X,))}
        if draw.random.random() < 0.5:
            del puts[Y]
        if any(isinstance(n, E.Var) and n is Y for n in _divisors(expr)):
            continue  # what is put in may make them 0
        made = an.substitute(
            an.linear(expr), {an.var_atom(v): an.linear(e) for v, e in puts.items()}
        )
        inside = {**POINTS, **{v: value(e) for v, e in puts.items()}}
        assert all(np.abs(inside[v]).max() <= 99 for v in puts)
        np.testing.assert_array_equal(value(an.to_expr(made)), value(expr, inside), str(expr))


def _divisors(expr):
    for node in [expr, *children(expr)]:
        if isinstance(node, (E.FloorDiv, E.FloorMod, E.Div, E.Mod)):
            yield from [node.b, *children(node.b)]
        if node is not expr:
            yield from _divisors(node)


@pytest.mark.parametrize("part", PARTS)
def test_what_was_known_of_a_variable_is_forgotten_when_it_is_bound_again(part):
    """As if the Analyzer had never seen the expression before."""
    for draw in draws(part):
        an, expr = Analyzer(), draw.whole(3)
        an.bind(Y, 0, 2)
        low = draw.random.randint(-4, 4)
        if draw.random.random() < 0.5:
            an.bind_value(X, an.linear(draw.pick(Y + low, ops.const(low))))
        else:
            an.bind(X, low, low + draw.random.randint(0, 3))
        an.simplify(expr)
        an.bounds(expr)
        an.bind(X, -4, 4)
        fresh = analyzer()
        assert an.bounds(expr) == fresh.bounds(expr), expr
        same(an.simplify(expr), expr)
        runs = an.var_atom(X)
        assert _mentions(an.linear(expr), runs) == _mentions(fresh.linear(expr), fresh.var_atom(X))


def _mentions(linear, atom):
    return any(atom in a.variables for a in linear.terms)


# -- what must be found out ------------------------------------------------------------------------


@pytest.mark.parametrize("part", PARTS)
def test_sums_are_equal_in_any_order(part):
    for draw in draws(part, 20):
        atoms = [draw.whole(2) for _ in range(4)]
        counts = [draw.random.randint(-3, 3) for _ in atoms]
        order = draw.random.sample(range(4), 4)
        one = two = ops.const(0)
        for a, k in zip(atoms, counts, strict=True):
            one = E.Add(one, E.Mul(a, ops.const(k)))
        for n in order:
            part_of = draw.random.randint(-2, 2)
            two = E.Sub(E.Mul(atoms[n], ops.const(counts[n] - part_of)), E.Sub(ops.const(0), two))
            two = E.Add(two, E.Mul(ops.const(part_of), atoms[n]))
        assert analyzer().can_prove_equal(one, two), f"{one}\n{two}"


def floordiv(x, c):
    return E.FloorDiv(x, ops.const(c))


def floormod(x, c):
    return E.FloorMod(x, ops.const(c))


@pytest.mark.parametrize("part", PARTS)
def test_quotients_and_remainders_of_sums(part):
    for draw in draws(part, 20):
        x, c, d = draw.sum(), draw.pick(2, 3, 4, 6, 12), draw.pick(2, 3, 4, 5)
        k, more = draw.pick(-2, -1, 1, 3), draw.sum((Y,))
        rows, plain = draw.sum((X, N)), X + N * draw.pick(1, 5)
        small = draw.pick(Y, 2 - Y, E.FloorMod(Y * 5 + 1, ops.const(3)), ops.const(1))
        laws = {
            "quotient and remainder": (floordiv(x, c) * c + floormod(x, c), x),
            "the same some times": (floormod(x, c) * k + more + floordiv(x, c) * (c * k),
                                    x * k + more),
            "remainder of a multiple": (floormod(x * c, c), ops.const(0)),
            "quotient of a multiple": (floordiv(x * (c * d), c), x * d),
            "quotient with a small rest": (floordiv(rows * 3 + small, 3), rows),
            "remainder with a small rest": (floormod(rows * 3 + small, 3), small),
            "quotient of a quotient": (floordiv(floordiv(plain, c), d), floordiv(plain, c * d)),
            "remainder of a remainder": (floormod(floormod(plain, c * d), c), floormod(plain, c)),
            "a multiple more": (floormod(x + c * k, c), floormod(x, c)),
            "a shift by multiples": (floordiv(x + c * k, c), floordiv(x, c) + k),
            "a factor of both": (floordiv(plain * d, c * d), floordiv(plain, c)),
            "a factor of both left": (floormod(plain * d, c * d), floormod(plain, c) * d),
            "by its opposite": (floordiv(x, -c), floordiv(x * -1, c)),
        }  # fmt: skip
        for law, (one, two) in laws.items():
            same(one, two)
            assert analyzer().can_prove_equal(one, two), f"{law}: {one}  {two}"


@pytest.mark.parametrize("part", PARTS)
def test_a_quotient_of_a_part_of_a_remainder(part):
    for draw in draws(part, 20):
        x, c, d = draw.sum((X, Y)), draw.pick(2, 3, 4), draw.pick(2, 3, 5)
        one = floordiv(floormod(x, c * d), c)
        two = floormod(floordiv(x, c), d)
        same(one, two)


def test_spans_are_those_of_the_points():
    assert {v: (POINTS[v].min(), POINTS[v].max()) for v in SPANS} == {
        v: (span[0], span[-1]) for v, span in SPANS.items()
    }
