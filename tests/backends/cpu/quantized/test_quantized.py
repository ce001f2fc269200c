"""Tiles of integer sums: the sample cases of the operators, shapes that fit no vector."""

import re

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.contrib import graph_executor
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.expr import Function, Var
from slipway.relay.types import TensorType
from slipway.target import Target

NAMES = [name for name in op_registry.load_ops() if name.startswith("qnn.")]


def run(function, arrays, target):
    lib = relay.build(IRModule((("main", function),)), target=target)
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    for index, value in enumerate(arrays):
        executor.set_input(index, value)
    executor.run()
    return executor.get_output(0).numpy()


def variables(arrays):
    return [Var(f"x{i}", TensorType(a.shape, a.dtype.name)) for i, a in enumerate(arrays)]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_operator_equals_its_reference(name):
    definition = op_registry.get(name)
    for case in definition.cases:
        arrays = case.arrays(3)
        made = variables(arrays)
        function = Function(tuple(made), definition(*made, attrs=case.attrs))
        want = definition.evaluate(case.attrs, *arrays)
        np.testing.assert_array_equal(run(function, arrays, "llvm"), want)


@pytest.mark.parametrize("channels", [5, 12, 16, 40, 96])
@pytest.mark.parametrize("width", [1, 7, 24])
def test_convolution_with_requantisation_behind(channels, width):
    rng = np.random.default_rng(6)
    data = rng.integers(-128, 128, (1, 9, width, 8)).astype(np.int8)
    weight = rng.integers(-128, 128, (3, 1, 8, channels)).astype(np.int8)
    (x,) = variables([data])
    total = relay.qnn.op.conv2d_nhwc(x, weight, padding=(1, 0, 1, 0), pad_value=-5)
    scaled = relay.qnn.op.requantize(total, np.linspace(0.001, 0.002, channels), 0, 0.9, -3, axis=3)
    function = Function((x,), scaled)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(run(function, [data], "llvm"), want)


