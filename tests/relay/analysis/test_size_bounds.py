"""Intervals of numbers that are computed from sizes: no run's value lies outside."""

import numpy as np
import pytest

from slipway import relay
from slipway.relay.analysis.size_bounds import bounds_of_values
from slipway.relay.analysis.size_values import SizeValues
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import const

H, W = relay.Dim("h", 3, 40), relay.Dim("w", 5, 17)
NUMBER = np.float32


def sides(sizes, x):
    return relay.cast(relay.strided_slice(sizes.shape(x), [2], [4]), "float32")


def to_a_size(sides):
    scale = relay.minimum(
        const(NUMBER(32)) / relay.min(sides), const(NUMBER(50)) / relay.max(sides)
    )
    return relay.cast(relay.floor(sides * scale), "int64")


def by_steps(sides):
    smaller = relay.ceil(sides / const(NUMBER(3)) - const(NUMBER(0.5)))
    return relay.concatenate(
        [relay.negative(smaller), relay.sqrt(smaller), relay.reverse(sides, 0)], 0
    )


def chosen(sides):
    flag = relay.greater(relay.sum(sides), const(NUMBER(30)))
    return relay.where(
        relay.logical_not(flag), relay.clip(sides, 4.5, 20.0), sides * const(NUMBER(-1.5))
    )


def in_halves(sides):
    return relay.cast(relay.cast(sides, "float16") * const(np.float16(0.3)), "float32")


def moved(sides):
    exchanged = relay.take(relay.sqrt(sides), const(np.array([1, 0])))
    return relay.squeeze(relay.transpose(relay.expand_dims(exchanged, 1), (1, 0)), [0])


@pytest.mark.parametrize("make", [to_a_size, by_steps, chosen, in_halves, moved])
def test_every_value_lies_between_the_ends(make):
    sizes = SizeValues()
    x = relay.var("x", shape=(1, 2, H, W))
    low, high = bounds_of_values(make(sides(sizes, x)), sizes)
    assert np.isfinite([low, high]).all()
    for h in range(3, 41, 3):
        for w in range(5, 18, 4):
            fixed = relay.var("x", shape=(1, 2, h, w))
            found = interpret(
                relay.Function((fixed,), make(sides(SizeValues(), fixed))),
                x=np.zeros((1, 2, h, w), np.float32),
            )
            found = np.asarray(found, np.float64)
            assert ((low <= found) & (found <= high)).all()


def test_what_values_decide_has_no_ends():
    sizes = SizeValues()
    x = relay.var("x", shape=(1, 2, H, W))
    value = relay.var("v", shape=(2,))
    assert bounds_of_values(sides(sizes, x) * value, sizes) is None
    through_zero = sides(sizes, x) / (sides(sizes, x) - const(NUMBER(10)))
    low, high = bounds_of_values(through_zero, sizes)
    assert np.isinf([low, high]).all()


def test_parts_of_the_ranges_are_taken_one_by_one():
    """The longer side is never more than 50, though 40 * 32 / 3 is."""
    sizes = SizeValues()
    low, high = bounds_of_values(to_a_size(sides(sizes, relay.var("x", shape=(1, 2, H, W)))), sizes)
    assert (high <= 64).all()
    assert (low >= 3).all()
