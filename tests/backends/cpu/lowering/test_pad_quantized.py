"""Padded channels of integer products: the same integers, in vectors."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.pack_quantized import pack_quantized, packing_instructions
from slipway.backends.cpu.lowering.pad_quantized import Grouping, grouping, pad_quantized
from slipway.ir.hardware import HARDWARE
from slipway.relay import op_registry
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.target import Target

VNNI = [HARDWARE["x86.vnni"], HARDWARE["x86.vnni.256"]]
rng = np.random.default_rng(0)


def weights(*shape):
    return relay.const(rng.integers(-127, 128, shape).astype("int8"))


def conv(data, *shape, groups=1, padding=(0, 0, 0, 0)):
    make = op_registry.make("qnn.conv2d_nhwc")
    return make(data, weights(*shape), padding=padding, groups=groups)


def requantised(sums):
    """Shifted, with a bias for each channel, cut to bytes."""
    channels = sums.tensor_type.shape[-1]
    bias = relay.const(rng.integers(-999, 999, (1, 1, 1, channels)).astype("int32"))
    shifted = relay.right_shift(relay.add(sums, bias), relay.const(np.int32(8)))
    return relay.cast(relay.clip(shifted, -128, 127), "int8")


def same(body, shape, kind="int8"):
    """Check the results of a body padded and packed; return the operators' names."""
    before = body.as_function()
    after = pad_quantized(before, VNNI)
    assert after is not before
    data = rng.integers(-128, 128, shape).astype(kind)
    wanted = interpret(before, data)
    np.testing.assert_array_equal(interpret(after, data), wanted)
    packed = pack_quantized(after, VNNI)
    np.testing.assert_array_equal(interpret(packed, data), wanted)
    return [e.op.name for e in post_order(packed.body) if isinstance(e, relay.Call)]


def test_a_chain_keeps_its_padding_to_the_end():
    x = relay.var("x", shape=(1, 6, 5, 8), dtype="int8")
    first = requantised(conv(x, 3, 3, 8, 13, padding=(1, 1, 1, 1)))
    by_channel = op_registry.make("qnn.depthwise_conv2d_nhwc")(first, weights(3, 3, 13))
    body = requantised(conv(requantised(by_channel), 1, 1, 13, 21))
    names = same(relay.add(relay.cast(body, "int32"), relay.const(np.int32(3))), (1, 6, 5, 8))
    assert names.count("qnn.contrib_conv2d_packed") == 2
    assert names.count("strided_slice") == 1
    assert names[-1] == "strided_slice"


def test_two_padded_tensors_are_added_with_their_padding():
    x = relay.var("x", shape=(1, 4, 5, 8), dtype="int8")
    left, right = (conv(x, 1, 1, 8, 7) for _ in range(2))
    assert same(relay.add(left, right), (1, 4, 5, 8))[-2:] == ["add", "strided_slice"]
    other = relay.var("y", shape=(1, 4, 5, 7), dtype="int32")
    function = relay.add(conv(x, 1, 1, 8, 7), other).as_function()
    after = pad_quantized(function, VNNI)
    given = [rng.integers(-9, 9, p.type.shape).astype(p.type.dtype) for p in after.params]
    np.testing.assert_array_equal(interpret(after, *given), interpret(function, *given))


@pytest.mark.parametrize(
    ("inputs", "outputs", "groups"), [(13, 13, 3), (2, 2, 8), (3, 5, 4), (1, 3, 6), (4, 7, 2)]
)
def test_groups(inputs, outputs, groups):
    shape = (1, 5, 6, inputs * groups)
    x = relay.var("x", shape=shape, dtype="int8")
    made = conv(x, 3, 3, inputs, outputs * groups, groups=groups, padding=(0, 1, 1, 0))
    names = same(requantised(made), shape)
    assert "qnn.contrib_conv2d_packed" in names
    assert "qnn.conv2d_nhwc" not in names


def test_rows():
    x = relay.var("x", shape=(4, 21), dtype="uint8")
    body = op_registry.make("qnn.dense_packed")(x, weights(21, 5))
    assert "qnn.contrib_conv2d_packed" in same(body, (4, 21), "uint8")


