"""The Analyzer: simplification keeps values, bounds hold, proofs are right."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import interval_of
from slipway.ir import ops
from slipway.ir.expr import Call, FloorDiv, FloorMod, IntImm, Range, Select, SizeVar, Var
from slipway.ir.visit import substitute

RANGES = {"i": (0, 3), "j": (0, 4), "k": (-2, 2)}
VARS = {name: Var(name) for name in RANGES}


def analyzer():
    an = Analyzer()
    for name, (low, high) in RANGES.items():
        an.bind(VARS[name], low, high)
    return an


def leaves():
    return st.one_of(
        st.sampled_from(list(VARS.values())), st.integers(-9, 9).map(lambda v: ops.const(v))
    )


def binary(children):
    positive = st.integers(1, 12).map(lambda v: ops.const(v))
    arithmetic = st.sampled_from([ops.add, ops.sub, ops.minimum, ops.maximum])
    divide = st.sampled_from([ops.floordiv, ops.floormod, ops.truncdiv, ops.truncmod])
    return st.one_of(
        st.tuples(arithmetic, children, children).map(lambda t: t[0](t[1], t[2])),
        st.tuples(children, st.integers(-6, 6)).map(lambda t: ops.mul(t[0], t[1])),
        st.tuples(divide, children, positive).map(lambda t: t[0](t[1], t[2])),
    )


expressions = st.recursive(leaves(), binary, max_leaves=8)


def evaluate(expr, values):
    """The value of an expression, by constant folding without the Analyzer."""

    def fold(node):
        if isinstance(node, Var):
            return ops.const(values[node])
        if isinstance(node, IntImm):
            return node
        table = {
            "Add": ops.add, "Sub": ops.sub, "Mul": ops.mul, "FloorDiv": ops.floordiv,
            "FloorMod": ops.floormod, "Div": ops.truncdiv, "Mod": ops.truncmod,
            "Min": ops.minimum, "Max": ops.maximum, "LT": ops.less, "EQ": ops.equal,
        }  # fmt: skip
        return table[type(node).__name__](fold(node.a), fold(node.b))

    result = fold(expr)
    assert isinstance(result, IntImm)
    return result.value


def points():
    spans = [range(low, high + 1) for low, high in RANGES.values()]
    for point in itertools.product(*spans):
        yield dict(zip(VARS.values(), point, strict=True))


@settings(max_examples=400, deadline=None)
@given(expressions)
def test_simplified_expressions_have_the_same_values_within_their_bounds(expr):
    an = analyzer()
    simple = an.simplify(expr)
    low, high = an.bounds(expr)
    modulus, rest = an.modular_set(expr)
    for values in points():
        value = evaluate(expr, values)
        assert evaluate(simple, values) == value
        assert low <= value <= high
        assert value == rest if modulus == 0 else value % modulus == rest


@settings(max_examples=300, deadline=None)
@given(expressions, expressions)
def test_decided_comparisons_are_right(a, b):
    an = analyzer()
    for build in (ops.less, ops.equal):
        condition = build(a, b)
        result = an.simplify(condition)
        if isinstance(result, IntImm) and not isinstance(condition, IntImm):
            for values in points():
                assert evaluate(condition, values) == result.value


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_intervals_hold_every_value(expr):
    an = analyzer()
    i = an.var_atom(VARS["i"])
    linear = an.linear(expr)
    found = interval_of(an, linear, {i: (an.constant(0), an.constant(3))})
    if found is None:
        return
    low, high = (an.to_expr(end) for end in found)
    for values in points():
        value = evaluate(expr, values)
        assert evaluate(low, values) <= value <= evaluate(high, values)


i, j, f = Var("i"), Var("j"), Var("f")


def bound():
    an = Analyzer()
    an.bind(i, 0, 15)
    an.bind(j, 0, 3)
    an.bind(f, 0, 63)
    return an


@pytest.mark.parametrize(
    ("given_expr", "simple"),
    [
        ((i * 4 + j) // 4, i),
        ((i * 4 + j) % 4, j),
        ((i * 8 + j) // 4, i * 2),
        (f // 4 * 4 + f % 4, f),
        ((f // 16) * 16 + (f % 16) // 4 * 4 + f % 4, f),
        (f // 4 // 4, f // 16),
        ((i * 38 + f) // 9 * 36 + (i * 38 + f) % 9 * 4, i * 152 + f * 4),
        (i + j - i, j),
        (ops.minimum(i, 20), i),
        (ops.maximum(i + 1, 0), i + 1),
    ],
)
def test_index_arithmetic_of_split_and_fused_loops(given_expr, simple):
    an = bound()
    assert an.can_prove_equal(given_expr, simple)
    assert str(an.simplify(given_expr)) == str(an.simplify(simple))


def test_proofs_under_bounds():
    an = bound()
    assert an.can_prove(i * 4 + j < 64)
    assert not an.can_prove(i * 4 + j < 63)
    assert an.can_prove(ops.all_of([i >= 0, j <= 3]))
    assert an.can_prove(ops.not_equal(i * 2 + 1, 0))


def test_symbolic_sizes_cancel():
    an = Analyzer()
    n = SizeVar("n")
    assert an.can_prove_equal((n * 4 + 3) // 4, n)
    assert an.can_prove(n + 1 > 0)
    an.bind_range(i, Range(ops.const(0), n))
    assert an.can_prove_equal(i * n + n, (i + 1) * n)


def test_a_variable_bound_again_forgets_old_results():
    an = Analyzer()
    x = Var("x")
    an.bind(x, 0, 3)
    assert an.can_prove(x < 4)
    an.bind(x, 0, 10)
    assert not an.can_prove(x < 4)


def test_substitution_reaches_into_quotients():
    an = bound()
    linear = an.linear(FloorDiv(f, ops.const(3)) + FloorMod(f, ops.const(5)))
    values = {an.var_atom(f): an.linear(i + 7)}
    result = an.to_expr(an.substitute(linear, values))
    expected = substitute(FloorDiv(f, ops.const(3)) + FloorMod(f, ops.const(5)), {f: i + 7})
    assert an.can_prove_equal(result, expected)


def test_a_remainder_joins_the_quotient_of_a_value_that_differs_by_a_multiple():
    """Of x = 64 * i + j the remainder x % 56 is (8 * i + j) % 56, and still belongs to x // 56."""
    an = Analyzer()
    i, j = Var("i"), Var("j")
    an.bind(i, 0, 48)
    an.bind(j, 0, 63)
    x = i * 64 + j
    whole = FloorDiv(x, ops.const(56)) * 56 + FloorMod(x, ops.const(56))
    assert str(an.simplify(whole)) == str(an.simplify(x))
    other = FloorDiv(x, ops.const(56)) * 56 + FloorMod(x + 1, ops.const(56))
    assert str(an.simplify(other)) != str(an.simplify(x + 1))


def test_what_is_shared_is_looked_into_once():
    """60 doublings of a value are 2^60 parts written as a tree, and 60 as they are."""
    an = bound()
    value = Call("int32", "clz", (i,))
    for _ in range(60):
        value = Select(value < 100, Call("int32", "bitwise_xor", (value, value)), value)
    assert [a.kind for a in an.linear(value).terms] == ["other"]


def test_a_call_of_which_one_argument_is_simpler_is_another():
    x, y = Var("x"), Var("y")
    call = Call(
        "int32", "bitwise_and", (ops.sub(ops.mul(ops.add(x, y), 2), ops.add(x, ops.mul(y, 2))), y)
    )
    first, second = Analyzer().simplify(call).args
    assert first is x
    assert second is y
    plain = Call("int32", "bitwise_and", (x, y))
    assert Analyzer().simplify(plain) is plain
