"""Pain 12: quantised models import wrongly, or give different numbers on different processors."""

import platform

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.inspect.bisect import kernel_reference


def quantised(channels=7, wide=11):
    """Odd sizes, an asymmetric input, one scale for each channel, and a residual sum."""
    rng = np.random.default_rng(3)
    x = relay.var("x", shape=(1, 5, 9, wide), dtype="int8")
    weights = [
        rng.integers(-127, 128, s).astype("int8") for s in ((channels, 5, 3, 3), (6, channels))
    ]
    scales = rng.uniform(0.002, 0.02, channels).astype("float32")
    zero, unit = relay.const(0, "int32"), relay.const(0.05)
    y = relay.qnn.conv2d(
        x, relay.const(weights[0]), relay.const(-13, "int32"), zero, unit, relay.const(scales),
        kernel_size=(3, 3), channels=channels, padding=(1, 1),
    )  # fmt: skip
    y = relay.qnn.requantize(
        y, relay.const(0.05 * scales), zero, relay.const(0.11), relay.const(4, "int32"),
        axis=1, out_dtype="int8",
    )  # fmt: skip
    y = relay.nn.batch_flatten(relay.sum(relay.cast(y, "int32"), axis=(2, 3)))
    y = relay.cast(relay.clip(relay.right_shift(y, relay.const(4)), -128, 127), "int8")
    y = relay.qnn.dense(
        y, relay.const(weights[1]), relay.const(4, "int32"), zero, relay.const(0.11),
        relay.const(0.007), units=6,
    )  # fmt: skip
    y = relay.qnn.requantize(
        y, relay.const(0.11 * 0.007), zero, relay.const(0.4), relay.const(-2, "int32"),
        out_dtype="int8",
    )  # fmt: skip
    return tvm.IRModule.from_expr(relay.Function([x], y))


TARGETS = {
    "the widest of this machine": "llvm",
    "plain x86-64": "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64",
    "AVX2": "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell",
    "AVX-512 and VNNI": "llvm -mtriple=x86_64-linux-gnu -mcpu=icelake-server",
    "C": "c",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are targets of x86-64")
def test_one_rule_gives_the_same_bits_whatever_computes_them():
    module = quantised()
    rng = np.random.default_rng(8)
    inputs = [rng.integers(-128, 128, (1, 5, 9, 11)).astype("int8") for _ in range(4)]
    wanted = None
    for name, target in TARGETS.items():
        model = tvm.compile(module, target, quiet=True)
        try:
            got = [model(x) for x in inputs]
        except tvm.errors.ExecutionError as error:
            if "needs the processor features" not in str(error):
                raise  # a processor that lacks it says so, and computes nothing
            continue
        wanted = got if wanted is None else wanted
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
    assert len({x.tobytes() for x in wanted}) == len(inputs)  # not a constant


def test_the_reference_of_the_operators_is_the_same_rule():
    module = relay.transform.InferType()(quantised())
    x = np.random.default_rng(9).integers(-128, 128, (1, 5, 9, 11)).astype("int8")
    (wanted,) = kernel_reference(module["main"], [x])
    np.testing.assert_array_equal(tvm.compile(module, quiet=True)(x), wanted)
