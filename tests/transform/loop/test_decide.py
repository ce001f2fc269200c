"""A known condition decides those that say more or less of the same sum, and no others."""

import itertools

import numpy as np
import pytest

from slipway import te
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.transform.loop.decide import given

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
