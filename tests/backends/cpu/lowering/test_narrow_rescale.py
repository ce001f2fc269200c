"""Requantisation in 32 bits: the same integers, at the edges of what the pass takes."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.narrow_rescale import NAME, narrow_rescale
from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

EDGES = np.array([-(2**31), -(2**31) + 1, -65537, -3, -1, 0, 1, 2, 3, 65536, 2**31 - 1], np.int32)


def rescaled(x, multiplier, shift, zero=None):
    made = relay.qnn.op.rescale(
        x, np.asarray(multiplier, "int32"), np.asarray(shift, "int32"), once=True
    )
    return made if zero is None else relay.add(made, relay.const(zero, "int32"))


def counted(function, name):
    return sum(is_call_of(e, name) for e in post_order(function))


@pytest.mark.parametrize("shift", [-2, -3, -9, -20, -30, -31])
@pytest.mark.parametrize("multiplier", [0, 1 << 30, (1 << 31) - 1, 1518500249])
@pytest.mark.parametrize("zero", [None, -128, 0, 255])
def test_the_same_integers(shift, multiplier, zero):
    random = np.random.default_rng(5).integers(-(2**31), 2**31, 500).astype(np.int32)
    # sums whose product lies at a half, or next to one
    halves = (2 * np.arange(-40, 40) + 1) << min(30 - (30 + shift + 1), 24) if shift > -27 else []
    data = np.concatenate([EDGES, random, np.asarray(halves, np.int64).astype(np.int32)])
    x = Var("x", TensorType(data.shape, "int32"))
    function = Function((x,), rescaled(x, multiplier, shift, zero))
    narrow = narrow_rescale(function)
    assert counted(narrow, NAME) == 1
    assert counted(narrow, "qnn.rescale") == 0
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(narrow, data), want)


def test_factors_per_channel_with_one_of_zero():
    multiplier, shift = [1 << 30, 0, (1 << 31) - 1], [-2, 0, -14]
    data = np.random.default_rng(6).integers(-(2**31), 2**31, (90, 3)).astype(np.int32)
    x = Var("x", TensorType(data.shape, "int32"))
    function = Function((x,), rescaled(x, multiplier, shift, 7))
    narrow = narrow_rescale(function)
    assert counted(narrow, "add") == 0
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(narrow, data), want)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_greater_factors_of_sums_stay(shift):
    x = Var("x", TensorType((3,), "int32"))
    function = Function((x,), rescaled(x, (1 << 30) + 1, shift))
    assert narrow_rescale(function) is function


@pytest.mark.parametrize(
    "factor", [(1 << 30, 0), ((1 << 31) - 5, -1), ((1 << 30) + 7, 0), (99999, -4)]
)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_shifted_bytes(factor, dtype):
    data = np.arange(256).astype(dtype)
    x = Var("x", TensorType(data.shape, dtype))
    centred = relay.subtract(relay.cast(x, "int32"), relay.const(-128 if dtype == "int8" else 255))
    shifted = relay.left_shift(centred, relay.const(20))
    function = Function((x,), rescaled(shifted, *factor))
    narrow = narrow_rescale(function)
    assert counted(narrow, "qnn.rescale") == 0
    assert counted(narrow, NAME) == (factor != (1 << 30, 0))
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(narrow, data), want)
