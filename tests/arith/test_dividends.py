"""Quotients and remainders of one dividend make it up, in two steps and in three."""

import itertools
import random

import pytest

from slipway.arith.analyzer import Analyzer
from slipway.ir import ops
from slipway.ir.expr import Var

OUTER, INNER = Var("o"), Var("i")


@pytest.fixture
def an():
    found = Analyzer()
    found.bind(OUTER, 0, 134)
    found.bind(INNER, 0, 31)
    return found


def div(x, by):
    return ops.floordiv(x, by)


def mod(x, by):
    return ops.floormod(x, by)


def test_three_parts_of_an_index(an):
    """Coefficients below a divisor in each remainder: 32 is 2 modulo 30."""
    made = (
        div(OUTER * 32 + INNER, 30) * 30
        + mod(div(OUTER * 2 + INNER, 5), 6) * 5
        + mod(OUTER * 2 + INNER, 5)
    )
    assert str(an.simplify(made)) == "o * 32 + i"
    assert str(an.simplify(made * 7 + OUTER)) == "o * 225 + i * 7"


def test_two_remainders_are_one(an):
    assert str(an.simplify(mod(div(INNER, 5), 3) * 5 + mod(INNER, 5))) == "i % 15"
    assert (
        str(an.simplify(mod(div(OUTER * 7 + INNER, 5), 6) * 5 + mod(OUTER * 2 + INNER, 5)))
        == "(o * 7 + i) % 30"
    )


@pytest.mark.parametrize(
    "made",
    [
        mod(div(INNER, 5), 3) * 4 + mod(INNER, 5),
        mod(div(INNER, 4), 3) * 5 + mod(INNER, 5),
        mod(div(INNER, 5), 3) * 5 + mod(INNER + 1, 5),
    ],
)
def test_other_factors_stay(an, made):
    assert str(an.simplify(made)).count("%") == 2


def value(expr, o, i):
    return eval(str(expr), {"o": o, "i": i})  # the text of index expressions is Python's


@pytest.mark.parametrize("seed", range(40))
def test_values(an, seed):
    rng = random.Random(seed)
    inner, outer, times = rng.randint(2, 7), rng.randint(2, 6), rng.choice([1, 2, 3, -2])
    y = (
        OUTER * rng.choice([1, 2, 8, 16, 30, 32, 48])
        + INNER * rng.choice([1, 1, 2, 3])
        + rng.randint(-3, 9)
    )
    parts = [
        div(y, inner * outer) * inner * outer,
        mod(div(y, inner), outer) * inner,
        mod(y, inner),
    ]
    made = sum(parts[rng.randint(0, 1) :], ops.const(0)) * times + OUTER * rng.randint(0, 4)
    short = an.simplify(made)
    assert len(str(short)) <= len(str(made))
    for o, i in itertools.product((0, 1, 7, 134), (0, 3, 17, 31)):
        assert value(made, o, i) == value(short, o, i)
