"""A known condition decides those that say more or less of the same sum, and no others."""

import itertools

import numpy as np
import pytest

from slipway import te
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.transform.loop.decide import comparable, decides, given

KINDS = (E.LT, E.LE, E.GT, E.GE, E.EQ, E.NE)
COMPARE = {
    E.LT: np.less, E.LE: np.less_equal, E.GT: np.greater, E.GE: np.greater_equal,
    E.EQ: np.equal, E.NE: np.not_equal,
}  # fmt: skip
X, Y = E.Var("x"), E.Var("y")


def choice(condition):
    return E.Call("int32", "if_then_else", (condition, ops.const(1), ops.const(0)))


def decided(condition, known, holds):
    """What `condition` is where `known` holds or not: True, False, or None."""
    found = given(S.Evaluate(choice(condition)), known, holds).value
    return bool(found.value) if isinstance(found, E.IntImm) else None


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_against_every_value(one, other, holds):
    """The oracle tries every x: a verdict is right for each, and is found where intervals say."""
    for a, b in itertools.product((-2, 1, 5), repeat=2):
        i = np.arange(-40, 40)
        allowed = i[COMPARE[one](i + 3, a) == holds]
        outcomes = set(COMPARE[other](allowed, b).tolist())
        for condition in (other(X, ops.const(b)), other(E.Sub(X, Y), E.Sub(ops.const(b), Y))):
            verdict = decided(condition, one(E.Add(X, ops.const(3)), ops.const(a)), holds)
            if verdict is not None:
                assert outcomes == {verdict}
            ordered = other is not E.NE and one not in (E.EQ, E.NE)
            if ordered and outcomes and len(outcomes) == 1:
                assert verdict is not None


def test_the_other_side_of_a_comparison():
    assert decided(E.GT(ops.const(8), X), E.LT(X, ops.const(5)), True) is True
    assert decided(E.LE(ops.const(5), X), E.LT(X, ops.const(5)), True) is False


def test_another_sum_stays_open():
    assert decided(E.LT(Y, ops.const(5)), E.LT(X, ops.const(5)), True) is None
    assert decided(E.LT(E.Add(X, X), ops.const(5)), E.LT(X, ops.const(5)), True) is None


def test_conditions_written_the_same():
    def odd(var):
        return E.Or(E.EQ(E.FloorMod(var, ops.const(2)), ops.const(1)), E.LT(var, Y))

    assert decided(odd(X), odd(X), False) is False
    assert decided(odd(Y), odd(X), False) is None


def test_memory_may_have_changed():
    data = te.placeholder((4,), "int32", name="A")
    b = te.compute((4,), lambda i: data[i] + 1, name="B")
    func = te.lower(te.create_schedule(b.op), [data, b])
    (buffer, *_) = (buffer for _, buffer in func.buffer_map)

    def positive():
        return E.GT(E.BufferLoad(buffer, (ops.const(0),)), ops.const(0))

    assert decided(positive(), positive(), True) is None


SUMS = {
    "i + j": lambda i, j: i + j, "j + i": lambda i, j: j + i, "i - j": lambda i, j: i - j,
    "j - i": lambda i, j: j - i, "i": lambda i, j: i, "-i": lambda i, j: 0 - i,
    "2 * i": lambda i, j: i * 2, "3": lambda i, j: ops.const(3),
    "(1 - i) // 2": lambda i, j: E.FloorDiv(1 - i, 2),
}  # fmt: skip
PLAIN = {E.LT: "<", E.LE: "<=", E.GT: ">", E.GE: ">=", E.EQ: "=="}


