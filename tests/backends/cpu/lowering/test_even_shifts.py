"""Requantisation that shifts all channels alike: the same integers, where sums leave room."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.even_shifts import even_shifts
from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

CHANNELS = 64


def requantised(factors, multiplier, shift, once=False):
    """Bytes of all values times `factors`, as sums with known bounds, then rescaled."""
    x = Var("x", TensorType((256, len(factors)), "int8"))
    sums = relay.multiply(relay.cast(x, "int32"), relay.const(np.asarray(factors, "int32")))
    made = relay.qnn.op.rescale(
        sums, np.asarray(multiplier, "int32"), np.asarray(shift, "int32"), once=once
    )
    return Function((x,), made)


def bytes_of_all_channels(channels):
    return np.repeat(np.arange(-128, 128, dtype="int8")[:, None], channels, 1)


def shifts_of(function):
    return [
        e.args[1].array.shape for e in post_order(function) if is_call_of(e, "right_shift")
    ]  # fmt: skip


@pytest.mark.parametrize("widest", [1, 4, 9])
def test_the_same_integers(widest):
    rng = np.random.default_rng(widest)
    multiplier = rng.integers(1 << 30, 1 << 31, CHANNELS)
    multiplier[:4] = 1 << 30, (1 << 31) - 1, 0, 1518500249
    shift = -rng.integers(1, widest, CHANNELS, endpoint=True)
    shift[:4] = -1, -widest, -widest, -1
    factors = rng.integers(-3000, 3000, CHANNELS)
    factors[:12] = 1, -1, 3000, -3000, *(1 << np.arange(8))  # quotients that are halves
    function = requantised(factors, multiplier, shift)
    even = even_shifts(function)
    assert shifts_of(even) == [(), ()]  # one number each
    data = bytes_of_all_channels(CHANNELS)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(even, data), want)


def test_factors_for_all_channels():
    function = requantised([70000, -5], 1 << 30, -11)
    even = even_shifts(function)
    assert shifts_of(even) == [(), ()]
    data = bytes_of_all_channels(2)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(even, data), want)


@pytest.mark.parametrize(
    ("factors", "shift", "once"),
    [
        ([5, 5], [0, -3], False),  # one that is not rounded
        ([5, 5], [1, -3], False),
        ([5, 5], [-1, -31], False),
        ([1 << 20, 5], [-1, -6], False),  # 2^27 times 2^5
        ([5, 5], [-2, -3], True),
    ],
)
def test_what_stays(factors, shift, once):
    function = requantised(factors, [1 << 30, 1 << 30], shift, once)
    assert even_shifts(function) is function


def test_sums_without_bounds_stay():
    x = Var("x", TensorType((3, 2), "int32"))
    shift = np.array([-1, -2], "int32")
    rescaled = relay.qnn.op.rescale(x, np.array([1 << 30, 1 << 30], "int32"), shift)
    function = Function((x,), rescaled)
    assert even_shifts(function) is function


def test_the_bounds_of_two_sums_with_the_same_factors():
    """Each is as far as the farther one."""
    x = Var("x", TensorType((4, 2), "int8"))
    factors = [relay.const(np.array(a, "int32")) for a in ([1 << 30] * 2, [-1, -6])]
    small = relay.cast(x, "int32")
    large = relay.multiply(small, relay.const(np.array([1 << 20, 5], "int32")))
    body = relay.Tuple([relay.qnn.op.rescale(sums, *factors) for sums in (small, large)])
    function = Function((x,), body)
    assert even_shifts(function) is function
