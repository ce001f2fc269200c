"""Dilated convolutions by phases: which ones, the same numbers, and what the passes after make."""

import re

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.lowering.dilated_phases import dilated_phases
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order


def convolution(channels, filters, size, dilation, padding, batch=1, **attrs):
    rng = np.random.default_rng(0)
    groups = attrs.get("groups", 1)
    shape = (filters, channels // groups, *attrs.pop("window", (3, 3)))
    weight = rng.standard_normal(shape).astype("float32") / channels
    x = relay.var("x", shape=(batch, channels, *size))
    return relay.nn.conv2d(
        x, relay.const(weight), dilation=dilation, padding=padding, **attrs
    ).as_function()


def dilations(function):
    calls = [e for e in post_order(function.body) if isinstance(e, relay.Call)]
    return [c.attrs.dilation for c in calls if c.op.name == "nn.conv2d"]


@pytest.mark.parametrize(
    ("size", "dilation", "padding"),
    [
        ((28, 28), 2, 2), ((27, 30), 2, 2), ((24, 25), 3, 3), ((24, 31), (1, 2), (1, 2)),
        ((29, 20), (2, 3), 0), ((30, 30), 2, (0, 3, 4, 1)), ((34, 40), (2, 1), 0),
    ],
)  # fmt: skip
def test_the_numbers_are_the_same(size, dilation, padding):
    before = convolution(24, 32, size, dilation, padding, batch=2)
    after = dilated_phases(before, 16)
    assert dilations(after) == [(1, 1)]
    data = np.random.default_rng(1).standard_normal((2, 24, *size)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("channels", "size", "dilation", "padding", "phases"),
    [
        (64, 28, 2, 2, True),
        (512, 14, 2, 2, True),  # 0.55 of the time; with an image of its own for each phase 1.14
        (128, 33, 6, 6, True),
        (128, 33, 12, 12, False),  # most taps are in the padding
        (64, 14, 4, 4, False),
        (24, 14, 2, 2, False),  # moves take what products save
        (8, 56, 2, 2, False),
    ],
)
def test_the_way_that_takes_less_time(channels, size, dilation, padding, phases):
    before = convolution(channels, channels, (size, size), dilation, padding)
    assert (dilated_phases(before, 16) is not before) == phases


@pytest.mark.parametrize(
    "attrs",
    [
        {"strides": 2}, {"groups": 2}, {"window": (3, 5)}, {"out_dtype": "float64"},
        {"dilation": 1},
    ],
)  # fmt: skip
def test_what_winograd_does_not_compute_stays(attrs):
    before = convolution(64, 64, (28, 28), attrs.pop("dilation", 2), 2, **attrs)
    assert dilated_phases(before, 16) is before


def test_open_images_stay():
    weight = relay.const(np.ones((64, 64, 3, 3), "float32"))
    x = relay.var("x", shape=(1, 64, relay.Dim("h", 1, 64), 64))
    conv = relay.nn.conv2d(x, weight, dilation=2, padding=2)
    main = relay.transform.InferType()(tvm.IRModule.from_expr(conv))["main"]
    assert dilated_phases(main, 16) is main


@pytest.mark.parametrize("strict", [False, True])
def test_compiled(strict):
    """In blocks, between other layers; a strict target has direct sums."""
    rng = np.random.default_rng(2)
    first, last = (rng.standard_normal((48, 48, 1, 1)).astype("float32") / 7 for _ in range(2))
    middle = rng.standard_normal((48, 48, 3, 3)).astype("float32") / 20
    x = relay.var("x", shape=(1, 48, 21, 26))
    body = relay.nn.relu(relay.nn.conv2d(x, relay.const(first)))
    body = relay.nn.conv2d(body, relay.const(middle), dilation=2, padding=2)
    body = relay.nn.relu(relay.nn.bias_add(body, relay.const(first[0, :, 0, 0])))
    function = relay.nn.conv2d(body, relay.const(last)).as_function()
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(
            tvm.IRModule.from_expr(function), f"llvm -mcpu=x86-64-v3 -strict={int(strict)}"
        )
    kernels = set(re.findall(r"conv2d_winograd", built.get_graph_json()))
    assert kernels == (set() if strict else {"conv2d_winograd"})
    data = rng.standard_normal((1, 48, 21, 26)).astype("float32")
    module = graph_executor.GraphModule(built["default"](tvm.cpu(0)))
    module.set_input("x", data)
    module.run()
    np.testing.assert_allclose(
        module.get_output(0).numpy(), interpret(function, data), rtol=1e-4, atol=1e-4
    )
