"""Comparisons of extremes and remainders with the sizes inside of them."""

import itertools
import operator

import pytest

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import SizeVar, Var

COMPARISONS = {E.LT: operator.lt, E.LE: operator.le, E.GT: operator.gt, E.GE: operator.ge}
W_LOW, W_HIGH = 4, 11


def sizes():
    return Var("i"), SizeVar("w", "int32", W_LOW, -1)


# For each: the expression of i and w, what Python says it is, and its distance from w at the
# extreme: it is at most (low: at least) w plus that, and takes that for some i.
ENDS = {
    "min": (lambda i, w: ops.minimum(i * 6, w - 6), lambda i, w: min(i * 6, w - 6), "most", -6),
    "min, first": (lambda i, w: ops.minimum(w - 2, i), lambda i, w: min(w - 2, i), "most", -2),
    "max": (lambda i, w: ops.maximum(i * 3, w + 1), lambda i, w: max(i * 3, w + 1), "least", 1),
    "less a max": (
        lambda i, w: 2 * w - ops.maximum(w + 3, i), lambda i, w: 2 * w - max(w + 3, i), "most", -3),
    "less a min": (
        lambda i, w: 2 * w - ops.minimum(w - 3, i), lambda i, w: 2 * w - min(w - 3, i), "least", 3),
    "remainder": (lambda i, w: E.FloorMod(i, w), lambda i, w: i % w, "most", -1),
    "remainder of a sum": (
        lambda i, w: E.FloorMod(i, w - 2), lambda i, w: i % (w - 2), "most", -3),
    "less a remainder": (
        lambda i, w: 2 * w - E.FloorMod(i, w), lambda i, w: 2 * w - i % w, "least", 1),
    "twice a remainder": (
        lambda i, w: E.FloorMod(i, w) * 2 - w, lambda i, w: i % w * 2 - w, "most", -2),
}  # fmt: skip


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("name", ENDS)
def test_a_verdict_where_the_end_gives_one_and_nowhere_else(name, kind):
    make, compute, which, distance = ENDS[name]
    for shift in range(-8, 9):
        i, w = sizes()
        simple = Analyzer().simplify(kind(make(i, w) + shift, w))
        found = bool(simple.value) if isinstance(simple, E.IntImm) else None
        answers = {
            COMPARISONS[kind](compute(a, b) + shift, b)
            for a, b in itertools.product(range(-30, 60), range(W_LOW, W_HIGH))
        }
        if which == "most":  # it is below w from there on, and nothing else is known
            below = distance + shift < 0 if kind in (E.LT, E.GE) else distance + shift <= 0
            wanted = (kind in (E.LT, E.LE)) if below else None
        else:
            above = distance + shift > 0 if kind in (E.GT, E.LE) else distance + shift >= 0
            wanted = (kind in (E.GT, E.GE)) if above else None
        assert found == wanted, shift
        assert found is None or answers == {found}


def test_remainders_by_what_may_be_negative_have_no_end():
    i, w = Var("i"), Var("w")
    an = Analyzer()
    assert not isinstance(an.simplify(E.FloorMod(i, w) < w), E.IntImm)
    assert an.bounds(E.FloorMod(i, w)) == (float("-inf"), float("inf"))
    one = SizeVar("n", "int32", 0, 9)  # nor by what may be none
    assert not isinstance(an.simplify(E.FloorMod(i, one) < one), E.IntImm)


@pytest.mark.parametrize("first", [(-7, -3), (-7, 5), (0, 5), (3, 20), (-1, 0), (-3, -3)])
@pytest.mark.parametrize("by", [(1, 1), (1, 4), (3, 8), (6, 6)])
def test_bounds_of_quotients_and_remainders(first, by):
    an, i, w = Analyzer(), Var("i"), Var("w")
    an.bind(i, *first)
    an.bind(w, *by)
    pairs = list(itertools.product(range(first[0], first[1] + 1), range(by[0], by[1] + 1)))
    quotients = [a // b for a, b in pairs]
    assert an.bounds(E.FloorDiv(i, w)) == (min(quotients), max(quotients))
    low, high = an.bounds(E.FloorMod(i, w))
    remainders = [a % b for a, b in pairs]
    assert low <= min(remainders)
    assert max(remainders) <= high <= by[1] - 1


def test_bounds_of_quotients_without_an_end():
    an, i, w = Analyzer(), Var("i"), SizeVar("w", "int32", 3, -1)
    assert an.bounds(E.FloorDiv(i, w)) == (float("-inf"), float("inf"))
    an.bind(i, 0, float("inf"))
    assert an.bounds(E.FloorDiv(i, w)) == (0, float("inf"))
    an.bind(i, -7, 20)
    assert an.bounds(E.FloorDiv(i, w)) == (-3, 6)
    assert an.bounds(E.FloorMod(i, w)) == (0, float("inf"))


def test_equality_is_not_decided_by_an_end():
    i, w = sizes()
    assert not isinstance(Analyzer().simplify(E.EQ(ops.minimum(i, w), w)), E.IntImm)
    assert not isinstance(Analyzer().simplify(E.NE(ops.minimum(i, w), w)), E.IntImm)
