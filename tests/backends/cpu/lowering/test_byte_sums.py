"""Sums of two tensors of bytes as one linear function, for all pairs of bytes."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.byte_sums import byte_sums
from slipway.backends.cpu.lowering.short_rounding import short_rounding
from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.qnn.rescale import rescale_by
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

RESCALES = ("qnn.rescale", "qnn.contrib_rescale_high")


def side(value, zero, factor, digits, once):
    wide = relay.subtract(relay.cast(value, "int32"), relay.const(zero, "int32"))
    return rescale_by(relay.left_shift(wide, relay.const(digits)), factor, once)


def summed(scales, zeros, out, low=-128, dtypes=("int8", "int8"), make=relay.add, once=False):
    """TFLite's ADD of all pairs of bytes, and the bytes."""
    shapes = ((256, 1), (1, 256))
    a, b = (Var(n, TensorType((256, 256), d)) for n, d in zip("ab", dtypes, strict=True))
    twice = 2.0 * max(scales)
    sides = [side(v, z, s / twice, 20, once) for v, z, s in zip((a, b), zeros, scales, strict=True)]
    total = rescale_by(make(*sides), twice / ((1 << 20) * out[0]), once)
    shifted = relay.add(total, relay.const(out[1], "int32"))
    data = [
        np.broadcast_to(np.arange(256).astype(d).reshape(s), (256, 256)).copy()
        for s, d in zip(shapes, dtypes, strict=True)
    ]
    return Function((a, b), relay.cast(relay.clip(shifted, low, 127), "int8")), data


def rescalings(function):
    return sum(is_call_of(e, *RESCALES) for e in post_order(function))


def random_case(seed):
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.uniform(-5, 0, 2))
    out = float(scales.sum() * np.exp(rng.uniform(-1.5, 0.5))), int(rng.integers(-128, 128))
    zeros = [int(z) for z in rng.integers(-128, 128, 2)]
    return scales, zeros, out, out[1] if seed % 3 == 0 else -128


@pytest.mark.parametrize("seed", range(12))
def test_all_pairs_of_bytes(seed):
    scales, zeros, out, low = random_case(seed)
    make = relay.subtract if seed % 4 == 1 else relay.add
    function, data = summed(scales, zeros, out, low, make=make, once=seed % 2 == 0)
    before = short_rounding(function) if seed % 5 else function
    linear = byte_sums(before)
    assert rescalings(linear) == 0
    want = relay.interpret.interpret(function, *data)
    np.testing.assert_array_equal(relay.interpret.interpret(linear, *data), want)


def test_bytes_of_two_signs():
    function, data = summed((0.03, 0.2), (7, 100), (0.17, -5), dtypes=("int8", "uint8"))
    linear = byte_sums(function)
    assert rescalings(linear) == 0
    want = relay.interpret.interpret(function, *data)
    np.testing.assert_array_equal(relay.interpret.interpret(linear, *data), want)


@pytest.mark.parametrize("low", [-128, 0])
@pytest.mark.parametrize("make", [relay.add, relay.subtract])
def test_halves_on_both_sides_of_zero(low, make):
    """(a + b) / 2 is rounded away from zero by factors that are a little too large."""
    function, data = summed((0.5, 0.5), (0, 0), (1.0, 0), low=low, make=make)
    linear = byte_sums(function)
    assert rescalings(linear) == 0
    want = relay.interpret.interpret(function, *data)
    np.testing.assert_array_equal(relay.interpret.interpret(linear, *data), want)


def test_products_and_three_sides_stay():
    product, _ = summed((0.1, 0.2), (3, 4), (0.3, 0), make=relay.multiply)
    assert byte_sums(product) is product
    x, y, z = (Var(n, TensorType((4, 4), "int8")) for n in "xyz")
    sides = [side(v, 1, 0.3, 20, False) for v in (x, y, z)]
    total = rescale_by(relay.add(relay.add(*sides[:2]), sides[2]), 1e-6)
    function = Function((x, y, z), relay.cast(relay.clip(total, -128, 127), "int8"))
    assert byte_sums(function) is function


def test_one_tensor_of_bytes_along_channels():
    x, y = Var("x", TensorType((2, 3, 8), "int8")), Var("y", TensorType((8,), "int8"))
    sides = [side(x, 3, 0.5, 20, False), side(y, -9, 0.21, 20, False)]
    total = rescale_by(relay.add(*sides), 1.3e-6)
    function = Function((x, y), relay.cast(relay.clip(total, -128, 127), "int8"))
    linear = byte_sums(function)
    assert rescalings(linear) == 0
    rng = np.random.default_rng(3)
    data = [rng.integers(-128, 128, v.type.shape).astype("int8") for v in (x, y)]
    want = relay.interpret.interpret(function, *data)
    np.testing.assert_array_equal(relay.interpret.interpret(linear, *data), want)
