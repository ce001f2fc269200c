"""Compiled models and functions as modules of PyTorch."""

import numpy as np
import pytest

from slipway import te
from slipway.errors import ArgumentTypeError

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def contrib():
    from slipway.contrib import torch as module

    return module


def test_module_and_function_compute_the_same(contrib):
    x, y = torch.randn(2, 4), torch.randn(2, 3)
    linear = torch.nn.Linear(4, 3)
    made = contrib.optimize_torch(torch.nn.Sequential(linear, torch.nn.ReLU()), x)
    assert isinstance(made, torch.nn.Module)
    torch.testing.assert_close(made(x), torch.relu(linear(x)).detach())
    first = made(x)
    made(x * 2)
    torch.testing.assert_close(first, torch.relu(linear(x)).detach())  # it is the caller's own
    with pytest.warns(UserWarning, match="does not search"):
        both = contrib.optimize_torch(lambda a, b: (a + b, a * b), [y, y], tuning_config=object())
    for got, want in zip(both(y, x[:, :3]), (y + x[:, :3], y * x[:, :3]), strict=True):
        torch.testing.assert_close(got, want)
    with pytest.raises(ArgumentTypeError, match="takes 2 tensors, not 1"):
        both(y)


def test_function_of_loops_writes_its_last_tensor(contrib):
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] * 2.0, name="B")
    module = contrib.as_torch(te.create_prim_func([a, b]))
    given, out = torch.arange(4.0), torch.zeros(4)
    module(given, out)
    np.testing.assert_array_equal(out.numpy(), [0, 2, 4, 6])
    assert "prim_func" in module.script()
    with pytest.warns(UserWarning, match="does not search"):
        module.tune()
    module(given + 1, out)
    np.testing.assert_array_equal(out.numpy(), [2, 4, 6, 8])


def test_what_is_not_taken(contrib):
    with pytest.raises(ArgumentTypeError, match="as_torch takes a PrimFunc or an IRModule"):
        contrib.as_torch(lambda: None)
    with pytest.raises(ArgumentTypeError, match="takes a module or a function, not int"):
        contrib.optimize_torch(3, torch.zeros(1))