@pytest.mark.parametrize("known_sum", SUMS)
@pytest.mark.parametrize("holds", [True, False])
def test_what_follows_is_what_holds_for_all_values(known_sum, holds):
    """An answer is right for all i and j there are; for one and the same sum it is given."""
    i, j = E.Var("i"), E.Var("j")
    values = [(p, q) for p in range(-7, 8) for q in range(-7, 8)]
    for kind, end in itertools.product(PLAIN, (-1, 0, 2)):
        known = kind(SUMS[known_sum](i, j), ops.const(end))
        rule = eval(f"lambda i, j: ({known_sum}) {PLAIN[kind]} {end}")
        under = [v for v in values if rule(*v) == holds]
        for other, (text, build) in itertools.product(PLAIN, SUMS.items()):
            for limit in (-2, 0, 1, 3):
                condition = other(build(i, j), ops.const(limit))
                compare = eval(f"lambda i, j: ({text}) {PLAIN[other]} {limit}")
                found = given(condition, known, holds)
                answers = {compare(*v) for v in under}
                if isinstance(found, E.IntImm):
                    assert answers <= {bool(found.value)}
                elif (
                    text == known_sum and text not in ("3", "2 * i") and (holds or kind is not E.EQ)
                ):
                    assert len(answers) == 2, (known, holds, condition)


def test_choices_by_select_are_made_too():
    i = E.Var("i")
    f, g = E.Var("f", "float32"), E.Var("g", "float32")
    choice = E.Select(i < 4, f, g)
    assert given(choice, i < 3, True) is f
    assert given(choice, i < 4, False) is g
    assert given(choice, i < 5, True) is choice
    both = E.And(i < 4, E.Var("other", "bool"))
    assert given(both, i < 2, True) is both.b
    assert given(both, i < 9, False).value == 0


def test_conditions_that_are_written_the_same_decide_each_other():
    x = E.Var("x", "float32")
    known = E.LT(x, ops.const(float("1.0"), "float32"))
    again = E.LT(x, ops.const(float("1.0"), "float32"))
    assert given(again, known, True).value == 1
    assert given(again, known, False).value == 0
    for other in (
        E.LT(x, ops.const(2.0, "float32")), E.LE(x, ops.const(1.0, "float32")),
        E.LT(E.Var("x", "float32"), ops.const(1.0, "float32")),
    ):  # fmt: skip
        assert given(other, known, True) is other
    pair = E.Shuffle((x, x), (0, 1))
    one, two = (E.LT(E.Shuffle((x, x), (0, 1)), pair) for _ in range(2))
    assert given(two, one, True).value == 1
    for other in (
        E.Shuffle((x, x), (1, 0)), E.Shuffle((x,), (0, 1)), E.Shuffle((x, x, x), (0, 1)),
        E.Shuffle((x, x), (0, 0)), E.Shuffle((x, x), (1, 1)),
    ):  # fmt: skip
        differs = E.LT(other, pair)
        assert given(differs, one, True) is differs


def test_what_one_condition_says_of_another():
    """Of all pairs on one sum: what the other is wherever the one holds, by every value."""
    values = range(-9, 10)
    for one, other in itertools.product(PLAIN, repeat=2):
        for a, b in itertools.product((-2, 0, 3), repeat=2):
            found = decides(one(X, ops.const(a)), other(X, ops.const(b)))
            said = {bool(COMPARE[other](x, b)) for x in values if COMPARE[one](x, a)}
            assert found == (said.pop() if len(said) == 1 else None)


def test_sums_with_memory_in_them_name_nothing():
    """The load is one object in both conditions, but a store may lie between them."""
    data = te.placeholder((4,), "int32", name="A")
    b = te.compute((4,), lambda i: data[i] + 1, name="B")
    func = te.lower(te.create_schedule(b.op), [data, b])
    (buffer, *_) = (buffer for _, buffer in func.buffer_map)
    load = E.BufferLoad(buffer, (ops.const(0),))
    for total in (load, E.Add(X, load), E.Sub(load, X)):
        assert decides(total < 5, total < 6) is None
        assert len(comparable([total < 5, total < 6])) == 1


def test_conditions_are_compared_with_the_first():
    """The first alone where that is no comparison of integers; else all on its sum, in order."""
    real = E.Var("r", "float32")
    first = E.LT(real, ops.const(1.0, "float32"))
    assert comparable([first, X < 3]) == [first]
    for kind in PLAIN:
        first = kind(X, ops.const(3))
        assert set(map(str, comparable([first, Y < 1, X < 9]))) == {str(first), "x < 9"}
