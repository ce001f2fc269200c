"""OpenCL through the static server, which starts a dynamic child that opens the driver."""

import contextlib
import gc
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc, te
from slipway.contrib import graph_executor
from slipway.errors import RPCError


def test_seed_kernels_and_models_run_through_the_child(static_server_for_this_machine, tmp_path):
    server = static_server_for_this_machine()
    remote = rpc.connect("127.0.0.1", server.port)
    device = remote.cl(0)
    if not device.exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    assert device.device_name == tvm.opencl(0).device_name
    assert len(device.max_thread_dimensions) == 3
    assert not remote.cuda(0).exist or tvm.cuda(0).exist

    n = 1024
    a = te.placeholder((n,), name="A")
    b = te.compute(a.shape, lambda *i: a(*i) + 1.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=32)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    built = tvm.build(s, [a, b], "opencl", target_host="llvm", name="myadd")
    built.save(str(tmp_path / "myadd.o"))
    built.imported_modules[0].save(str(tmp_path / "myadd.cl"))
    for name in ("myadd.o", "myadd.cl", "myadd.tvm_meta.json"):
        remote.upload(tmp_path / name)
    host, code = remote.load_module("myadd.o"), remote.load_module("myadd.cl")
    host.import_module(code)
    values = np.random.default_rng(0).uniform(size=n).astype("float32")
    given = tvm.nd.array(values, device)
    made = tvm.nd.array(np.zeros(n, "float32"), device)
    host(given, made)
    np.testing.assert_equal(made.numpy(), values + 1)
    assert host.time_evaluator(host.entry_name, device, number=2)(given, made).mean > 0
    function = host["myadd"]
    del host, code
    gc.collect()
    device.trim()
    function(made, given)  # it keeps the kernels that it launches
    np.testing.assert_equal(given.numpy(), values + 1 + 1)

    with pytest.raises(RPCError, match=r"no opencl\(99\)"):
        tvm.nd.array(values, remote.cl(99))
    made.copyfrom(values)  # the session goes on
    np.testing.assert_equal(made.numpy(), values)

    x = relay.var("x", shape=(2, 8))
    weight = np.random.default_rng(1).normal(size=(5, 8)).astype("float32")
    y = relay.nn.softmax(
        relay.annotation.on_device(relay.nn.dense(x, relay.const(weight)), "opencl")
    )
    lib = relay.build(
        tvm.IRModule.from_expr(relay.Function([x], y)), {"cpu": "llvm", "opencl": "opencl"}
    )
    lib.export_library(tmp_path / "model.tar")
    remote.upload(tmp_path / "model.tar")
    factory = remote.load_module("model.tar")
    module = graph_executor.GraphModule(factory["default"](remote.cpu(0), device))
    rows = values[:16].reshape(2, 8)
    module.run(x=rows)
    scores = np.exp(rows @ weight.T)
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-5)
    kill_drivers(server)
    with pytest.raises(RPCError, match=r"ended, with all .* on devices \(signal 9.*a new session"):
        made.numpy()
    with pytest.raises(RPCError, match="has ended"):
        tvm.nd.array(values, device)  # old addresses are not another process's
    del given, made, module, factory, function
    del remote, device
    again = rpc.connect("127.0.0.1", server.port)
    np.testing.assert_equal(tvm.nd.array(values, again.cl(0)).numpy(), values)
    del again
    server.stop()


def test_images_of_a_model_through_the_child(static_server_for_this_machine, tmp_path):
    server = static_server_for_this_machine()
    remote = rpc.connect("127.0.0.1", server.port)
    if not remote.cl(0).exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 4, 8, 8))
    y = x
    for _ in range(2):
        weights = rng.standard_normal((4, 4, 3, 3)).astype("float32") * 0.3
        y = relay.nn.relu(relay.nn.conv2d(y, relay.const(weights), padding=1))
    module = tvm.IRModule.from_expr(relay.Function([x], y))
    data, got = rng.standard_normal((1, 4, 8, 8)).astype("float32"), []
    for target in ("llvm", "opencl -texture_spatial_limit=64"):
        lib = relay.build(module, tvm.target.Target(target, host="llvm"))
        lib.export_library(tmp_path / "model.tar")
        remote.upload(tmp_path / "model.tar")
        device = remote.cpu(0) if target == "llvm" else remote.cl(0)
        assert any(arena.texels for arena in lib.tables.arenas) == (target != "llvm")
        run = graph_executor.GraphModule(remote.load_module("model.tar")["default"](device))
        run.run(x=data)
        got.append(run.get_output(0).numpy())
    np.testing.assert_allclose(got[1], got[0], rtol=1e-5, atol=1e-6)
    del run, device, remote
    server.stop()


