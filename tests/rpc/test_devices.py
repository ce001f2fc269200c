"""OpenCL devices of another machine: tensors, properties, kernels, and what goes wrong."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc, te
from slipway.contrib import graph_executor
from slipway.errors import RPCError


@pytest.fixture(scope="module")
def remote():
    """A session with a process of its own: OpenCL does not survive the fork of one that used it."""
    server = rpc.Server("127.0.0.1", 0, use_popen=True, silent=True)
    session = rpc.connect("127.0.0.1", server.port)
    yield session
    session.close()
    server.terminate()


@pytest.fixture
def device(remote):
    """The session's first OpenCL device."""
    found = remote.cl(0)
    if not found.exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    return found


def doubled(n):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=64)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    return tvm.build(s, [a, b], "opencl", target_host="llvm", name=f"doubled_{n}")


def test_properties_travel(device):
    assert device.device_name == tvm.opencl(0).device_name
    assert device.max_threads_per_block == tvm.opencl(0).max_threads_per_block
    assert device.max_thread_dimensions == tvm.opencl(0).max_thread_dimensions


def test_tensors_larger_than_a_frame(device):
    x = np.random.default_rng(0).standard_normal(1_000_003).astype("float32")
    a = tvm.nd.array(x, device)
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(a.copyto(tvm.cpu(0)).numpy(), x)


def test_a_kernel_runs_and_is_timed_there(remote, device, tmp_path):
    doubled(1000).export_library(tmp_path / "doubled.so")
    remote.upload(tmp_path / "doubled.so")
    function = remote.load_module("doubled.so")
    x = np.arange(1000, dtype="float32")
    a, b = tvm.nd.array(x, device), device.empty((1000,), "float32")
    function(a, b)
    device.sync()
    device.trim()
    np.testing.assert_array_equal(b.numpy(), 2 * x)
    assert function.time_evaluator(function.entry_name, device, number=2)(a, b).mean > 0


def test_what_is_missing_there_is_told_and_the_session_goes_on(remote, device, tmp_path):
    doubled(777).save(tmp_path / "alone.o")
    remote.upload(tmp_path / "alone.o")
    function = remote.load_module("alone.o")
    a, b = (device.empty((777,), "float32") for _ in range(2))
    with pytest.raises(Exception, match=r"kernel doubled_777_kernel0 is not loaded here"):
        function(a, b)
    with pytest.raises(Exception, match=r"no opencl\(99\)"):
        remote.cl(99).empty((4,), "float32")
    with pytest.raises(RPCError, match=r"no ext_dev\(0\)"):
        remote.device("ext_dev", 0).empty((4,), "float32")
    a.copyfrom(np.ones(777, "float32"))
    assert (a.numpy() == 1).all()


def test_a_kind_that_is_not_there_is_named(remote, tmp_path):
    with pytest.raises(RPCError, match=r"this server has no metal\(0\)"):
        tvm.nd.array(np.ones(3, "float32"), remote.metal(0))
    x = relay.var("x", shape=(2, 8))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    library = relay.build(module, target=tvm.target.Target("metal", host="llvm"))
    path = tmp_path / "mac.tar"
    library.export_library(path)
    remote.upload(path)
    loaded = remote.load_module("mac.tar")
    with pytest.raises(RPCError, match="no metal devices: run the model where"):
        loaded["default"](remote.metal(0))
    with pytest.raises(RPCError, match=r"compiled for metal: give 'default' metal\(0\)"):
        loaded["default"](remote.cl(0))
    assert remote.cl(0).exist  # the session goes on


def test_a_model_runs_there(remote, device, tmp_path):
    x = relay.var("x", shape=(4, 6))
    made = relay.build(
        tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x))),
        target=tvm.target.Target("opencl", host="llvm"),
    )
    made.export_library(tmp_path / "model.tar")
    remote.upload(tmp_path / "model.tar")
    library = remote.load_module("model.tar")
    module = graph_executor.GraphModule(library["default"](device))
    values = np.random.default_rng(0).standard_normal((4, 6)).astype("float32")
    module.run(x=values)
    powers = np.exp(values - values.max(1, keepdims=True))
    result = module.get_output(0).numpy()
    np.testing.assert_allclose(result, powers / powers.sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(Exception, match=r"compiled for opencl: give 'default' opencl\(0\)"):
        library["default"](remote.cpu(0))


def test_a_fork_of_a_process_that_used_opencl_says_so(device):
    assert tvm.opencl(0).device_name == device.device_name  # which opens the driver here
    with rpc.LocalSession() as session:
        assert not session.cl(0).exist
        with pytest.raises(RPCError, match="fork of a process that has used it"):
            session.cl(0).empty((4,), "float32")
