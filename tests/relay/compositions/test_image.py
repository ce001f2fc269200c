"""Operators on images whose arguments lie as classic TVM has them."""

import numpy as np
import pytest
import torch

import slipway as tvm
from slipway import relay

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_grid_of_an_affine_map_is_what_sampling_takes(target):
    data, theta = relay.var("data", shape=(2, 3, 6, 5)), relay.var("theta", shape=(2, 2, 3))
    grid = relay.image.affine_grid(theta, (4, 2))
    module = tvm.IRModule.from_expr(
        relay.Function([data, theta], relay.image.grid_sample(data, grid))
    )
    image = RNG.normal(size=(2, 3, 6, 5)).astype("float32")
    maps = RNG.uniform(-0.9, 0.9, size=(2, 2, 3)).astype("float32")
    run = relay.create_executor("graph", mod=module, device=tvm.cpu(), target=target).evaluate()
    where = torch.nn.functional.affine_grid(torch.tensor(maps), (2, 3, 4, 2), align_corners=True)
    wanted = torch.nn.functional.grid_sample(torch.tensor(image), where, align_corners=True)
    np.testing.assert_allclose(run(image, maps).numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_a_grid_of_volumes():
    data, grid = relay.var("data", shape=(1, 2, 4, 5, 6)), relay.var("grid", shape=(1, 3, 2, 3, 4))
    module = tvm.IRModule.from_expr(
        relay.Function([data, grid], relay.image.grid_sample(data, grid, align_corners=False))
    )
    volume = RNG.normal(size=(1, 2, 4, 5, 6)).astype("float32")
    points = RNG.uniform(-1, 1, size=(1, 3, 2, 3, 4)).astype("float32")
    run = relay.create_executor("graph", mod=module, device=tvm.cpu(), target="llvm").evaluate()
    wanted = torch.nn.functional.grid_sample(
        torch.tensor(volume), torch.tensor(points.transpose(0, 2, 3, 4, 1)), align_corners=False
    )
    np.testing.assert_allclose(run(volume, points).numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
