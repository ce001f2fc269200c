"""Quotients and remainders by what is no number: put together again to what was divided."""

import itertools
import random

import pytest

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import SizeVar, Var
from slipway.ir.visit import substitute, walk

K, H, W = Var("k"), SizeVar("h", "int32", 1, 9), SizeVar("w", "int32", 3, 9)


def div(a, b):
    return E.FloorDiv(a, ops.as_expr(b, "int32"))


def mod(a, b):
    return E.FloorMod(a, ops.as_expr(b, "int32"))


def value(expr, **sizes):
    """The number that an expression is, computed step by step by Python."""
    names = {"FloorDiv": int.__floordiv__, "FloorMod": int.__mod__, "Add": int.__add__}
    names |= {"Sub": int.__sub__, "Mul": int.__mul__}
    match expr:
        case E.Var():
            return sizes[expr.name]
        case E.IntImm():
            return expr.value
        case _:
            return names[type(expr).__name__](value(expr.a, **sizes), value(expr.b, **sizes))


UNDONE = {
    "an open width": div(K, W) * W + mod(K, W),
    "the other way round": mod(K, W) + W * div(K, W),
    "some times": div(K, W) * W * 3 + mod(K, W) * 3 + 1,
    "taken away": 7 - div(K, W) * W - mod(K, W),
    "of a sum": div(K, W - 2) * (W - 2) + mod(K, W - 2),
    "of a product": div(K, W * H) * (W * H) + mod(K, W * H),
    "three axes": (div(div(K, W), H) * H + mod(div(K, W), H)) * W + mod(K, W),
    "a number of lines": (div(K, 4) * 4 + mod(K, 4)) * W,
    "lines of a number": (div(K, W) * W + mod(K, W)) * H * 8,
    "a sum that is divided": div(K + H, W) * W + mod(K + H, W),
    "planes of lines": (div(K, W) * W + mod(K, W)) * H * H,
    "lines of their own width": (div(K, W) * W + mod(K, W)) * W,
    "planes of a number": (div(K, 4) * 4 + mod(K, 4)) * H * W,
    "spread out": div(K, W) * W * H + mod(K, W) * H,
    "spread over planes": div(K, W) * W * H * H + mod(K, W) * H * H,
    "spread over two sizes": div(K, W) * W * H * W + mod(K, W) * W * H,
    "the remainder before its factors": mod(K, W) * H * H + div(K, W) * W * H * H,
    "twice": div(K, W) * W + mod(K, W) + (div(H, W) * W + mod(H, W)) * 2,
}


@pytest.mark.parametrize("name", UNDONE)
def test_what_was_divided_comes_back(name):
    expr = UNDONE[name]
    simple = Analyzer().simplify(expr)
    assert not any(isinstance(n, E.FloorDiv | E.FloorMod) for n in walk(simple))
    for k, h, w in itertools.product((-7, -1, 0, 1, 8, 50), (1, 2, 9), (3, 4, 9)):
        assert value(simple, k=k, h=h, w=w) == value(expr, k=k, h=h, w=w)
    assert Analyzer().can_prove_equal(simple, expr)


KEPT = {
    "the quotient of another": div(H, W) * W + mod(K, W),
    "another divisor": div(K, H) * H + mod(K, W),
    "another factor": div(K, W) * W + mod(K, W) * 2,
    "a part of the factor": div(K, W - 2) * W + mod(K, W - 2),
    "the other sign": div(K, W) * W - mod(K, W),
    "another sum": div(K + 1, W) * W + mod(K, W),
    "times another size": div(K, W) * W * H + mod(K, W) * W,
    "truncated": E.Div(K, W) * W + mod(K, W),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_does_not_belong_together_stays(name):
    expr = KEPT[name]
    simple = Analyzer().simplify(expr)
    assert any(isinstance(n, E.FloorMod) for n in walk(simple))
    if name != "truncated":
        for k, h, w in itertools.product((-7, 0, 8, 50), (1, 2, 9), (3, 4, 9)):
            assert value(simple, k=k, h=h, w=w) == value(expr, k=k, h=h, w=w)


def test_a_size_that_is_bound_again_is_seen():
    an = Analyzer()
    whole = div(K, W) * W + mod(K, W)
    assert an.simplify(whole) is K
    an.bind(W, 4, 4)
    assert an.simplify(div(K, W)).b.value == 4
    assert an.simplify(whole) is K


@pytest.mark.parametrize("seed", range(40))
def test_random_sums_keep_their_values(seed):
    """Sums of quotients, remainders and products of both, in every order, of either sign."""
    rng = random.Random(seed)
    divisors = [W, H, W - 2, W * H, 4, H + 1]
    terms = []
    for _ in range(rng.randint(1, 4)):
        dividend = rng.choice([K, K + 3, K * 2, H, div(K, W), mod(K, 8) - H])
        divisor = rng.choice(divisors)
        times = rng.choice([1, 1, 2, -1, H, W])
        terms.append(div(dividend, divisor) * divisor * times)
        terms.append(mod(dividend, divisor) * rng.choice([times, times, 1]))
    rng.shuffle(terms)
    expr = terms[0]
    for term in terms[1:]:
        expr = expr + term
    an = Analyzer()
    simple = an.simplify(expr)
    assert an.simplify(simple) is simple
    for k, h, w in itertools.product((-20, -7, -1, 0, 1, 8, 50), (1, 2, 9), (3, 4, 9)):
        assert value(simple, k=k, h=h, w=w) == value(expr, k=k, h=h, w=w)
    swapped = substitute(expr, {K: K + 1})
    for k, h, w in itertools.product((-7, 0, 8), (1, 9), (3, 4)):
        assert value(an.simplify(swapped), k=k, h=h, w=w) == value(swapped, k=k, h=h, w=w)


def test_the_bound_of_a_quotient_is_what_is_proved():
    """A tile among two rows of columns lies in row 0 or 1, whatever the columns are."""
    an = Analyzer()
    columns, position = SizeVar("columns", "int32", 2, 32), Var("position", "int32")
    an.bind(position, 0, 63)
    row = ops.floordiv(ops.minimum(position, columns * 2 - 1), columns)
    assert an.bounds(row) == (0, 1)
    assert an.bounds(ops.floordiv(position, columns)) == (0, 31)
    rows = SizeVar("rows", "int32", 1, 4)
    among = ops.floordiv(ops.minimum(position, rows * columns - 1), columns)
    assert an.bounds(among) == (0, 3)
