"""Products of bytes over open sizes: the packed kernels, and the same integers at each size."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.backends.cpu.lowering.pack_quantized import packing_instructions
from slipway.compiler.kernels import lower_kernel
from slipway.relay import Dim
from slipway.relay.interpret import interpret
from slipway.relay.ops.packed.qnn_packed import contrib_conv2d_packed
from slipway.target import Target

TARGETS = ("llvm", "llvm -mcpu=haswell", "llvm -mcpu=x86-64-v2", "llvm -mcpu=skylake-avx512")
CASES = {  # channels, filters, window, strides, padding, dilation, groups, layout
    "3x3": (16, 32, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, "NCHW"),
    "strided": (8, 24, (3, 2), (2, 1), (0, 1, 1, 0), (1, 1), 1, "NCHW"),
    "1x1": (32, 16, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NHWC"),
    "five_channels": (5, 8, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NCHW"),
    "odd": (3, 13, (5, 5), (2, 2), (2, 2, 2, 2), (1, 1), 1, "NCHW"),
    "dilated": (4, 16, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 1, "NHWC"),
    "groups": (32, 32, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 2, "NCHW"),
    "depthwise": (16, 16, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 16, "NCHW"),
    "depthwise_strided": (24, 24, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 24, "NCHW"),
    "depthwise_asymmetric": (64, 64, (4, 5), (2, 3), (0, 1, 1, 0), (1, 1), 64, "NHWC"),
}


def _case(name, size, dtype, zero):
    """Return a module that convolves bytes of `size`, less a zero point: a number, or an input."""
    channels, filters, window, strides, padding, dilation, groups, layout = CASES[name]
    rng = np.random.default_rng(len(name))
    shape = (1, channels, *size) if layout == "NCHW" else (1, *size, channels)
    x = relay.var("x", shape=shape, dtype=dtype)
    z = relay.var("z", shape=(), dtype=dtype) if zero is None else relay.const(zero, "int32")
    weight = rng.integers(-127, 128, (filters, channels // groups, *window)).astype("int8")
    made = relay.nn.conv2d(
        relay.subtract(relay.cast(x, "int32"), relay.cast(z, "int32")),
        relay.cast(relay.const(weight), "int32"),
        strides=strides, padding=padding, dilation=dilation, groups=groups,
        data_layout=layout, kernel_layout="OIHW", out_dtype="int32",
    )  # fmt: skip
    inputs = [x, z] if zero is None else [x]
    return slipway.IRModule.from_expr(relay.Function(inputs, made))


def _values(module, size, dtype, seed):
    rng = np.random.default_rng(seed)
    kind = np.iinfo(dtype)
    params = module["main"].params
    shape = [size[0] if str(d) == "h" else size[1] if str(d) == "w" else d
             for d in params[0].checked_type.shape]  # fmt: skip
    values = {"x": rng.integers(kind.min, kind.max + 1, shape).astype(dtype)}
    if len(params) > 1:
        values["z"] = np.array(rng.integers(kind.min, kind.max + 1), dtype)
    return values


@pytest.mark.parametrize("name", CASES)
def test_sums_are_the_same_integers_at_each_size(name):
    number = list(CASES).index(name)
    dtype, zero = ("int8", "uint8")[number % 2], (None, 3)[number // 2 % 2]
    for target in (TARGETS[0], TARGETS[1 + number % 3]):
        module = _case(name, (Dim("h", 5, 40), Dim("w", 5, 40)), dtype, zero)
        model = slipway.compile(module, target)
        for size in ((5, 5), (40, 40), (7, 33)):
            values = _values(module, size, dtype, size[1])
            fixed = _case(name, size, dtype, zero)
            wanted = interpret(relay.transform.InferType()(fixed)["main"], *values.values())
            np.testing.assert_array_equal(model(**values), wanted, err_msg=f"{target} {size}")


@pytest.mark.parametrize("target", TARGETS)
def test_a_step_of_open_rows_is_the_instruction(target):
    """Rows from eight on take the strategy of known rows, not the plain loops."""
    entry = next(i for i in packing_instructions(Target(target)) if i.rows == 0)
    data = relay.var("d", shape=(1, Dim("n", 8, 80), 1, 64), dtype=entry.a_dtype)
    lanes, depth = entry.columns, entry.depth
    weight = relay.var("w", shape=(4, 1, 1, 64 // depth, lanes, depth), dtype=entry.b_dtype)
    function = contrib_conv2d_packed(data, weight).as_function().with_attr("Primitive", 1)
    assert entry.name in str(lower_kernel("kernel", function, Target(target)).script())


@pytest.mark.parametrize("stride", [1, 2])
def test_a_step_of_open_depthwise_taps_is_the_instruction(stride):
    """Also where the width that the steps read is no formula without a maximum."""
    target = Target("llvm -mcpu=znver4")
    x = relay.var("x", shape=(1, 64, Dim("h", 8, 80), Dim("w", 8, 80)), dtype="int8")
    weight = relay.const(np.ones((64, 1, 3, 3), "int8"))
    made = relay.nn.conv2d(
        x, weight, strides=(stride, stride), padding=(1, 1), groups=64, channels=64,
        kernel_size=(3, 3), out_dtype="int32",
    )  # fmt: skip
    library = relay.build(slipway.IRModule.from_expr(relay.Function([x], made)), target)
    assert "vpdpbusd" in library.get_lib().get_source("asm")
