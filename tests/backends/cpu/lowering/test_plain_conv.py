"""Convolutions of plain data stay plain where blocks of channels would only be moved and padded."""

import json

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.backends.cpu.lowering.plain_conv import read_in
from slipway.contrib.graph_executor import GraphModule
from slipway.relay.interpret import interpret
from slipway.relay.ops.nn.conv import convolve

TARGETS = ["llvm -mcpu=znver3", "llvm -mcpu=znver4", "llvm -mtriple=aarch64-linux-gnu"]
FEW = (1, 90, 63, 63), (6, 90, 1, 1), 1
GROUPED = (1, 60, 33, 33), (18, 10, 1, 1), 6


def convolution(data, weight_shape, groups=1, seed=0):
    filters, _, *window = weight_shape
    weight = np.random.default_rng(seed).standard_normal(weight_shape).astype("float32")
    padding = [n // 2 for n in window]
    return relay.nn.conv2d(
        data, relay.const(weight), padding=padding, channels=filters, kernel_size=window,
        groups=groups,
    )  # fmt: skip


def kernels(body, target):
    """The names of a built model's kernels, in order."""
    module = slipway.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    graph = json.loads(relay.build(module, slipway.target.Target(target)).get_graph_json())
    return [n["attrs"]["func_name"] for n in graph["nodes"] if n["op"] == "tvm_op"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("data", "weight", "groups"), [FEW, GROUPED])
def test_a_layer_of_its_own_stays_plain(data, weight, groups, target):
    names = kernels(convolution(relay.var("x", shape=data), weight, groups), target)
    assert len(names) == 1
    assert "conv2d" in names[0]
    assert "nchwc" not in names[0]


def rows(data, weight_shape, groups=1):
    """A convolution over one axis, with what follows it in networks."""
    rng = np.random.default_rng(0)
    weight, bias = (
        rng.standard_normal(s).astype("float32") for s in (weight_shape, weight_shape[0])
    )
    y = relay.nn.conv1d(
        data, relay.const(weight), padding=weight_shape[-1] // 2, groups=groups,
        channels=weight_shape[0], kernel_size=weight_shape[-1],
    )  # fmt: skip
    return relay.nn.relu(relay.nn.bias_add(y, relay.const(bias)))


@pytest.mark.parametrize(
    ("data", "weight", "groups"),
    [
        ((1, 768, 31), (24, 192, 3), 4),
        ((1, 16, 1000), (4, 16, 3), 1),
        ((1, 80, 300), (80, 10, 31), 8),
    ],
)
def test_few_filters_of_one_axis_are_an_image_of_one_row(data, weight, groups):
    x = relay.var("x", shape=data)
    body = rows(x, weight, groups)
    (name,) = set(kernels(body, "llvm -mcpu=znver4")) - {"__nop"}
    assert "conv2d" in name
    assert "relu" in name
    library = relay.build(slipway.IRModule.from_expr(relay.Function([x], body)), "llvm")
    module = GraphModule(library["default"](slipway.cpu(0)))
    given = np.random.default_rng(1).standard_normal(data).astype("float32")
    module.run(x=given)
    wanted = interpret(relay.Function([x], body), given)
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("data", [(1, 128, 16), (1, 64, 500)])
def test_many_filters_of_one_axis_are_in_blocks(data):
    names = kernels(rows(relay.var("x", shape=data), (128, data[1], 3)), "llvm -mcpu=znver4")
    assert any("conv1d_nchwc" in name for name in names)


@pytest.mark.parametrize(("channels", "filters"), [(2, 200), (3, 192)])
def test_channels_with_very_many_filters_are_groups(channels, filters):
    """Repeated they would be read lane by lane: a vector may have filters of two channels."""
    x = relay.var("x", shape=(2, channels, 61, 23))
    body = convolution(x, (filters, 1, 1, 7), channels)
    names = kernels(body, "llvm -mcpu=znver4")
    assert not any("repeat" in name for name in names)
    module = slipway.IRModule.from_expr(relay.Function([x], body))
    model = GraphModule(relay.build(module, "llvm")["default"](slipway.cpu(0)))
    data = np.random.default_rng(1).standard_normal((2, channels, 61, 23)).astype("float32")
    model.run(x=data)
    wanted = interpret(module, data)
    np.testing.assert_allclose(model.get_output(0).numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("times", [8, 12])
def test_channels_with_several_filters_are_not_repeated(times):
    data, weight = (3, 3, 38, 15), (3 * times, 1, 3, 3)
    x = relay.var("x", shape=data)
    (name,) = kernels(convolution(x, weight, 3), "llvm -mcpu=znver4")
    assert "nchwc" not in name


@pytest.mark.parametrize("target", [*TARGETS[:2], f"{TARGETS[2]} -mcpu=cortex-a53"])
@pytest.mark.parametrize(("channels", "size", "taps"), [(11, 97, 3), (6, 56, 5)])
def test_a_depthwise_layer_of_odd_channels_stays_plain(channels, size, taps, target):
    x = relay.var("x", shape=(1, channels, size, size))
    names = kernels(convolution(x, (channels, 1, taps, taps), channels), target)
    assert len(names) == 1
    assert "conv2d" in names[0]
    assert "nchwc" not in names[0]


@pytest.mark.parametrize(
    ("shape", "taps", "target", "stays"),
    [
        ((1, 65, 28, 28), (9, 1), "llvm -mcpu=znver3", True),  # nothing is padded beside a row
        ((1, 119, 56, 56), (9, 1), "llvm -mcpu=znver4", True),
        ((1, 54, 43, 43), (5, 5), "llvm -mcpu=znver4", True),
        ((1, 23, 97, 97), (3, 3), "llvm -mcpu=znver3", True),
        ((1, 22, 33, 33), (3, 3), "llvm -mcpu=znver4", True),
        ((1, 99, 33, 33), (5, 5), "llvm -mcpu=znver3", False),
        ((1, 127, 14, 14), (3, 3), "llvm -mcpu=znver4", False),
    ],
)
def test_a_depthwise_layer_is_where_it_was_measured_to_be_faster(shape, taps, target, stays):
    x = relay.var("x", shape=shape)
    pads = tuple(n // 2 for n in taps)
    conv = relay.nn.conv2d(
        x, relay.const(np.ones((shape[1], 1, *taps), "float32")), padding=pads, groups=shape[1]
    )
    names = kernels(conv, target)
    assert any("nchwc" in name for name in names) == (not stays)


@pytest.mark.parametrize(
    "target", [*TARGETS, "llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128"]
)
@pytest.mark.parametrize("shape", [(1, 64, 7, 7), (1, 23, 7, 5)])
def test_a_small_depthwise_layer_is_on_blocks(shape, target):
    """Taps that lie beside the image, a third of them here, are left out on blocks."""
    x = relay.var("x", shape=shape)
    names = kernels(convolution(x, (shape[1], 1, 5, 5), shape[1]), target)
    assert any("depthwise" in name and "nchwc" in name for name in names)


@pytest.mark.parametrize(("channels", "filters"), [(24, 12), (12, 40)])
def test_tiles_of_few_channels_are_held_against_plain_data(channels, filters):
    """Winograd's algorithm multiplies less than the sum on blocks, which plain data would beat."""
    x = relay.var("x", shape=(1, channels, 41, 41))
    names = kernels(convolution(x, (filters, channels, 3, 3)), "llvm -mcpu=znver4")
    assert any("winograd" in name for name in names)


@pytest.mark.parametrize("target", TARGETS)
def test_depthwise_between_blocks_stays_on_blocks(target):
    x = relay.var("x", shape=(1, 64, 56, 56))
    body = relay.nn.relu(convolution(convolution(x, (64, 64, 1, 1)), (64, 1, 3, 3), groups=64))
    names = kernels(convolution(body, (64, 64, 1, 1)), target)
    assert sum("nchwc" in name for name in names) == 3


@pytest.mark.parametrize("target", TARGETS)
def test_many_filters_are_worth_their_blocks(target):
    x = relay.var("x", shape=(1, 256, 14, 14))
    names = kernels(convolution(x, (256, 256, 1, 1)), target)
    assert any("nchwc" in name for name in names)


@pytest.mark.parametrize("target", TARGETS)
def test_two_channels_are_no_block_for_a_window_of_one(target):
    x = relay.var("x", shape=(1, 530, 15, 15))
    names = kernels(convolution(x, (70, 530, 1, 1)), target)
    assert "layout_transform" not in names[0]


@pytest.mark.parametrize("target", TARGETS)
def test_between_convolutions_on_blocks_nothing_is_moved(target):
    x = relay.var("x", shape=(1, 64, 28, 28))
    body = convolution(x, (64, 64, 1, 1))
    body = relay.nn.relu(convolution(relay.nn.relu(body), (64, 16, 3, 3), groups=4))
    names = kernels(convolution(body, (64, 64, 1, 1)), target)
    assert sum("nchwc" in name for name in names) == 3
    assert sum("layout_transform" in name for name in names) <= 2


@pytest.mark.parametrize("groups", [1, 3, 7])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("also_read_plainly", [False, True])
def test_numbers(groups, size, also_read_plainly):
    shape, weight = (2, 5 * groups, 19, 37), (4 * groups, 5, size, size)
    x = relay.var("x", shape=shape)
    y = convolution(x, weight, groups)
    z = convolution(relay.nn.relu(y), (32, 4 * groups, 1, 1), seed=1)
    body = relay.Tuple([z, relay.reshape(y, (-1,))]) if also_read_plainly else z
    module = GraphModule(
        relay.build(slipway.IRModule.from_expr(relay.Function([x], body)), "llvm")["default"](
            slipway.cpu(0)
        )
    )
    data = np.random.default_rng(2).standard_normal(shape).astype("float32")
    module.run(x=data)
    first, second = (
        np.random.default_rng(s).standard_normal(n).astype("float32")
        for s, n in ((0, weight), (1, (32, 4 * groups, 1, 1)))
    )
    pad = [size // 2] * 4
    hidden = convolve(data.astype("float64"), first.astype("float64"), (1, 1), pad, (1, 1), groups)
    wanted = convolve(np.maximum(hidden, 0), second.astype("float64"), (1, 1), [0] * 4, (1, 1), 1)
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-4, atol=1e-4)
    if also_read_plainly:
        np.testing.assert_allclose(
            module.get_output(1).numpy(), hidden.reshape(-1), rtol=1e-4, atol=1e-4
        )


def test_readers_behind_pointwise_operators_are_found():
    x = relay.var("x", shape=(1, 8, 9, 9))
    hidden = relay.nn.relu(x)
    both = relay.Tuple([convolution(hidden, (8, 8, 3, 3)), relay.reshape(hidden, (-1,))])
    function = relay.Function([x], both)
    found = read_in(function, {"nn.conv2d"})
    assert found[id(x)] == (True, True)
    assert found[id(both.fields[0])] == (False, True)
