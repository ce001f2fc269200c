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
    narrow = contrib.optimize_torch(linear.bfloat16(), x.bfloat16())(x.bfloat16())
    torch.testing.assert_close(narrow, linear(x.bfloat16()).detach())
    linear.float()
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


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_scripted_model_becomes_a_folder_and_a_module(contrib, tmp_path):
    linear = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).eval()
    x = torch.randn(2, 4)
    scripted = torch.jit.trace(linear, x)
    option = {"input_infos": [("x", (2, 4))], "export_dir": str(tmp_path / "made")}
    (made,) = contrib.compile(scripted, option)([x])
    torch.testing.assert_close(made, linear(x).detach())
    assets = [tmp_path / "made" / name for name in contrib.pytorch_tvm.TVM_ASSETS]
    assert all(path.exists() for path in assets)
    again = contrib.GraphModule(num_inputs=1, num_outputs=1).to("cpu")
    again.init((x.shape,), *map(str, assets))
    torch.testing.assert_close(again(x * 2)[0], linear(x * 2).detach())
    steps = contrib.PyTorchTVMModule()
    assert steps.load_tvm(tmp_path / "made").get_num_outputs() == 1
    debug = steps.load_tvm(tmp_path / "made", debug_runtime=True)
    debug.run(x=x.numpy())
    np.testing.assert_allclose(debug.get_output(0).numpy(), linear(x).detach(), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_folder_of_a_scripted_model_is_used_as_it_was_made(contrib, tmp_path):
    x = torch.randn(2, 4)
    option = {"input_infos": [("x", (2, 4))], "export_dir": str(tmp_path)}
    scripted = torch.jit.trace(torch.nn.ReLU(), x)
    with pytest.raises(ArgumentTypeError, match=r"takes \[\(2, 4\)\], not \[\(3, 4\)\]"):
        contrib.compile(scripted, option)([torch.zeros(3, 4)])
    with pytest.raises(ValueError, match="1 outputs, not 2"):
        contrib.compile(scripted, {**option, "num_outputs": 2})
    with pytest.raises(ValueError, match='lacks "input_infos"'):
        contrib.compile(scripted, {})
    with pytest.raises(ValueError, match="option has 'tuning'"):
        contrib.compile(scripted, {**option, "tuning": 3})
    with pytest.raises(ValueError, match="comes before build_pytorch_module"):
        contrib.PyTorchTVMModule().build_pytorch_module(1, 1)
