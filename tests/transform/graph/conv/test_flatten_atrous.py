"""Convolutions between space_to_batch_nd and batch_to_space_nd are dilated ones."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.interpret import interpret
from slipway.relay.testing import count_ops

RNG = np.random.default_rng(3)


def in_batches(x, blocks, pads, crops, kernel, extra, groups=1, pad_value=0):
    weight = RNG.normal(size=(kernel, kernel, 4 // groups, 8)).astype("float32")
    y = relay.nn.conv2d(
        relay.nn.space_to_batch_nd(x, blocks, pads, pad_value), relay.const(weight), groups=groups,
        channels=8, kernel_size=(kernel, kernel), data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    if extra:
        y = relay.nn.bias_add(y, relay.const(RNG.normal(size=8).astype("float32")), axis=3)
        y = relay.clip(y * relay.const(RNG.normal(size=8).astype("float32")), 0.0, 6.0)
    return relay.nn.batch_to_space_nd(y, blocks, crops)


@pytest.mark.parametrize(
    ("size", "blocks", "pads", "crops", "kernel", "groups"),
    [
        ((5, 5), (2, 2), ((2, 3), (2, 3)), ((0, 1), (0, 1)), 3, 4),
        ((5, 7), (4, 4), ((4, 7), (4, 5)), ((0, 3), (0, 3)), 3, 1),
        ((11, 11), (3, 3), ((0, 1), (0, 1)), ((0, 0), (0, 0)), 3, 1),
        ((6, 9), (2, 3), ((4, 4), (6, 6)), ((1, 1), (0, 2)), 5, 2),
    ],
)
@pytest.mark.parametrize("extra", [False, True])
def test_it_is_dilated(size, blocks, pads, crops, kernel, groups, extra):
    given = RNG.normal(size=(2, *size, 4)).astype("float32")
    x = relay.var("x", shape=given.shape)
    body = in_batches(x, blocks, pads, crops, kernel, extra, groups)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
    made = relay.transform.FlattenAtrousConv()(module)
    assert not {"reshape", "transpose", "nn.pad", "strided_slice"} & set(count_ops(made["main"]))
    assert f"dilation=[{blocks[0]}, {blocks[1]}]" in str(made["main"])
    wanted = interpret(module["main"], given)
    np.testing.assert_allclose(interpret(made["main"], given), wanted, rtol=1e-4, atol=1e-5)
    found = relay.create_executor("graph", mod=module).evaluate()(given).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_several_after_one_another():
    x = relay.var("x", shape=(1, 12, 12, 4))
    y = x
    for _ in range(3):
        y = in_batches(y, (2, 2), ((2, 2), (2, 2)), ((0, 0), (0, 0)), 3, True)
        y = relay.nn.conv2d(
            y, relay.const(RNG.normal(size=(1, 1, 8, 4)).astype("float32")), channels=4,
            kernel_size=(1, 1), data_layout="NHWC", kernel_layout="HWIO",
        )  # fmt: skip
    module = tvm.IRModule.from_expr(relay.Function([x], y))
    made = relay.transform.FlattenAtrousConv()(module)
    assert str(made["main"]).count("dilation=[2, 2]") == 3
    assert "reshape" not in count_ops(made["main"])


def test_what_is_none_stays():
    x = relay.var("x", shape=(1, 6, 6, 4))
    pads, crops = ((2, 2), (2, 2)), ((0, 0), (0, 0))
    other_value = in_batches(x, (2, 2), pads, crops, 3, False, pad_value=1)
    inner = relay.nn.space_to_batch_nd(x, (2, 2), pads)
    other_axis = relay.nn.batch_to_space_nd(relay.sum(inner, 3, keepdims=True), (2, 2), crops)
    softmax = relay.nn.batch_to_space_nd(relay.nn.softmax(inner, axis=1), (2, 2), crops)
    for body in (other_value, other_axis, softmax):
        module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
        made = relay.transform.FlattenAtrousConv()(module)
        assert tvm.ir.structural_equal(module["main"], made["main"])


def test_integers_are_padded_with_their_zero():
    x = relay.var("x", shape=(1, 5, 5, 4), dtype="int8")
    weight = relay.const(RNG.integers(-99, 99, (3, 3, 4, 6)).astype("int8"))
    for value, is_dilated in ((5, True), (0, False)):
        conv = relay.qnn.op.conv2d(
            relay.nn.space_to_batch_nd(x, (2, 2), ((2, 3), (2, 3)), value), weight,
            relay.const(5), relay.const(0), relay.const(0.5), relay.const(0.25),
            channels=6, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO",
        )  # fmt: skip
        body = relay.nn.batch_to_space_nd(conv, (2, 2), ((0, 1), (0, 1)))
        module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
        made = relay.transform.FlattenAtrousConv()(module)
        assert ("dilation=[2, 2]" in str(made["main"])) == is_dilated, value
        given = RNG.integers(-128, 127, (1, 5, 5, 4)).astype("int8")
        wanted = interpret(module["main"], given)
        np.testing.assert_array_equal(interpret(made["main"], given), wanted)
        found = relay.create_executor("graph", mod=module).evaluate()(given).numpy()
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("depthwise", [False, True])
def test_integers_of_litert(depthwise):
    x = relay.var("x", shape=(1, 5, 5, 4), dtype="int8")
    shape = (3, 3, 8) if depthwise else (3, 3, 4, 6)
    kernel = relay.const(RNG.integers(-99, 99, shape).astype("int8"))
    make = relay.op_registry.make("qnn.depthwise_conv2d_nhwc" if depthwise else "qnn.conv2d_nhwc")
    batches = relay.nn.space_to_batch_nd(x, (2, 2), ((2, 3), (2, 3)), -7)
    sums = make(batches, kernel, pad_value=-7)
    channels = sums.tensor_type.shape[-1]
    bias = relay.const(RNG.integers(-999, 999, channels).astype("int32"))
    factor = relay.const(RNG.integers(1 << 30, (1 << 31) - 1, channels).astype("int32"))
    shift = relay.const(RNG.integers(-9, -6, channels).astype("int32"))
    scaled = relay.op_registry.make("qnn.rescale")(relay.add(sums, bias), factor, shift)
    narrow = relay.cast(relay.clip(scaled, -128, 127), "int8")
    body = relay.nn.batch_to_space_nd(narrow, (2, 2), ((0, 1), (0, 1)))
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))
    made = relay.transform.FlattenAtrousConv()(module)
    assert "dilation=[2, 2]" in str(made["main"])
    assert "reshape" not in count_ops(made["main"])
    given = RNG.integers(-128, 127, (1, 5, 5, 4)).astype("int8")
    wanted = interpret(module["main"], given)
    np.testing.assert_array_equal(interpret(made["main"], given), wanted)
    found = relay.create_executor("graph", mod=module).evaluate()(given).numpy()
    np.testing.assert_array_equal(found, wanted)