def convolution(height, width, depth, channels, window, stride, kind="int8"):
    """A convolution with its requantisation, random data, and what the interpreter makes of it."""
    rng = np.random.default_rng(height * width)
    info = np.iinfo(kind)
    data = rng.integers(info.min, info.max + 1, (1, height, width, depth)).astype(kind)
    weight = rng.integers(-128, 128, (window, window, depth, channels)).astype(np.int8)
    data.flat[: depth * width] = info.min  # the largest products, all of one sign
    weight[..., 0] = -128
    (x,) = variables([data])
    total = relay.qnn.op.conv2d_nhwc(
        x, weight, (stride, stride), (window // 2,) * 4, pad_value=int(info.max)
    )
    factors = np.linspace(1e-4, 2e-4, channels)
    scaled = relay.qnn.op.requantize(total, factors, 0, 0.9, -3, axis=3)
    function = Function((x,), scaled)
    return function, data, relay.interpret.interpret(function, data)


@pytest.mark.parametrize("size", [(32, 32), (24, 37)])
def test_the_positions_of_a_tile_lie_in_one_line(size):
    """Else each has an address of its own, more than registers hold: 2.5 times as slow."""
    function, *_ = convolution(*size, 16, 16, 3, 1)
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake"
    code = relay.build(IRModule((("main", function),)), target=target).get_lib().get_source("asm")
    products = len(re.findall("vpdpbusd", code))
    assert len(re.findall(r"movq\t-?\d*\(%rsp\), %r", code)) < products


@pytest.mark.parametrize(
    "shape",
    [
        (28, 27, 3, 32, 7, 2),  # a missing channel, several tasks
        (5, 37, 8, 16, 3, 1),  # lines that no tile divides
        (14, 14, 40, 24, 3, 1),
        (13, 9, 33, 16, 1, 2),
        (1, 1, 64, 1000, 1, 1),
        (31, 30, 64, 72, 1, 1),
    ],
)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_packed_weights_give_the_same_bytes(shape, kind):
    function, data, want = convolution(*shape, kind)
    np.testing.assert_array_equal(run(function, [data], "llvm"), want)


@pytest.mark.parametrize(("depth", "channels", "groups"), [(32, 64, 4), (24, 96, 3), (20, 64, 4)])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_groups_of_whole_vectors_give_the_same_bytes(depth, channels, groups, kind):
    rng = np.random.default_rng(groups)
    info = np.iinfo(kind)
    data = rng.integers(info.min, info.max + 1, (1, 9, 7, depth)).astype(kind)
    weight = rng.integers(-128, 128, (3, 3, depth // groups, channels)).astype(np.int8)
    (x,) = variables([data])
    total = relay.qnn.op.conv2d_nhwc(x, weight, padding=(1, 1, 1, 1), groups=groups, pad_value=7)
    function = Function((x,), total)
    want = relay.interpret.interpret(function, data)
    for target in ("llvm", "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2"):
        np.testing.assert_array_equal(run(function, [data], target), want)


@pytest.mark.parametrize(
    "shape",
    [
        (14, 14, 32, 3, 1),
        (9, 12, 70, 3, 2),  # channels that overlap
        (9, 8, 144, 5, 1),
        (30, 31, 96, 3, 1),  # an odd width: no results together
        (5, 5, 33, 4, 1),
        (7, 7, 16, 3, 1),  # too few channels for the instruction
    ],
)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_depthwise_gives_the_same_bytes(shape, kind):
    height, width, channels, window, stride = shape
    rng = np.random.default_rng(channels)
    info = np.iinfo(kind)
    data = rng.integers(info.min, info.max + 1, (1, height, width, channels)).astype(kind)
    weight = rng.integers(-128, 128, (window, window, channels)).astype(np.int8)
    data[0, :3], weight[..., 0], weight[..., 1] = info.max, -128, 127
    (x,) = variables([data])
    total = relay.qnn.op.depthwise_conv2d_nhwc(
        x, weight, (stride, stride), (window // 2,) * 4, pad_value=int(info.max)
    )
    factors = np.linspace(1e-4, 2e-4, channels)
    scaled = relay.qnn.op.requantize(total, factors, 0, 0.9, -3, axis=3)
    function = Function((x,), scaled)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(run(function, [data], "llvm"), want)


@pytest.mark.parametrize(
    ("taps", "stride", "padding"),
    [(3, 1, (0, 0, 0, 0)), (5, 2, (3, 0, 1, 0)), (10, 1, (4, 0, 5, 0))],
)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_depthwise_over_a_column_gives_the_same_bytes(taps, stride, padding, kind):
    """As over a row, whose windows the instructions take."""
    rng = np.random.default_rng(taps)
    info = np.iinfo(kind)
    data = rng.integers(info.min, info.max + 1, (1, 23, 1, 40)).astype(kind)
    weight = rng.integers(-128, 128, (taps, 1, 40)).astype(np.int8)
    (x,) = variables([data])
    zero = int(info.min) + 5
    total = relay.qnn.op.depthwise_conv2d_nhwc(x, weight, (stride, 1), padding, pad_value=zero)
    function = Function((x,), relay.qnn.op.requantize(total, [2e-4] * 40, 0, 0.9, -3, axis=3))
    packed = optimize(IRModule((("main", function),)), target=Target("llvm"))
    assert "contrib_depthwise_packed" in str(packed)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(run(function, [data], "llvm"), want)


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell", "vpmaddwd"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake", "vpdpbusd"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=alderlake", "{vex}\tvpdpbusd"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64", "pmaddwd"),
        ("llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod", "sdot"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", "sadalp"),
        ("llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon", "vpadal.s16"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+v", "vwmacc.vx"),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+v,+zvl256b", "vwmacc.vx"),
    ],
)
def test_sums_stay_in_registers(target, instruction):
    """The inner loop holds the target's instruction, and stores nothing."""
    function, _, _ = convolution(7, 7, 64, 32, 3, 1)
    lib = relay.build(IRModule((("main", function),)), target=target)
    parts = lib.get_source("asm").split("\n.L")
    loops = [part.split("\tj", 1)[0].split("\tb.", 1)[0] for part in parts]
    busy = [text for text in loops if text.count(instruction) >= 6]
    assert busy
    for text in busy:
        assert "vpmovsx" not in text
        lines = [line.split("#")[0].strip() for line in text.splitlines()]
        assert not [x for x in lines if x.startswith(("st", "vmovdq")) and x.endswith((")", "]"))]


@pytest.mark.parametrize(
    ("cpu", "instruction"),
    [
        ("x86_64-linux-gnu -mcpu=haswell", "vpmaddwd"),
        ("x86_64-linux-gnu -mcpu=cascadelake", "vpdpbusd"),
        ("x86_64-linux-gnu -mcpu=alderlake", "{vex}\tvpdpbusd"),
        ("x86_64-linux-gnu -mcpu=x86-64", "pmaddwd"),
        ("aarch64-linux-gnu -mcpu=cortex-a72", "smlal"),
        ("armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon", "vmlal.s8"),
    ],
)
def test_taps_use_the_instruction_that_the_processor_has(cpu, instruction):
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (3, 3, 96)).astype(np.int8)
    (x,) = variables([np.zeros((1, 14, 14, 96), np.uint8)])
    total = relay.qnn.op.depthwise_conv2d_nhwc(x, weight, padding=(1, 1, 1, 1))
    function = Function((x,), total)
    target = f"llvm -mtriple={cpu}"
    text = relay.build(IRModule((("main", function),)), target=target).get_source("asm")
    assert text.count(instruction) >= 12
    assert ("vpdpbusd" in text) == ("vpdpbusd" in instruction)
    assert "vpmulld" not in text


def test_haswell_code_gives_the_same_bytes():
    """The code for processors without vpdpbusd, on this one."""
    if not Target("llvm").has_feature("avx2"):
        pytest.skip("this processor lacks avx2")
    function, data, want = convolution(9, 11, 24, 40, 3, 2)
    target = "llvm -mcpu=haswell"
    np.testing.assert_array_equal(run(function, [data], target), want)
    weight = np.random.default_rng(2).integers(-128, 128, (3, 3, 24)).astype(np.int8)
    (x,) = variables([data])
    taps = Function((x,), relay.qnn.op.depthwise_conv2d_nhwc(x, weight, padding=(1,) * 4))
    want = relay.interpret.interpret(taps, data)
    np.testing.assert_array_equal(run(taps, [data], target), want)


@pytest.mark.parametrize(
    "shape",
    [
        (7, 7, 64, 40),  # one block of tiles, whose last ones are cut
        (34, 29, 16, 32),
        (40, 64, 96, 24),  # several blocks
    ],
)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_winograd_in_integers_gives_the_same_bytes(shape, kind):
    if not Target("llvm").has_feature("avx2"):
        pytest.skip("this processor lacks avx2")
    function, data, want = convolution(*shape, 3, 1, kind)
    target = Target("llvm -mcpu=haswell -num-cores=2")
    packed = optimize(IRModule((("main", function),)), target=target)
    assert "contrib_conv2d_winograd" in str(packed)
    np.testing.assert_array_equal(run(function, [data], target), want)


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("llvm -mcpu=haswell", (14, 14, 8, 64, 3, 1)),  # few channels
        ("llvm -mcpu=haswell", (14, 14, 64, 64, 3, 2)),
        ("llvm -mcpu=cascadelake", (14, 14, 64, 64, 3, 1)),  # four bytes a step
    ],
)
def test_direct_sums_where_winograd_gains_nothing(target, shape):
    function, _, _ = convolution(*shape)
    made = optimize(
        IRModule((("main", function),)), target=Target(f"{target} -mtriple=x86_64-linux-gnu")
    )
    assert "contrib_conv2d_packed" in str(made)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_weights_of_a_single_row_stay_bytes(kind):
    if not Target("llvm").has_feature("avx2"):
        pytest.skip("this processor lacks avx2")
    rng = np.random.default_rng(3)
    info = np.iinfo(kind)
    data = rng.integers(info.min, info.max + 1, (1, 70)).astype(kind)
    weight = rng.integers(-128, 128, (70, 48)).astype(np.int8)
    (x,) = variables([data])
    function = Function((x,), relay.qnn.op.dense_packed(x, weight))
    module = IRModule((("main", function),))
    text = relay.build(module, target="llvm -mcpu=haswell").get_source("asm")
    assert "vpmovsxbw" in text
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(run(function, [data], "llvm -mcpu=haswell"), want)


@pytest.mark.parametrize("shape", [(1, 70), (5, 64), (2, 3, 30)])
@pytest.mark.parametrize("units", [16, 24, 10])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_dense_gives_the_same_bytes(shape, units, kind):
    rng = np.random.default_rng(units)
    info = np.iinfo(kind)
    data = rng.integers(info.min, info.max + 1, shape).astype(kind)
    weight = rng.integers(-128, 128, (shape[-1], units)).astype(np.int8)
    (x,) = variables([data])
    total = relay.qnn.op.dense_packed(x, weight) + relay.const(
        rng.integers(-99, 99, units), "int32"
    )
    scaled = relay.qnn.op.requantize(total, 0.002, 0, 0.9, -3)
    function = Function((x,), scaled)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(run(function, [data], "llvm"), want)
