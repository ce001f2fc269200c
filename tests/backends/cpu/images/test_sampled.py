"""Sampling of images with many channels, against the reference; which of it goes by channels."""

import numpy as np
import pytest
from kernel_check import run, var

import slipway as tvm
from slipway import relay
from slipway.relay import op_registry

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
