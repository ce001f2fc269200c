"""The matrix unit of examples/byoc computes a part of MobileNetV2, here and on a device."""

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.toolchain import emulators, native

ROOT = Path(__file__).parents[2]
MAKER = ROOT.parent / "shared" / "models" / "make_models.py"


@pytest.fixture(scope="module")
def unit():
    spec = importlib.util.spec_from_file_location(
        "matrix_unit", ROOT / "examples/byoc/matrix_unit.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts(mod):
    return [f for _, f in mod.items() if f.attr("Compiler") == "matrix_unit"]


def built(mod, target):
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target)


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.long)])
def test_a_small_mobilenet(unit, target):
    mod, params = relay.testing.mobilenet.get_workload(1, 10, (3, 32, 32))
    values = {n: v.numpy() for n, v in params.items()}
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype("float32")
    want = interpret(mod, data=x, params=values)
    made = unit.partition_for_matrix_unit(mod, params)
    assert len(parts(made)) == 13  # the pointwise half of every block
    run = graph_executor.GraphModule(built(made, target)["default"](tvm.cpu(0)))
    run.run(data=x)
    np.testing.assert_allclose(run.get_output(0).numpy(), want, rtol=1e-4, atol=1e-5)


@contextlib.contextmanager
def arm_device():
    """A session with an emulated AArch64 device; skips without QEMU."""
    emulator = emulators.find("aarch64")
    if emulator is None:
        pytest.skip(emulators.install_hint("aarch64"))
    server = native.build_device_server("aarch64")
    command = [*emulator, str(server), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stderr.readline().rsplit(":", 1)[1])
            with rpc.connect("127.0.0.1", port) as remote:
                yield remote
        finally:
            process.kill()


def on_device(remote, made, folder):
    artifact = folder / "model.tar"
    built(made, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72").export_library(artifact)
    remote.upload(artifact)
    loaded = remote.load_module("model.tar")
    return graph_executor.GraphModule(loaded["default"](remote.cpu(0)))


def test_three_layers_on_a_device(unit, tmp_path):
    """Two neighbours that become one part, and one behind what the unit does not take."""
    rng = np.random.default_rng(0)
    x = y = relay.var("data", shape=(1, 9, 5, 7))
    for channels, between in ((20, None), (11, relay.sigmoid), (3, None)):
        shape = (channels, y.checked_type.shape[1], 1, 1)
        y = relay.nn.conv2d(y, relay.const(rng.standard_normal(shape).astype("float32")))
        y = relay.add(y, relay.const(rng.standard_normal((channels, 1, 1)).astype("float32")))
        y = relay.clip(y, -1.0, 2.0)
        y = between(y) if between else y
    made = unit.partition_for_matrix_unit(tvm.IRModule.from_expr(y))
    assert len(parts(made)) == 2
    values = rng.standard_normal(x.checked_type.shape).astype("float32")
    with arm_device() as remote:
        check(on_device(remote, made, tmp_path), {"data": values}, interpret(y, values))


@pytest.fixture(scope="module")
def mobilenet(unit, tmp_path_factory):
    """MobileNetV2 cut for the unit, an image, and what onnxruntime makes of it."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if not MAKER.is_file():
        pytest.skip(f"no {MAKER.name} beside the checkout")
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, str(MAKER), str(folder), "mobilenet_v2"], check=True)
    path = str(folder / "mobilenet_v2.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = session.get_inputs()[0]
    x = np.random.default_rng(0).standard_normal(feed.shape).astype("float32")
    made = unit.partition_for_matrix_unit(*relay.frontend.from_onnx(path))
    assert len(parts(made)) == 27
    return made, {feed.name: x}, session.run(None, {feed.name: x})[0]


def check(module, feeds, want):
    module.run(**feeds)
    got = module.get_output(0).numpy()
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


def test_mobilenet_v2_here(mobilenet):
    made, feeds, want = mobilenet
    lib = built(made, "llvm")
    check(graph_executor.GraphModule(lib["default"](tvm.cpu(0))), feeds, want)


@pytest.mark.long
def test_mobilenet_v2_on_a_device(mobilenet, tmp_path):
    made, feeds, want = mobilenet
    with arm_device() as remote:
        check(on_device(remote, made, tmp_path), feeds, want)
