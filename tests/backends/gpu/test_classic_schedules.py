"""topi.cuda: schedules in threads, run on an OpenCL device."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, topi
from slipway.errors import CodegenError
from slipway.topi import testing


@pytest.mark.parametrize(
    ("make", "reference"),
    [
        (lambda a: topi.nn.relu(topi.add(a, a)), lambda a: np.maximum(2 * a, 0)),
        (lambda a: topi.sum(a, axis=1), lambda a: a.sum(1)),
        (topi.sum, lambda a: a.sum(dtype="float64")),
        (lambda a: topi.max(a, axis=0), lambda a: a.max(0)),
        (lambda a: topi.tanh(topi.sum(topi.exp(a), axis=1)), lambda a: np.tanh(np.exp(a).sum(1))),
        (topi.nn.softmax, testing.softmax_python),
    ],
)
def test_expressions_in_threads(device, make, reference):
    a = te.placeholder((40, 100), name="a")
    expression = make(a)
    schedule = topi.cuda.schedule_injective(expression)
    built = tvm.build(schedule, [a, expression], "opencl")
    given = np.random.default_rng(2).standard_normal((40, 100)).astype("float32")
    out = tvm.nd.empty([int(d) for d in expression.shape], "float32", device)
    built(tvm.nd.array(given, device), out)
    np.testing.assert_allclose(out.numpy(), reference(given), rtol=1e-4, atol=1e-4)


def test_the_schedule_of_a_gpu_is_found_by_its_key(device):
    assert testing.get_injective_schedule("opencl") is topi.cuda.schedule_injective
    given = np.random.default_rng(2).standard_normal((7, 9)).astype("float32")
    testing.compare_numpy_tvm(
        [given], np.exp(given), "opencl", device, topi.exp,
        testing.get_elemwise_schedule("opencl"),
    )  # fmt: skip


def test_a_kernel_calls_a_function_of_the_language(device):
    """As the tutorial about math functions does it with CUDA's `__expf`."""
    a = te.placeholder((te.var("n"),), name="a")
    b = te.compute(a.shape, lambda i: tvm.tir.call_pure_extern("float32", "sqrt", a[i]), name="b")
    schedule = te.create_schedule(b.op)
    outer, inner = schedule[b].split(b.op.axis[0], factor=32)
    schedule[b].bind(outer, te.thread_axis("blockIdx.x"))
    schedule[b].bind(inner, te.thread_axis("threadIdx.x"))
    built = tvm.build(schedule, [a, b], "opencl")
    given = np.arange(70, dtype="float32")
    out = tvm.nd.empty((70,), "float32", device)
    built(tvm.nd.array(given, device), out)
    np.testing.assert_allclose(out.numpy(), np.sqrt(given), rtol=1e-6)
    c = te.compute(a.shape, lambda i: tvm.tir.call_pure_extern("float32", "nowhere", a[i]))
    schedule = te.create_schedule(c.op)
    schedule[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(CodegenError, match="cannot call 'nowhere'"):
        tvm.build(schedule, [a, c], "opencl")
