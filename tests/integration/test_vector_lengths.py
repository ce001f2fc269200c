"""Code for vectors of one length, on emulated processors with that length and with another."""

import contextlib
import subprocess

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc
from slipway.contrib import graph_executor
from slipway.errors import SlipwayError
from slipway.relay.interpret import interpret
from slipway.toolchain import emulators, native

SVE = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1"
RISCV = "llvm -mtriple=riscv64-linux-gnu -mattr=+v,+zvl256b"
PROCESSORS = {
    "sve256": ("aarch64", "max,sve256=on,pauth-impdef=on"),
    "sve512": ("aarch64", "max,sve512=on,pauth-impdef=on"),
    "neon": ("aarch64", "cortex-a72"),
    "v128": ("riscv64", "rv64,v=true,vext_spec=v1.0,vlen=128,elen=64"),
    "v256": ("riscv64", "rv64,v=true,vext_spec=v1.0,vlen=256,elen=64"),
}


@contextlib.contextmanager
def session(processor):
    architecture, cpu = PROCESSORS[processor]
    emulator = emulators.find(architecture)
    if not emulator:
        pytest.skip(emulators.install_hint(architecture))
    server = native.build_device_server(architecture)
    command = [*emulator, "-cpu", cpu, str(server), "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in process.stderr if "bind to" in line)
        with rpc.connect("127.0.0.1", int(line.rsplit(":", 1)[1])) as remote:
            yield remote
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def network():
    """A convolution, a product and elementary functions, whose sizes fill no vectors."""
    rng = np.random.default_rng(0)

    def const(*shape):
        return relay.const((rng.standard_normal(shape) * 0.1).astype("float32"))

    x = relay.var("x", shape=(1, 6, 13, 11), dtype="float32")
    y = relay.nn.relu(relay.nn.conv2d(x, const(20, 6, 3, 3), padding=(1, 1)))
    y = relay.nn.conv2d(y, const(20, 1, 3, 3), padding=(1, 1), groups=20)
    y = relay.tanh(relay.nn.conv2d(y, const(36, 20, 1, 1)))
    y = relay.nn.batch_flatten(relay.nn.max_pool2d(y, (2, 2), (2, 2)))
    y = relay.nn.softmax(relay.nn.dense(y, const(10, 36 * 6 * 5)))
    return relay.Function([x], y)


def exported(target, path):
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(network()), target=target)
    library.export_library(path)
    return library


@pytest.mark.parametrize(
    ("target", "processor", "register"),
    [(SVE, "sve256", "z0.s"), (RISCV, "v256", "vfmacc")],
)
def test_a_model_runs_on_vectors_of_its_length(target, processor, register, tmp_path):
    data = np.random.default_rng(1).standard_normal((1, 6, 13, 11)).astype("float32")
    library = exported(target, tmp_path / "model.tar")
    assert register in library.get_source("asm")
    with session(processor) as remote:
        remote.upload(tmp_path / "model.tar")
        model = graph_executor.GraphModule(remote.load_module("model.tar")["default"](remote.cpu()))
        model.run(x=data)
        got = model.get_output(0).numpy()
    want = interpret(network(), data)
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize(
    ("target", "processor", "lacking"),
    [
        (SVE, "sve512", "sve-bits-256"),
        (SVE, "neon", "sve-bits-256"),
        (RISCV, "v128", "zvl256b"),
    ],
)
def test_another_length_is_an_error_before_any_code_runs(target, processor, lacking, tmp_path):
    """Registers of another length would be stored beyond the ends of tensors."""
    exported(target, tmp_path / "model.tar")
    with session(processor) as remote:
        remote.upload(tmp_path / "model.tar")
        with pytest.raises(SlipwayError, match=lacking):
            remote.load_module("model.tar")
