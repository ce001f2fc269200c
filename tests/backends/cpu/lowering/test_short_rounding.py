"""Requantisation with two roundings by one shift: the same integers, wherever the sums fit."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.narrow_rescale import NAME, narrow_rescale
from slipway.backends.cpu.lowering.short_rounding import short_rounding
from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

WIDEST = (1 << 29) - 1


def bounded(shape, reach=WIDEST):
    """Sums that are known to be within `reach`: any int32, clipped."""
    x = Var("x", TensorType(shape, "int32"))
    low = relay.maximum(x, relay.const(-reach, "int32"))
    return x, relay.minimum(low, relay.const(reach, "int32"))


def rescaled(sums, multiplier, shift):
    return relay.qnn.op.rescale(sums, np.asarray(multiplier, "int32"), np.asarray(shift, "int32"))


def found(function, name):
    return [e for e in post_order(function) if is_call_of(e, name)]


def near_halves(multiplier, shift):
    """Sums whose quotient is next to a half, on both sides of zero, and random ones."""
    real = max(multiplier, 1) * 2.0 ** (shift - 31)
    halves = np.clip(np.round((np.arange(-300, 300) + 0.5) / real), -WIDEST, WIDEST)
    close = halves.astype(np.int64)[:, None] + np.arange(-3, 4)
    ends = [-(2**31), -WIDEST, -2, -1, 0, 1, 2, WIDEST, 2**31 - 1]
    drawn = np.random.default_rng(1).integers(-(2**31), 2**31, 400)
    return np.concatenate([close.reshape(-1), ends, drawn]).astype(np.int32)


@pytest.mark.parametrize("shift", [0, -1, -2, -9, -20, -28])
@pytest.mark.parametrize("multiplier", [0, 1 << 30, (1 << 30) + 1, 1518500249, (1 << 31) - 1])
def test_the_same_integers(multiplier, shift):
    data = near_halves(multiplier, shift)
    x, sums = bounded(data.shape)
    function = Function((x,), rescaled(sums, multiplier, shift))
    short = short_rounding(function)
    assert not found(short, "qnn.rescale")
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(short, data), want)


@pytest.mark.parametrize(("zero", "low"), [(-128, -128), (-128, -100), (3, 3), (0, 0), (5, -7)])
@pytest.mark.parametrize("channels", [1, 4])
def test_below_a_clip_nothing_is_rounded_away_from_zero(zero, low, channels):
    multiplier = np.array([1 << 30, 1518500249, (1 << 31) - 1, 0][:channels])
    shift = np.array([-3, -11, -7, 0][:channels])
    column = np.concatenate(
        [near_halves(int(m), int(s)) for m, s in zip(multiplier, shift, strict=True)]
    )
    data = np.repeat(column[:, None], channels, 1)
    x, sums = bounded(data.shape)
    total = relay.add(rescaled(sums, multiplier, shift), relay.const(zero, "int32"))
    function = Function((x,), relay.cast(relay.clip(total, low, 127), "int8"))
    short = narrow_rescale(short_rounding(function))
    (call,) = found(short, NAME)
    assert call.attrs.away == (2 if low < zero else 0)
    assert not found(short, "add")  # the zero point is part of the offset
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(short, data), want)


def test_what_stays():
    x = Var("x", TensorType((5, 2), "int32"))
    unknown = Function((x,), rescaled(x, 1 << 30, -3))
    y, wide = bounded((5, 2), WIDEST + 1)
    z, sums = bounded((5, 2))
    for argument, body in (
        (y, rescaled(wide, 1 << 30, -3)),
        (z, rescaled(sums, 1 << 30, 1)),  # shifted left
        (z, rescaled(sums, 1 << 30, -29)),
        (z, rescaled(sums, [1 << 30, 1 << 30], [0, -4])),  # one channel is rounded once
    ):
        function = Function((argument,), body)
        assert short_rounding(function) is function
    assert short_rounding(unknown) is unknown
