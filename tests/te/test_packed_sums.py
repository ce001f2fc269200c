"""Tiles of a multiply-add instruction on the processors that have one, this one and emulated."""

import numpy as np
import pytest

from slipway import te
from slipway.relay import op_registry
from slipway.relay.ops import qnn_packed
from slipway.relay.passes.pack_quantized import packing_instruction
from slipway.relay.types import TensorType
from slipway.schedules.cpu.quantized_packed import schedule_packed
from slipway.target import Target

SHAPES = [
    ((1, 9, 7, 6), (3, 3, 6, 24), {"padding": (1, 1, 1, 1), "strides": (2, 2), "pad_value": -5}),
    ((2, 5, 5, 16), (1, 1, 16, 16), {}),
    ((1, 6, 5, 3), (3, 2, 3, 8), {"dilation": (1, 2), "pad_value": 127, "padding": (0, 1, 1, 0)}),
]


@pytest.mark.parametrize(("data", "weight", "options"), SHAPES)
@pytest.mark.parametrize("device", ["host", "aarch64"], indirect=True)
def test_packed_convolution(device, data, weight, options):
    flags = {"host": " -mcpu=native", "aarch64": " -mattr=+dotprod"}[device.name]
    target = Target(device.target + flags)
    entry = packing_instruction(target)
    if entry is None:
        assert device.name == "host"
        pytest.skip("this processor has no such instruction")
    rng = np.random.default_rng(1)
    given = rng.integers(-128, 128, data).astype("int8")
    plain = rng.integers(-128, 128, weight).astype("int8")
    packed = qnn_packed.pack_weights(plain, entry.columns, entry.depth, entry.b_dtype)
    attrs = qnn_packed.IntegerConvAttrs(**options)
    want = op_registry.get("qnn.conv2d_nhwc").evaluate(attrs, given, plain)

    x = te.placeholder(data, "int8", name="x")
    w = te.placeholder(packed.shape, packed.dtype.name, name="w")
    kind = TensorType(want.shape, "int32")
    (out,) = qnn_packed.packed_compute(attrs, [x, w], [kind])
    function = device.build(schedule_packed(target, [out], out), [x, w, out], target)
    got = device.array(np.zeros(want.shape, "int32"))
    function(device.array(given), device.array(packed), got)
    np.testing.assert_array_equal(got.numpy(), want)