def test_whole_vectors_stay():
    x = relay.var("x", shape=(1, 4, 4, 3), dtype="int8")
    function = conv(x, 3, 3, 3, 24).as_function()
    assert pad_quantized(function, VNNI) is function
    assert pad_quantized(function, []) is function
    assert grouping(4, 16, 2, [(16, 4), (8, 4)]) is None


def test_groups_are_joined_where_that_takes_fewer_steps():
    columns = [(8, 4), (16, 4)]
    assert grouping(2, 2, 8, columns) == Grouping(8, 16, 16)
    assert grouping(13, 13, 8, columns) == Grouping(1, 16, 16)
    assert grouping(64, 255, 1, columns) == Grouping(1, 64, 256)


def test_short_vectors_that_are_filled_are_left_for_long_ones_with_padding():
    columns = [(4, 2), (8, 2), (8, 4), (16, 2), (16, 4)]
    assert grouping(60, 100, 1, columns) == Grouping(1, 60, 112)
    assert grouping(60, 36, 1, columns) == Grouping(1, 60, 48)
    assert grouping(60, 104, 1, columns) is None  # 13 of 8 for 7 of 16
    assert grouping(60, 100, 1, [(4, 2), (8, 2)]) == Grouping(1, 60, 104)
    assert grouping(60, 12, 1, [(4, 2), (8, 2)]) is None
    assert grouping(8, 4, 4, [(4, 2), (8, 4)]) == Grouping(2, 16, 8)


@pytest.mark.parametrize("cpu", ["cascadelake", "haswell", "cortex-a76", "cortex-a53"])
def test_every_instruction_gets_channels_that_fill_it(cpu):
    triple = "-mtriple=aarch64-linux-gnu " if cpu.startswith("cortex") else ""
    instructions = packing_instructions(Target(f"llvm {triple}-mcpu={cpu}"))
    x = relay.var("x", shape=(1, 9, 9, 5), dtype="int8")
    function = requantised(conv(x, 3, 3, 5, 11)).as_function()
    packed = pack_quantized(pad_quantized(function, instructions), instructions)
    assert "qnn.conv2d_nhwc" not in str(packed)
    data = rng.integers(-128, 128, (1, 9, 9, 5)).astype("int8")
    np.testing.assert_array_equal(interpret(packed, data), interpret(function, data))


def test_factors_of_channels_and_windows_keep_the_padding():
    x = relay.var("x", shape=(1, 7, 8, 8), dtype="int8")
    sums = conv(x, 3, 3, 8, 13)
    factors, shifts = rng.integers(2**29, 2**30, 13), rng.integers(-9, -4, 13)
    scaled = op_registry.make("qnn.rescale")(
        sums, *(relay.const(v.astype("int32")) for v in (factors, shifts)), once=True
    )
    image = relay.cast(relay.clip(scaled, -128, 127), "int8")
    pooled = relay.nn.max_pool2d(image, (2, 2), (1, 2), layout="NHWC")
    padded = relay.nn.pad(pooled, ((0, 0), (1, 0), (0, 2), (0, 0)), 5.0)
    names = same(conv(padded, 2, 2, 13, 16), (1, 7, 8, 8))
    assert names.count("qnn.contrib_conv2d_packed") == 2
    assert "strided_slice" not in names


@pytest.mark.parametrize("filters", [2, 7, 8, 16])
def test_filters_of_one_channel_are_a_convolution(filters):
    """The first layer of person_detect; one of its eight filters is dead and taken out."""
    x = relay.var("x", shape=(2, 9, 7, 1), dtype="int8")
    by_channel = op_registry.make("qnn.depthwise_conv2d_nhwc")
    first = by_channel(
        x, weights(3, 3, filters), strides=(2, 1), padding=(0, 1, 2, 1), pad_value=-5
    )
    body = by_channel(requantised(first), weights(3, 3, filters), padding=(1, 1, 1, 1))
    names = same(relay.add(body, relay.const(np.int32(3))), (2, 9, 7, 1))
    assert "qnn.contrib_conv2d_packed" in names
