"""Sizes that values decide, of models on several devices: told on one, used on others."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import ExecutionError
from slipway.relay.annotation import on_device

X = np.random.default_rng(0).normal(size=(3, 20)).astype("float32")
WEIGHT = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")


def softmax(values):
    raised = np.exp(values - values.max(0))
    return raised / raised.sum(0)


def cut(count, where, size=relay.Dim("found", 0, 20)):  # noqa: B008  # one size for all
    """The first columns of exp(x), as many as the count and one more, on a device."""
    x = relay.var("x", shape=X.shape)
    return x, on_device(relay.sized(relay.exp(x), count + relay.const(1, "int64"), size, 1), where)


def to_the_gpu(count):
    x, found = cut(count, "cpu")
    body = on_device(relay.tanh(found) * relay.const(2.0), "opencl")
    return x, body, lambda n: 2 * np.tanh(np.exp(X[:, : n + 1]))


def to_the_processor(count):
    x, found = cut(count, "opencl")
    return x, on_device(relay.sort(found, 1), "cpu"), lambda n: np.sort(np.exp(X[:, : n + 1]), 1)


def there_and_back(count):
    x, found = cut(count, "cpu")
    product = on_device(relay.nn.dense(relay.transpose(found), relay.const(WEIGHT)), "opencl")
    body = on_device(relay.nn.softmax(product, axis=0), "cpu")
    return x, body, lambda n: softmax(np.exp(X[:, : n + 1]).T @ WEIGHT.T)


def longer_by_two(count):
    """What crosses has no axis of the size itself."""
    x, found = cut(count, "cpu")
    joined = on_device(relay.concatenate([found, relay.const(X[:, :2].copy())], 1), "cpu")
    wanted = lambda n: np.exp(np.concatenate([np.exp(X[:, : n + 1]), X[:, :2]], 1))  # noqa: E731
    return x, on_device(relay.exp(joined), "opencl"), wanted


def two_sizes(count):
    x, found = cut(count, "cpu")
    rows = relay.minimum(count, relay.const(3, "int64"))
    less = relay.sized(relay.tanh(found), rows, relay.Dim("rows", 0, 3))
    body = on_device(relay.sum(on_device(less, "opencl"), 1), "cpu")
    return x, body, lambda n: np.tanh(np.exp(X[:, : n + 1]))[: min(n, 3)].sum(1)


def filled_elsewhere(count):
    """The processor's kernels would be first, did the size not come from the other device."""
    x, found = cut(count, "opencl", size := relay.Dim("found", 0, 20))
    filled = on_device(relay.sqrt(relay.full(relay.const(4.0), (size,))), "cpu")
    body = on_device(relay.sum(found + filled, 1), "opencl")
    return x, body, lambda n: (np.exp(X[:, : n + 1]) + 2).sum(1)


@pytest.mark.parametrize(
    "made",
    [to_the_gpu, to_the_processor, there_and_back, longer_by_two, two_sizes, filled_elsewhere],
)
def test_a_size_crosses(made):
    module, wanted = built(made)
    for count in (6, 0, 17, 3):
        module.run(x=X, count=np.int64(count))
        found = module.get_output(0).numpy()
        np.testing.assert_allclose(found, wanted(count), rtol=1e-5, atol=1e-6)
    with pytest.raises(ExecutionError, match=r"the size found the value 26, .* for 0 to 20"):
        module.run(x=X, count=np.int64(25))


def test_one_number_is_checked():
    def five(count):
        x, found = cut(count, "cpu", 5)
        return x, on_device(relay.tanh(found), "opencl"), lambda n: np.tanh(np.exp(X[:, : n + 1]))

    module, wanted = built(five)
    module.run(x=X, count=np.int64(4))
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted(4), rtol=1e-5, atol=1e-6)
    with pytest.raises(ExecutionError, match=r"the value 6, .* for 5 to 5"):
        module.run(x=X, count=np.int64(5))


def built(made):
    """Return a module of a model on the processor and OpenCL, and what it computes."""
    if not tvm.opencl(0).exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    count = relay.var("count", shape=(), dtype="int64")
    x, body, wanted = made(count)
    mod = tvm.IRModule.from_expr(relay.Function([x, count], body))
    library = relay.build(mod, {"cpu": "llvm", "opencl": "opencl"})
    return graph_executor.GraphModule(library["default"](tvm.cpu(0), tvm.opencl(0))), wanted