def network():
    """Return a network of eleven kernels, and data for it."""
    rng = np.random.default_rng(3)
    x = relay.var("x", shape=(1, 8, 16, 16))
    y = x
    for _ in range(5):
        weights = relay.const(rng.standard_normal((8, 8, 3, 3)).astype("float32") * 0.2)
        y = relay.nn.max_pool2d(
            relay.nn.relu(relay.nn.conv2d(y, weights, padding=1)), (3, 3), padding=(1, 1)
        )
    y = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)))
    data = rng.standard_normal((1, 8, 16, 16)).astype("float32")
    return tvm.IRModule.from_expr(relay.Function([x], y)), data


def test_a_driver_that_dies_while_a_model_runs(static_server_for_this_machine, tmp_path):
    """The model's caller is told which kernel and why; other sessions have another driver."""
    mod, data = network()
    expected = relay.create_executor("graph", mod, tvm.cpu(0), "llvm").evaluate()(data).numpy()
    lib = relay.build(mod, tvm.target.Target("opencl", host="llvm"))
    lib.export_library(tmp_path / "network.tar")
    server = static_server_for_this_machine()

    def model():
        remote = rpc.connect("127.0.0.1", server.port)
        if not remote.cl(0).exist:
            pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
        remote.upload(tmp_path / "network.tar")
        factory = remote.load_module("network.tar")
        made = graph_executor.GraphModule(factory["default"](remote.cl(0)))
        made.run(x=data)
        np.testing.assert_allclose(made.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-6)
        return made, remote.cl(0)

    for _ in range(2):
        running, device = model()
        killer = threading.Timer(0.1, kill_drivers, (server,))
        killer.start()
        with pytest.raises(RPCError, match=r"has ended, with all .*\(signal 9: most likely"):
            while True:
                running.run()
        killer.join()
        with pytest.raises(RPCError, match=r"layer 'tvmgen_\w*conv2d\w*' .*has ended, with all"):
            running.run()
        assert not device.exist
        with pytest.raises(RPCError, match=r"has ended, with all .*\(signal 9: most likely"):
            device.check()
        del running, device
    model()
    gc.collect()
    server.stop()


def test_a_driver_that_cannot_be_opened(static_server_for_this_machine, tmp_path):
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    (vendors / "some.icd").write_text("libnobody_has_this.so\n")
    server = static_server_for_this_machine(prefix=("env", f"OCL_ICD_VENDORS={vendors}"))
    remote = rpc.connect("127.0.0.1", server.port)
    device = remote.cl(0)
    assert not device.exist
    if tvm.opencl(0).exist:
        why = r"knows no driver.*/vendors .*OCL_ICD_VENDORS"
        with pytest.raises(RPCError, match=why):
            device.check()
        with pytest.raises(RPCError, match=why):
            tvm.nd.array(np.zeros(4, "float32"), device)
    np.testing.assert_array_equal(tvm.nd.array(np.arange(4.0), remote.cpu(0)).numpy(), range(4))
    del remote, device
    server.stop()


def kill_drivers(server):
    """End what has the drivers of a server's sessions open, as a driver's fault does."""
    for session in children_of(server.process.pid):
        for child in children_of(session):
            os.kill(child, signal.SIGKILL)


def children_of(process):
    """Return the numbers of the processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
    return found


def test_where_no_driver_can_be_opened_the_session_goes_on(static_device):
    """On emulated processors there is no loader for the child, and no child on some."""
    remote = rpc.connect("127.0.0.1", static_device.port)
    for device in (remote.cuda(0), remote.rocm(0)):
        assert not device.exist
        with pytest.raises(RPCError, match=r"Install |exec\.rpc_server"):
            tvm.nd.array(np.zeros(4, "float32"), device)
    assert not remote.ext_dev(0).exist
    np.testing.assert_array_equal(tvm.nd.array(np.arange(4.0), remote.cpu(0)).numpy(), range(4))
