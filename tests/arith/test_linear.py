"""Sums of atoms against dictionaries of factors, and against their values at every point."""

import itertools
import math
import random

import pytest

from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF, Linear
from slipway.ir import expr as E
from slipway.ir.expr import SizeVar, Var

SPANS = {"x": (-2, 1), "y": (0, 3), "z": (2, 4)}
FACTORS = (-3, -2, -1, 1, 2, 3, 6)


class Sums:
    """Draws sums of three variables that are bound, and knows their values."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.an = Analyzer()
        self.vars = [Var(name) for name in SPANS]
        for var, span in zip(self.vars, SPANS.values(), strict=True):
            self.an.bind(var, *span)
        self.atoms = [self.an.var_atom(var) for var in self.vars]

    def draw(self):
        """Return a sum, the factors of x, y and z in it, and its constant."""
        factors = [self.random.choice((0, 0, *FACTORS)) for _ in self.atoms]
        const = self.random.randint(-4, 4)
        terms = {a: k for a, k in zip(self.atoms, factors, strict=True) if k}
        return Linear(terms, const, "int32"), factors, const

    def assert_is(self, made, factors, const):
        terms = {a: k for a, k in zip(self.atoms, factors, strict=True) if k}
        assert (made.terms, made.const, made.dtype) == (terms, const, "int32")
        assert made.key == Linear(terms, const, "int32").key
        assert made.is_const == (not terms)


def points():
    return itertools.product(*(range(low, high + 1) for low, high in SPANS.values()))


def values(factors, const):
    return [sum(k * v for k, v in zip(factors, p, strict=True)) + const for p in points()]


@pytest.mark.parametrize("seed", range(8))
def test_arithmetic_is_that_of_the_factors(seed):
    sums = Sums(seed)
    for _ in range(30):
        (a, ka, ca), (b, kb, cb) = sums.draw(), sums.draw()
        assert a.key != a.shifted(1).key
        assert (a.key == b.key) == ((ka, ca) == (kb, cb))
        for n in (-2, -1, 0, 1, 2, 3):
            sums.assert_is(a.shifted(n), ka, ca + n)
            sums.assert_is(a.scaled(n), [k * n for k in ka], ca * n)
            if n:
                both = [p + n * q for p, q in zip(ka, kb, strict=True)]
                sums.assert_is(a.plus(b, n), both, ca + n * cb)
        sums.assert_is(a.plus(b), [p + q for p, q in zip(ka, kb, strict=True)], ca + cb)
        sums.assert_is(a.minus(b), [p - q for p, q in zip(ka, kb, strict=True)], ca - cb)
        sums.assert_is(a.minus(a), [0, 0, 0], 0)
        sums.assert_is(a, ka, ca)  # none of this has changed it


def test_what_changes_nothing_gives_the_same_object():
    """With what it remembers: its bounds, its key and its text."""
    sums = Sums(0)
    for _ in range(20):
        a, _, const = sums.draw()
        nothing = Linear({}, 0, "int32")
        assert a is a.shifted(0) is a.scaled(1) is a.plus(nothing) is a.minus(nothing)
        assert a.plus(Linear({}, 5, "int32")).const == const + 5
        if a.terms:
            assert nothing.plus(a) is a
        assert a.key is a.key
        assert a.bounds() is a.bounds()
        assert a.to_expr() is a.to_expr()


@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_the_ends_and_moduli_the_steps_of_the_values(seed):
    sums = Sums(seed)
    for _ in range(30):
        a, factors, const = sums.draw()
        found = values(factors, const)
        assert a.bounds() == (a.low, a.high) == (min(found), max(found))
        m = math.gcd(*(v - found[0] for v in found))
        assert a.modular() == (m, found[0] % m if m else found[0])


def test_bounds_without_an_end():
    n, an = SizeVar("n"), Analyzer()
    for factor, ends in ((2, (5, INF)), (-2, (-INF, 5)), (1, (5, INF)), (-1, (-INF, 5))):
        assert Linear({an.var_atom(n): factor}, 5, "int32").bounds() == ends
    free = an.var_atom(Var("free"))
    assert Linear({free: 1}, 5, "int32").bounds() == (-INF, INF)


def text(factors, const):
    """Positive terms first, larger factors first, then as they were met; the constant behind."""
    terms = [(k, name) for k, name in zip(factors, SPANS, strict=True) if k]
    terms.sort(key=lambda term: (term[0] < 0, -abs(term[0])))
    parts = [(k < 0, name if abs(k) == 1 else f"{name} * {abs(k)}") for k, name in terms]
    if not parts or parts[0][0]:
        parts.insert(0, (False, str(const)))
    elif const:
        parts.append((const < 0, str(abs(const))))
    return parts[0][1] + "".join(f" {'-' if sign else '+'} {part}" for sign, part in parts[1:])


@pytest.mark.parametrize("seed", range(8))
def test_the_expression_of_a_sum_has_its_terms_in_order(seed):
    sums = Sums(seed)
    for _ in range(30):
        a, factors, const = sums.draw()
        made = a.to_expr()
        assert str(made) == text(factors, const)
        assert made.dtype == "int32"
        assert Analyzer().linear(made).const == const
    for dtype in ("int32", "int64"):
        x = Var("x", dtype)
        one = Linear({Analyzer().var_atom(x): 3}, -2, dtype).to_expr()
        assert (one.dtype, one.b.dtype, one.a.b.dtype) == (dtype,) * 3
        assert Linear({}, -2, dtype).to_expr().dtype == dtype


def test_atoms_of_each_kind():
    an, x, y = Analyzer(), Var("x"), Var("y")
    atom = an.var_atom(x)
    assert (atom.kind, atom.pure, atom.variables, atom.expr) == ("var", True, {atom}, x)
    real = Var("f", "float32")
    (other,) = an.linear(E.Cast("int32", real)).terms
    assert (other.kind, other.pure, other.variables) == ("other", False, {an.var_atom(real)})
    (div,) = an.linear(E.FloorDiv(x + y, E.IntImm("int32", 3))).terms
    assert (div.kind, div.pure, div.divisor, div.arg.const) == ("div", True, 3, 0)
    assert div.uid > other.uid > atom.uid
