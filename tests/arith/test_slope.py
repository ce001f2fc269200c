"""How far sums go with a step of a variable, against what they are at both places."""

import itertools

import pytest

from slipway.arith.analyzer import Analyzer
from slipway.arith.slope import slope
from slipway.ir import expr as E
from slipway.ir.expr import SizeVar, Var

C, K = Var("c"), Var("i")
H, W = SizeVar("h", "int32", 1, 9), SizeVar("w", "int32", 1, 9)

SUMS = {
    "a number of times": (C * 3 + K, "3"),
    "none": (K * 4 + H, "0"),
    "a product of sizes": (C * H * W + K, "h * w"),
    "both": (C * H * W * 2 + C * 3 - C * H, "h * w * 2 - h + 3"),
    "a quotient of sizes": (C * E.FloorDiv(H + W, 2) + E.FloorMod(K, 3), "(h + w) // 2"),
    "an open quotient": (C * E.FloorDiv(H * 5, W), "h * 5 // w"),
    "less": (K - C * W, "0 - w"),
}


@pytest.mark.parametrize("name", SUMS)
def test_slopes(name):
    expr, wanted = SUMS[name]
    an = Analyzer()
    found = slope(an, an.linear(expr), an.var_atom(C))
    assert str(an.to_expr(found)) == wanted
    step = an.linear(E.Add(C, E.IntImm("int32", 1)))
    after = an.substitute(an.linear(expr), {an.var_atom(C): step})
    assert after.minus(an.linear(expr)).key == found.key


@pytest.mark.parametrize(
    "expr",
    [
        C * C,
        C * K,
        E.FloorDiv(C, 2) + C,
        E.FloorMod(C, W),
        E.FloorDiv(C, W) * W,
        C * C * H,
        C * H * K,
        C * E.FloorDiv(H + K, 2),
    ],
)
def test_what_depends_on_the_place_has_none(expr):
    an = Analyzer()
    assert slope(an, an.linear(expr), an.var_atom(C)) is None


def test_two_variables_of_one_sum():
    an = Analyzer()
    whole = an.linear((C * H + K) * W)
    both = [an.to_expr(slope(an, whole, an.var_atom(v))) for v in (C, K)]
    assert list(map(str, both)) == ["h * w", "w"]
    assert all(slope(an, whole, an.var_atom(v)) is not None for v in itertools.chain((C, K)))
