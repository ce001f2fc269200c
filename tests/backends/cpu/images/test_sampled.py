"""Sampling of images with many channels, against the reference; which of it goes by channels."""

import numpy as np
import pytest
from kernel_check import run, var

import slipway as tvm
from slipway import relay
from slipway.relay import op_registry
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret
from slipway.relay.ops.image.sample import METHODS, PADDINGS

sample = op_registry.make("image.grid_sample")


@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"])
@pytest.mark.parametrize(
    ("shape", "grid", "method", "padding"),
    [
        ((2, 21, 9, 7), (2, 5, 6, 2), "bilinear", "zeros"),
        ((1, 40, 6, 7), (1, 7, 8, 2), "bicubic", "reflection"),
        ((1, 16, 6, 7), (1, 3, 4, 2), "nearest", "border"),
        ((1, 16, 3, 4, 5), (1, 2, 3, 4, 3), "bilinear", "zeros"),
    ],
)
def test_positions_are_found_once_for_all_channels(target, shape, grid, method, padding):
    """Normal random positions: a third of them lie outside."""
    made = sample(var("x", *shape), var("grid", *grid), method, padding_mode=padding)
    assert run(made, target) == "sample.channels"


def test_few_channels_are_sampled_where_they_lie():
    made = sample(var("x", 1, 7, 9, 9), var("grid", 1, 5, 6, 2))
    assert run(made, "llvm") == "loops.sums"


def test_what_lies_outside_is_zero_beside_infinite_data():
    made = sample(var("x", 1, 16, 2, 2), var("grid", 1, 1, 1, 2))
    library = relay.build(tvm.IRModule.from_expr(made.as_function()), "llvm")
    model = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    model.run(
        x=np.full((1, 16, 2, 2), np.inf, "float32"), grid=np.full((1, 1, 1, 2), 3.0, "float32")
    )
    np.testing.assert_array_equal(model.get_output(0).numpy(), np.zeros((1, 16, 1, 1)))


WAYS = [
    *((method, padding, 3) for method in METHODS for padding in PADDINGS),
    *(("bilinear", padding, 16) for padding in PADDINGS),
]


@pytest.mark.parametrize(("method", "padding", "channels"), WAYS)
def test_images_of_open_sizes(method, padding, channels):
    """From one element on, whose ends are one point where corners are aligned."""
    x = relay.var("x", shape=(Dim("n", 1, 3), channels, Dim("h", 1, 20), Dim("w", 1, 20)))
    grid = relay.var("grid", shape=(x.tensor_type.shape[0], 4, Dim("points", 1, 9), 2))
    both = [
        sample(x, grid, method, padding_mode=padding, align_corners=corners)
        for corners in (True, False)
    ]
    mod = tvm.IRModule.from_expr(relay.Function([x, grid], relay.Tuple(both)))
    model = tvm.contrib.graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu(0)))
    rng = np.random.default_rng(0)
    for n, h, w, count in ((1, 1, 1, 1), (3, 20, 20, 9), (2, 1, 13, 4), (1, 17, 2, 9)):
        data = rng.standard_normal((n, channels, h, w)).astype("float32")
        at = rng.normal(0, 0.8, (n, 4, count, 2)).astype("float32")
        model.run(x=data, grid=at)
        for i, want in enumerate(interpret(mod, data, at)):
            np.testing.assert_allclose(model.get_output(i).numpy(), want, rtol=1e-4, atol=1e-5)
