"""Comparisons of extremes and remainders with the sizes inside of them."""

import itertools
import operator

import pytest

from slipway.arith.analyzer import Analyzer
from slipway.arith.linear import INF
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import SizeVar, Var
from slipway.ir.visit import substitute, walk

COMPARISONS = {E.LT: operator.lt, E.LE: operator.le, E.GT: operator.gt, E.GE: operator.ge}
SWAPPED = {E.LT: E.GT, E.LE: E.GE, E.GT: E.LT, E.GE: E.LE}
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


# -- quotients by what they divide, and loops of open numbers of steps -----------------------------


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("shift", [-2, -1, 0, 1, 2])
def test_quotients_are_compared_by_what_is_divided(kind, shift):
    """q = (c + min(8 * i, h * w - 8)) // w with c in 0..7 is below h, and nothing closer."""
    c, i, w = Var("c"), Var("i"), SizeVar("w", "int32", 3, -1)
    h = SizeVar("h", "int32", 3, -1)
    an = Analyzer()
    an.bind(c, 0, 7)
    an.bind(i, 0, 99)
    quotient = E.FloorDiv(c + ops.minimum(i * 8, h * w - 8), w)
    for left, right, how in ((quotient, h, kind), (h, quotient, SWAPPED[kind])):
        simple = an.simplify(how(left, right + shift))
        found = bool(simple.value) if isinstance(simple, E.IntImm) else None
        answers = {
            how_(left_, right_ + shift)
            for a, b, p, q in itertools.product(range(8), range(0, 60, 7), (3, 5, 9), (3, 4, 8))
            if p * q >= 8
            for at in [(a + min(8 * b, p * q - 8)) // q]
            for how_ in [COMPARISONS[how]]
            for left_, right_ in [(at, p) if left is quotient else (p, at)]
        }
        assert found is None or answers == {found}
        side = shift if left is quotient else -shift
        decided = side >= 0 if kind in (E.LT, E.GE) else side >= -1
        assert (found is not None) == decided


def test_a_loop_of_an_open_number_of_steps_ends_before_it():
    an = Analyzer()
    k, n, h = Var("k"), SizeVar("n", "int32", 1, -1), SizeVar("h", "int32", 1, -1)
    an.bind_range(k, E.Range(ops.const(0), n * h * 4))
    assert an.can_prove(k < n * h * 4)
    assert an.can_prove(E.FloorDiv(k, h * 4) < n)
    assert an.can_prove(E.FloorDiv(E.FloorDiv(k, h), 4) < n)
    assert an.can_prove(E.FloorDiv(E.FloorDiv(k, 4), h) < n)
    assert not an.can_prove(k + 1 < n * h * 4)
    assert not an.can_prove(E.FloorDiv(k, h) < n)
    assert not an.can_prove(E.FloorDiv(k, 2) < n)


def test_a_loop_that_begins_elsewhere():
    an = Analyzer()
    k, n = Var("k"), SizeVar("n", "int32", 1, -1)
    an.bind_range(k, E.Range(ops.const(3), n))
    assert an.can_prove(k < n + 3)
    assert not an.can_prove(k < n + 2)


def test_another_loop_of_the_same_variable_has_its_own_end():
    an = Analyzer()
    k, n, m = Var("k"), SizeVar("n", "int32", 1, -1), SizeVar("m", "int32", 1, -1)
    an.bind_range(k, E.Range(ops.const(0), n))
    assert an.can_prove(k < n)
    an.bind_range(k, E.Range(ops.const(0), m))
    assert an.can_prove(k < m)
    assert not an.can_prove(k < n)
    an.bind(k, 0, 7)
    assert not an.can_prove(k < m)
    an.bind_range(k, E.Range(ops.const(0), n))
    an.bind_value(k, ops.const(5))
    assert not an.can_prove(k < n)


def test_an_end_without_sizes_is_not_kept():
    an = Analyzer()
    k, j = Var("k"), Var("j")
    an.bind(j, 0, 9)
    an.bind_range(k, E.Range(ops.const(0), j + 1))
    assert not an.can_prove(k <= j)  # a loop inside of another: as ever


def test_steps_come_to_an_end():
    """Nothing is decided of what would take more replacements than are tried."""
    an, w = Analyzer(), SizeVar("w", "int32", 1, -1)
    deep = Var("i")
    for number in range(12):
        deep = ops.minimum(deep + 1, Var(f"x{number}") + w)
    assert not isinstance(an.simplify(deep < w), E.IntImm)


def blocks(t, number):
    return E.FloorDiv(t + (number - 1), ops.const(number))


def test_a_loop_over_blocks_of_a_shifted_axis():
    """The last of its vectors lies inside of the padded blocks, whose number is computed apart."""
    an, i, v = Analyzer(), Var("i"), Var("v")
    t = SizeVar("t", "int32", 8, -1)
    an.bind(v, 0, 1)
    last = ops.minimum(blocks(t, 8) * 8 - 8, t - 8)
    an.bind_range(i, E.Range(ops.const(0), E.FloorDiv(last + 7, ops.const(16)) + 1))
    assert an.can_prove(i * 2 + v < blocks(t, 16) * 2)
    assert an.can_prove(i * 2 + 1 < blocks(t, 16) * 2)
    assert an.can_prove(i * 2 + v < 0 - E.FloorDiv(0 - t, ops.const(16)) * 2)
    assert not an.can_prove(i * 2 + v + 1 < blocks(t, 16) * 2)
    assert not an.can_prove(i * 2 + v < blocks(t, 16))


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("shift", range(-5, 6))
def test_common_factors_and_variables_with_ends(kind, shift):
    """2 q + v + shift against 2 h, where q is a quotient below h and v is 0 or 1."""
    an, k, v, h, w = Analyzer(), Var("k"), Var("v"), SizeVar("h", "int32", 1, -1), Var("w")
    an.bind(v, 0, 1)
    an.bind(w, 2, 5)
    an.bind_range(k, E.Range(ops.const(0), h * 4))
    quotient = E.FloorDiv(k, ops.const(4))
    simple = an.simplify(kind(quotient * 2 + v + shift, h * 2))
    found = bool(simple.value) if isinstance(simple, E.IntImm) else None
    answers = {
        COMPARISONS[kind](a // 4 * 2 + b + shift, c * 2)
        for c in (1, 2, 5) for a in range(c * 4) for b in (0, 1)
    }  # fmt: skip
    assert found is None or answers == {found}
    below = shift <= 0 if kind in (E.LT, E.GE) else shift <= 1
    assert (found is not None) == below


@pytest.mark.parametrize("number", [2, 3, 16])
def test_rounded_down_and_up(number):
    """c * (t // c) is at most t, and more than t - c; rounding up is rounding down of less."""
    an, t = Analyzer(), SizeVar("t", "int32", 1, -1)
    down, up = E.FloorDiv(t, ops.const(number)) * number, blocks(t, number) * number
    assert an.can_prove(down <= t)
    assert an.can_prove(t - number < down)
    assert an.can_prove(t <= up)
    assert an.can_prove(up < t + number)
    assert not an.can_prove(down < t)
    assert not an.can_prove(t < up)
    assert not an.can_prove(up < t + number - 1)
    negative = 0 - E.FloorDiv(0 - t, ops.const(number)) * number
    assert an.can_prove(t <= negative)
    assert an.can_prove(negative < t + number)


@pytest.mark.parametrize("number", [2, 3, 16])
def test_extremes_that_rounding_decides(number):
    """Where the last of overlapping tiles begins is one formula, not the smaller of two."""
    an, t = Analyzer(), SizeVar("t", "int32", 1, -1)
    down, up = E.FloorDiv(t, ops.const(number)) * number, blocks(t, number) * number
    for extreme, other in ((ops.minimum, ops.maximum), (ops.maximum, ops.minimum)):
        smaller = extreme is ops.minimum
        assert str(an.simplify(extreme(up - number, t - number))) == str(
            an.simplify(t - number if smaller else up - number)
        )
        assert str(an.simplify(extreme(down, t))) == str(an.simplify(down if smaller else t))
        assert str(an.simplify(other(t, down))) == str(an.simplify(t if smaller else down))
    assert isinstance(an.simplify(ops.minimum(up - 1, t)), E.Min) == (number > 2)


@pytest.mark.parametrize("count", range(1, 8))
def test_four_atoms_are_replaced_one_after_the_other_and_no_more(count):
    """A sum of more of them stays undecided: the search would branch with each."""
    w = SizeVar("w", "int32", 4, -1)
    minima = [ops.minimum(Var(f"i{k}"), w - 1) for k in range(count)]
    simple = Analyzer().simplify(sum(minima[1:], minima[0]) < w * count)
    assert (isinstance(simple, E.IntImm) and bool(simple.value)) == (count <= 4)


@pytest.mark.parametrize(
    ("low", "high", "decided"),
    [(-INF, 5, True), (0, 5, True), (0, INF, False), (-INF, INF, False)],
)
def test_a_variable_with_one_end_is_as_good_as_the_end_that_counts(low, high, decided):
    an, (i, _) = Analyzer(), sizes()
    w = SizeVar("w", "int32", 12, -1)
    an.bind(i, low, high)
    for condition in (i < w, ops.minimum(Var("k"), w - 6) + i < w):
        simple = an.simplify(condition)
        assert (isinstance(simple, E.IntImm) and bool(simple.value)) == decided


def test_a_remainder_by_a_size_of_one_or_more_is_below_it():
    k = Var("k")
    for low, decided in ((0, False), (1, True), (2, True)):
        n = SizeVar("n", "int32", low, 9)
        simple = Analyzer().simplify(E.FloorMod(k, n) < n)
        assert (isinstance(simple, E.IntImm) and bool(simple.value)) == decided


def test_a_quotient_by_a_size_is_told_by_what_it_divides_unless_the_size_may_be_none():
    h = SizeVar("h", "int32", 1, 9)
    for low, decided in ((0, False), (1, True), (2, True)):
        an, k, n = Analyzer(), Var("k"), SizeVar("n", "int32", low, 9)
        an.bind_last(k, an.linear(h * n - 1))
        simple = an.simplify(E.FloorDiv(k, n) < h)
        assert (isinstance(simple, E.IntImm) and bool(simple.value)) == decided
    # Nothing is known of the quotient by what has no range at all.
    assert not isinstance(Analyzer().simplify(E.FloorDiv(Var("k"), Var("m")) < h), E.IntImm)


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("factor", [-3, -1, 1, 2])
def test_quotients_by_numbers_are_compared_as_sums(kind, factor):
    """No quotient is left of y // 13 < 64: steps of a loop that was fused are a sum again."""
    i, holds = Var("i"), COMPARISONS[kind]
    for shift, by in itertools.product(range(-5, 6), (1, 2, 13)):
        simple = Analyzer().simplify(kind(E.FloorDiv(i * 2 - 5, by) * factor + shift, 4))
        assert not any(isinstance(n, E.FloorDiv) for n in walk(simple))
        for value in range(-40, 60):
            now = Analyzer().simplify(substitute(simple, {i: ops.const(value)}))
            assert bool(now.value) == holds((value * 2 - 5) // by * factor + shift, 4)


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize(("factor", "times"), [(1, 2), (-1, 3), (1, -4)])
def test_a_sum_with_one_quotient_is_compared_as_its_dividend(kind, factor, times):
    """2 i + j // 16 < 8 as 32 i + j < 128: steps of two loops that were one."""
    an, i, j, holds = Analyzer(), Var("i"), Var("j"), COMPARISONS[kind]
    an.bind(i, 0, 7)
    an.bind(j, 0, 31)
    simple = an.simplify(kind(i * times + E.FloorDiv(j, 16) * factor, 8 * times // 2))
    assert not any(isinstance(n, E.FloorDiv) for n in walk(simple))
    for x, y in itertools.product(range(8), range(0, 32, 5)):
        now = Analyzer().simplify(substitute(simple, {i: ops.const(x), j: ops.const(y)}))
        assert bool(now.value) == holds(x * times + y // 16 * factor, 8 * times // 2)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_quotients_are_left_where_the_sum_would_have_no_type(kind):
    condition = kind(E.FloorDiv(Var("i"), 2**20), 2**12)
    assert any(isinstance(n, E.FloorDiv) for n in walk(Analyzer().simplify(condition)))


@pytest.mark.parametrize("kind", COMPARISONS)
def test_quotients_that_come_other_times_than_their_divisor(kind):
    """What is padded to a multiple of the stride, against what there is to reflect."""
    decided = 0
    for shift in range(-40, 20):
        n = SizeVar("n", "int32", 20, 60)
        half, whole = ops.floordiv(n + 1, 2), ops.floordiv(n + 7, 8) * 4
        found = Analyzer().simplify(kind(whole - half, half + shift))
        truths = {
            COMPARISONS[kind]((m + 7) // 8 * 4 - (m + 1) // 2, (m + 1) // 2 + shift)
            for m in range(20, 61)
        }
        if isinstance(found, E.IntImm):
            assert truths == {bool(found.value)}
            decided += 1
    assert decided >= 20


def test_a_sum_of_many_extremes_is_decided_once_for_each_choice_of_ends(monkeypatch):
    """Not once for each order in which the extremes are replaced: 29,818 sums for these."""
    seen, recombine = [], Analyzer.recombine
    monkeypatch.setattr(
        Analyzer, "recombine", lambda an, linear: (seen.append(linear), recombine(an, linear))[1]
    )
    total = ops.const(0)
    for k in range(8):
        w = SizeVar(f"w{k}", "int32", 1, -1)
        total = total + ops.minimum(Var(f"i{k}"), w)
    assert not isinstance(Analyzer().simplify(total < 1), E.IntImm)
    assert 1000 < len(seen) < 9000
