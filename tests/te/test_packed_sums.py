"""Tiles of a multiply-add instruction on the processors that have one, this one and emulated."""

import numpy as np
import pytest

from slipway import te
from slipway.backends.strategy import Choice, Problem, strategies
from slipway.ir.hardware import HARDWARE
from slipway.relay import op_registry
from slipway.relay.ops.packed import qnn_packed
from slipway.relay.types import TensorType
from slipway.target import Target

SHAPES = [
    ((1, 9, 7, 6), (3, 3, 6, 24), {"padding": (1, 1, 1, 1), "strides": (2, 2), "pad_value": -5}),
    ((2, 5, 5, 16), (1, 1, 16, 16), {}),
    ((1, 7, 6, 24), (3, 3, 24, 20), {"padding": (1, 1, 1, 1), "pad_value": -5}),
    ((1, 6, 5, 3), (3, 2, 3, 8), {"dilation": (1, 2), "pad_value": 127, "padding": (0, 1, 1, 0)}),
]


FLAGS = {"host": " -mcpu=native", "aarch64": " -mattr=+dotprod", "armv7": ""}
INSTRUCTIONS = [
    ("host", "x86.vnni"), ("host", "x86.vnni.256"), ("host", "x86.avxvnni"),
    ("host", "x86.pmaddwd"), ("host", "x86.pmaddwd.sse"), ("host", "x86.pmaddwd.bytes"),
    ("aarch64", "neon.sdot"), ("aarch64", "neon.smull"), ("armv7", "neon32.vmull"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "weight", "options"), SHAPES)
@pytest.mark.parametrize(("device", "instruction"), INSTRUCTIONS, indirect=["device"])
def test_packed_convolution(device, instruction, data, weight, options):
    target, entry = Target(device.target + FLAGS[device.name]), HARDWARE[instruction]
    lacking = entry.missing(target)
    if lacking:
        assert device.name == "host"
        pytest.skip(f"this processor lacks {', '.join(lacking)}")
    rng = np.random.default_rng(1)
    kind = "uint8" if entry.a_dtype == "uint8" else "int8"
    info = np.iinfo(kind)
    given = rng.integers(info.min, info.max + 1, data).astype(kind)
    given[0, 0], given[0, 1] = info.min, info.max
    plain = rng.integers(-128, 128, weight).astype("int8")
    plain = np.pad(plain, ((0, 0),) * 3 + ((0, -weight[3] % entry.columns),))
    packed = qnn_packed.pack_weights(plain, entry.columns, entry.depth, entry.b_dtype)
    attrs = qnn_packed.IntegerConvAttrs(**options)
    attrs = attrs.replace(pad_value=attrs.pad_value - (-128 if kind == "uint8" else 0))
    want = op_registry.get("qnn.conv2d_nhwc").evaluate(attrs, given, plain)

    if (entry.a_dtype, entry.b_dtype) == ("int16", "int8"):  # reads what is wide already
        given = given.astype(kind := entry.a_dtype)
    x = te.placeholder(data, kind, name="x")
    w = te.placeholder(packed.shape, packed.dtype.name, name="w")
    sums = TensorType(want.shape, "int32")
    types = [TensorType(data, kind), TensorType(packed.shape, packed.dtype.name)]
    problem = Problem("qnn.contrib_conv2d_packed", attrs, types, [sums], target)
    (way,) = (s for s in strategies(problem.op, target) if s.name == "qnn_conv.packed")
    choice = Choice(way, problem, way.knobs_for(problem))
    (out,) = choice.compute([x, w])
    function = device.build(choice.schedule([out], out), [x, w, out], target)
    got = device.array(np.zeros(want.shape, "int32"))
    function(device.array(given), device.array(packed), got)
    np.testing.assert_array_equal(got.numpy(), want)
