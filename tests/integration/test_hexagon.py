"""A session with a Hexagon under QEMU: vectors of floats, and quantised products by vrmpy."""

import re
import subprocess

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc
from slipway.contrib import graph_executor
from slipway.toolchain import emulators, native

pytestmark = pytest.mark.long  # the first time zig compiles its C library for the processor


def quantised():
    """A convolution of bytes with what follows it."""
    x = relay.var("x", shape=(1, 32, 8, 8), dtype="int8")
    rng = np.random.default_rng(0)
    weight = relay.const(rng.integers(-127, 127, (64, 32, 3, 3)).astype("int8"))
    zero = relay.const(0)
    y = relay.qnn.conv2d(
        x, weight, relay.const(3), zero, relay.const(0.5), relay.const(0.25), kernel_size=(3, 3),
        channels=64, padding=(1, 1), out_dtype="int32",
    )  # fmt: skip
    y = relay.qnn.requantize(y, relay.const(0.125), zero, relay.const(8.0), zero, out_dtype="int8")
    return relay.Function([x], y)


def floats():
    """What divides, which the processor has functions for."""
    a, b = relay.var("a", shape=(300,)), relay.var("b", shape=(300,))
    return relay.Function([a, b], relay.tanh(a) / b)


def test_models_run_on_a_hexagon(tmp_path):
    emulator = emulators.find("hexagon")
    if emulator is None:
        pytest.skip(emulators.install_hint("hexagon"))
    server = tmp_path / "server"
    native.compile_server("hexagon-linux-musl", server)
    running = subprocess.Popen(
        [*emulator, server, "--port", "9600"], text=True, cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        port = int(re.search(r":(\d+)", running.stdout.readline())[1])
        remote = rpc.connect("127.0.0.1", port)
        rng = np.random.default_rng(1)
        cases = [
            (quantised(), {"x": rng.integers(-128, 127, (1, 32, 8, 8)).astype("int8")}, 0),
            (floats(), {n: rng.uniform(0.5, 2, 300).astype("float32") for n in "ab"}, 1e-6),
        ]
        for function, given, tolerance in cases:
            mod = tvm.IRModule.from_expr(function)
            made = relay.build(mod, target="hexagon -mcpu=v67")
            if function.params[0].type_annotation.dtype == "int8":
                assert "vrmpy" in made.lib.get_source("asm")
            made.export_library(tmp_path / "model.tar")
            remote.upload(tmp_path / "model.tar")
            there = graph_executor.GraphModule(
                remote.load_module("model.tar")["default"](remote.cpu(0))
            )
            there.run(**given)
            here = graph_executor.GraphModule(
                relay.build(mod, target="llvm")["default"](tvm.cpu(0))
            )
            here.run(**given)
            wanted = here.get_output(0).numpy()
            np.testing.assert_allclose(there.get_output(0).numpy(), wanted, rtol=tolerance)
    finally:
        running.kill()
        running.communicate()
