"""Executables of the virtual machine as modules of PyTorch, and modules that are traced."""

import numpy as np
import pytest

from slipway import relay
from slipway.contrib import torch as contrib_torch
from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError
from slipway.ir.function import IRModule

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Library and code of a model of two inputs and two outputs."""
    x, y = relay.var("x", shape=(10, 5)), relay.var("y", shape=(1, 5))
    body = relay.Tuple([relay.exp(relay.add(x, y)), relay.multiply(x, y)])
    executable = relay.vm.compile(IRModule.from_expr(relay.Function([x, y], body)), target="llvm")
    code, lib = executable.save()
    folder = tmp_path_factory.mktemp("vm")
    lib.export_library(str(folder / "mod.so"))
    (folder / "code.ro").write_bytes(code)
    return folder / "mod.so", folder / "code.ro"


def module_of(files):
    made = contrib_torch.VMModule(num_inputs=2, num_outputs=2).to("cpu")
    made.init(((10, 5), (1, 5)), *files)
    return made


def tensors():
    return [torch.from_numpy(RNG.random(s).astype("float32")) for s in ((10, 5), (1, 5))]


def test_a_module_gives_what_the_model_computes(files):
    x, y = tensors()
    for made in (module_of(files)([x, y]), module_of(files)(x, y)):
        torch.testing.assert_close(made[0], torch.exp(x + y), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(made[1], x * y)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_what_is_traced_depends_on_its_inputs(files):
    traced = torch.jit.trace(contrib_torch.TraceTvmModule(module_of(files)), tuple(tensors()))
    x, y = tensors()  # other numbers than those it was traced with
    first, second = traced(x, y)
    torch.testing.assert_close(first, torch.exp(x + y), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(second, x * y)


def test_what_does_not_fit_is_refused(files):
    x, y = tensors()
    empty = contrib_torch.VMModule(2, 2)
    with pytest.raises(ArgumentValueError, match="init comes first"):
        empty([x, y])
    with pytest.raises(ArgumentValueError, match="has 2 inputs, not 1"):
        empty.init(((10, 5),), *files)
    with pytest.raises(ArgumentTypeError, match=r"takes \[\(10, 5\), \(1, 5\)\]"):
        module_of(files)([y, x])
    one = contrib_torch.VMModule(2, 1)
    one.init(((10, 5), (1, 5)), *files)
    with pytest.raises(ExecutionError, match="2 outputs, not 1"):
        one([x, y])
