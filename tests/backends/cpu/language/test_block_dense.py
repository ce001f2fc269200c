"""Products with block-quantised weights: packed for each instruction, against exact arithmetic."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.backends.cpu.lowering.pack_blocks import instruction_for
from slipway.relay.ops.nn.block_dense import random_rows
from slipway.relay.ops.packed.block_formats import FORMATS, GROUP, decode, encode, parts_of
from slipway.runtime import cpu
from slipway.runtime.cpu_features import host_features
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.target import Target

HASWELL = "llvm -mcpu=haswell"
TARGETS = {
    "x86.vnni.signed": "llvm -mcpu=cascadelake",
    "x86.maddubs.signed": HASWELL,
}


def built(name, weight, rows, target, exact=False):
    depth = weight.shape[1] // FORMATS[name].bytes * FORMATS[name].size
    x = relay.var("x", shape=(rows, depth))
    function = relay.Function([x], relay.nn.block_dense(x, relay.const(weight), name, exact))
    return relay.build(slipway.IRModule.from_expr(function), target=target)


def bound(data, exact):
    """Return how far a product may be off that rounds data to int8 by groups.

    Half a step of each element, by the magnitude of its weight, and the rounding of float sums.
    """
    groups = np.abs(data).reshape(data.shape[0], -1, GROUP).max(-1) / 127
    steps = np.repeat(groups, GROUP, -1)
    magnitudes = np.abs(exact).T
    return (steps / 2 * 1.001) @ magnitudes + 1e-5 * np.abs(data) @ magnitudes + 1e-6


@pytest.mark.parametrize("name", FORMATS)
def test_the_error_is_that_of_the_data_in_int8(name):
    rng = np.random.default_rng(0)
    blocks = 2 if FORMATS[name].size == GROUP else 1
    weight = random_rows(rng, name, 40, blocks)
    exact = decode(name, weight, np.float64)
    for rows in (1, 7):
        module = GraphModule(built(name, weight, rows, "llvm -mcpu=native")["default"](cpu()))
        data = rng.standard_normal((rows, exact.shape[1])).astype("float32")
        data[0, :GROUP] = 0  # a group of zeros has no scale
        module.run(x=data)
        error = np.abs(module.get_output(0).numpy() - data.astype(np.float64) @ exact.T)
        assert (error <= bound(data, exact)).all()


# What their integers, scales and minima become is packed as that of others is.
ALIKE = ("q2_k", "q3_k", "iq4_nl", "mxfp4", "tq1_0", "tq2_0")


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ALIKE])
@pytest.mark.parametrize("target", ["llvm -mcpu=native", "llvm -mcpu=x86-64", "c"])
def test_data_that_stays_float(name, target):
    """With `exact` the error is that of float32 sums, with whole tiles of rows and what is left."""
    rng = np.random.default_rng(4)
    blocks = 2 if FORMATS[name].size == GROUP else 1
    weight = random_rows(rng, name, 40, blocks)
    want = decode(name, weight, np.float64)
    values, scales, minima = parts_of(name, weight)
    share = want.shape[1] // scales.shape[1]
    # A weight is the difference of two numbers that float32 rounds.
    rounded = np.repeat(np.abs(values.astype(np.float64)).reshape(40, -1, share).max(-1)
                        * np.abs(scales) + np.abs(minima), share, -1)  # fmt: skip
    rows = 21 if target == "llvm -mcpu=native" else 1
    module = GraphModule(built(name, weight, rows, target, exact=True)["default"](cpu()))
    data = rng.standard_normal((rows, want.shape[1])).astype("float32")
    module.run(x=data)
    error = np.abs(module.get_output(0).numpy() - data.astype(np.float64) @ want.T)
    assert (error <= 2.0**-22 * np.abs(data) @ rounded.T + 1e-7).all()


@pytest.mark.parametrize("name", ["q4_0", "q6_k", "q8_0"])
@pytest.mark.parametrize("instruction", TARGETS)
def test_each_instruction(instruction, name):
    target = Target(TARGETS[instruction])
    assert instruction_for(4, target).name == instruction
    features = ("avx512vnni",) if "vnni" in instruction else ("avx2",)
    if not set(features) <= set(host_features()):
        pytest.skip(f"this processor lacks {features}")
    rng = np.random.default_rng(1)
    weight = random_rows(rng, name, 32, 2)
    exact = decode(name, weight, np.float64)
    data = rng.standard_normal((3, exact.shape[1])).astype("float32")
    module = GraphModule(built(name, weight, 3, target)["default"](cpu()))
    module.run(x=data)
    error = np.abs(module.get_output(0).numpy() - data.astype(np.float64) @ exact.T)
    assert (error <= bound(data, exact)).all()


def test_arm_multiplies_bytes():
    """The dot product of NEON; run on an emulated processor by tests/te/test_devices.py."""
    weight = random_rows(np.random.default_rng(2), "q4_0", 16, 2)
    library = built("q4_0", weight, 2, "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod")
    assert "sdot" in library.get_lib().get_source("asm")


@pytest.mark.parametrize(
    ("bits", "target", "instruction"),
    [
        (4, HASWELL, "x86.maddubs.signed"),
        (8, HASWELL, "x86.maddubs.signs"),  # pairs of products of full bytes do not fit 16 bits
        (8, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", "neon.smull.words"),
        (4, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76", "neon.sdot"),
        (5, "llvm -mtriple=armv7-linux-gnueabihf -mattr=+neon", "neon32.vmull.words"),
    ],
)
def test_what_a_processor_multiplies_with(bits, target, instruction):
    assert instruction_for(bits, Target(target)).name == instruction


def test_the_least_byte_of_a_weight():
    """Weights of -128, beside data of both signs, where signs go over to the data."""
    weight = np.zeros((16, 34), np.uint8)
    weight[:, :2] = np.array([1.0], "<f2").view(np.uint8)
    weight[:, 2:] = 128
    if "avx2" not in host_features():
        pytest.skip("this processor lacks avx2")
    module = GraphModule(built("q8_0", weight, 2, Target(HASWELL))["default"](cpu()))
    data = np.ones((2, 32), "float32") * np.array([[127], [-127]], "float32")
    data[:, ::3] *= -1
    module.run(x=data)
    want = data.astype(np.float64) @ np.full((32, 16), -128.0)
    np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("name", ["q8_0", "q4_0"])
def test_encoding_is_the_nearest(name):
    values = np.random.default_rng(3).standard_normal((4, 96)).astype("float32")
    rows = encode(name, values)
    again = decode(name, rows)
    top = np.abs(values).reshape(4, 3, GROUP).max(-1)
    step = np.repeat(top / (127 if name == "q8_0" else 8), GROUP, -1)
    # float16 scales, and 7 steps up of 4 bits for 8 down
    assert (np.abs(again - values) <= step * (0.6 if name == "q8_0" else 1.01)).all()
