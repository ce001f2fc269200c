"""Schedules in threads of a GPU: launches that every device takes, and tables of constants."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, topi


def _scheduled(output, target="vulkan"):
    with tvm.target.Target(target):
        return topi.testing.get_injective_schedule(target)(output)


@pytest.mark.parametrize("length", [3 * 256, 3 * 256 + 1, 2000])
def test_more_elements_than_blocks_of_a_launch(monkeypatch, length):
    """Vulkan promises 65,535 blocks along an axis; each thread then has several elements."""
    monkeypatch.setattr(topi.cuda, "BLOCKS", 3)
    a = te.placeholder((length,), name="a")
    out = te.compute((length,), lambda i: a[i] + 1.0, name="out")
    s = topi.cuda.schedule_injective(out)
    given, found = np.arange(length, dtype="float32"), np.zeros(length, "float32")
    tvm.testing.run_threads(s, [a, out], [given, found], "vulkan")
    np.testing.assert_array_equal(found, given + 1)
    text = str(tvm.lower(s, [a, out], simple_mode=True))
    assert f"in range({min(3, -(-length // 256))})" in text


def test_a_table_of_constants_that_was_made_before_the_target_was_known():
    theta = te.placeholder((2, 2, 3), name="theta")
    grid = topi.image.affine_grid(theta, (5, 7))
    given = np.random.default_rng(0).random((2, 2, 3)).astype("float32")
    out = np.zeros((2, 2, 5, 7), "float32")
    tvm.testing.run_threads(_scheduled(grid), [theta, grid], [given, out], "vulkan")
    y, x = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 7), indexing="ij")
    wanted = np.einsum("nij,jhw->nihw", given, np.stack([x, y, np.ones_like(x)]))
    np.testing.assert_allclose(out, wanted, atol=1e-5)
