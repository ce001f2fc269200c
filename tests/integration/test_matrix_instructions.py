"""Products by instructions of ARM on matrices, pairs and halves, on an emulated processor."""

import re
import subprocess

import ml_dtypes
import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc
from slipway.compiler.precision import in_precision
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.target import Target
from slipway.toolchain import emulators, native

TARGET = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n2"
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def remote():
    """A session with an emulated processor that has all extensions."""
    emulator = emulators.find("aarch64")
    if not emulator:
        pytest.skip(emulators.install_hint("aarch64"))
    server = native.build_device_server("aarch64")
    command = [*emulator, "-cpu", "max,pauth-impdef=on", str(server), "--host", "127.0.0.1",
               "--port", "0"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in process.stderr if "bind to" in line)
        with rpc.connect("127.0.0.1", int(line.rsplit(":", 1)[1])) as session:
            yield session
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def run(remote, bodies, variables, feeds, folder):
    """Results of several bodies, compiled as one model, and its assembly."""
    function = relay.Function(variables, relay.Tuple(tuple(bodies)))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(function), target=TARGET)
    library.export_library(folder / "model.tar")
    remote.upload(folder / "model.tar")
    model = graph_executor.GraphModule(remote.load_module("model.tar")["default"](remote.cpu()))
    model.run(**feeds)
    results = [model.get_output(i).numpy() for i in range(len(bodies))]
    return results, interpret(function, *feeds.values()), library.get_source("asm")


def conv(x, kind, channels, filters, window=1, stride=1):
    weight = RNG.integers(-128, 128, (window, window, channels, filters)).astype(np.int8)
    weight[..., 0] = -128  # the largest products, all of one sign
    return relay.qnn.op.conv2d_nhwc(
        x, weight, (stride, stride), (window // 2,) * 4, pad_value=100 if kind == "uint8" else -100
    )


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_int8_sums_are_exact(remote, kind, tmp_path):
    info = np.iinfo(kind)
    shapes = {"a": (1, 9, 7, 24), "b": (2, 5, 6, 16), "c": (13, 70), "d": (1, 30)}
    feeds = {
        name: RNG.integers(info.min, info.max + 1, shape).astype(kind)
        for name, shape in shapes.items()
    }
    feeds["a"][0, :2] = info.min
    a, b, c, d = (relay.var(name, shape=s, dtype=kind) for name, s in shapes.items())
    rows = RNG.integers(-128, 128, (70, 40)).astype(np.int8)
    few = RNG.integers(-128, 128, (30, 8)).astype(np.int8)
    layer = relay.qnn.op.requantize(
        conv(b, kind, 16, 32), np.linspace(1e-3, 2e-3, 32), 0, 0.9, -3, axis=3
    )
    bodies = [
        conv(a, kind, 24, 32, 3), conv(a, kind, 24, 20, 1), conv(a, kind, 24, 48, 3, 2),
        conv(b, kind, 16, 12, 1), conv(b, kind, 16, 4, 5), layer,
        relay.qnn.op.dense_packed(c, rows), relay.qnn.op.dense_packed(d, few),
    ]  # fmt: skip
    results, wanted, assembly = run(remote, bodies, [a, b, c, d], feeds, tmp_path)
    assert "smmla" in assembly
    for got, want in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(ml_dtypes.bfloat16)


def test_bfloat16_sums_in_float32(remote, tmp_path):
    shapes = {"a": (1, 16, 9, 7), "b": (2, 20, 6, 6), "c": (13, 64), "d": (1, 32), "e": (2, 20, 6)}
    feeds = {name: numbers(*shape) for name, shape in shapes.items()}
    a, b, c, d, e = (relay.var(name, shape=s, dtype="bfloat16") for name, s in shapes.items())
    wide = {"out_dtype": "float32"}
    bodies = [
        relay.nn.conv2d(a, relay.const(numbers(24, 16, 3, 3)), padding=(1, 1), **wide),
        relay.nn.conv2d(a, relay.const(numbers(30, 16, 1, 1)), **wide),
        relay.nn.conv2d(b, relay.const(numbers(16, 20, 3, 3)), strides=(2, 2), **wide),
        relay.nn.conv2d(b, relay.const(numbers(9, 20, 1, 3)), padding=(0, 1), **wide),
        relay.nn.batch_matmul(e, e, **wide),
        relay.nn.dense(c, relay.const(numbers(24, 64)), **wide),
        relay.nn.dense(d, relay.const(numbers(10, 32)), **wide),
        relay.nn.relu(relay.nn.dense(c, relay.const(numbers(16, 64)))),
    ]
    results, wanted, assembly = run(remote, bodies, [a, b, c, d, e], feeds, tmp_path)
    assert "bfmmla" in assembly
    assert "bfdot" in assembly  # one row
    for got, want in zip(results, wanted, strict=True):
        assert got.dtype == want.dtype
        step = 2.0**-8 if got.dtype == ml_dtypes.bfloat16 else 2e-6
        got, want = got.astype("float64"), want.astype("float64")
        np.testing.assert_allclose(got, want, rtol=2 * step, atol=step * np.abs(want).max())


def half_model(draw):
    """A convolution, a dense layer and a product of two variables, in float32."""
    x = relay.var("x", shape=(1, 16, 11, 11))
    kernel = relay.const(draw(24, 16, 3, 3))
    image = relay.nn.relu(relay.nn.conv2d(x, kernel, channels=24, kernel_size=(3, 3)))
    rows = relay.reshape(x, (16, 121))
    units = relay.nn.dense(rows, relay.const(draw(40, 121)))
    square = relay.nn.batch_matmul(relay.expand_dims(rows, 0), relay.expand_dims(rows, 0))
    function = relay.Function([x], relay.Tuple((image, units, square)))
    return relay.transform.InferType()(tvm.IRModule.from_expr(function))


def small(*shape):
    """Numbers whose products and sums float16 holds exactly."""
    return RNG.integers(-3, 4, shape).astype("float32")


def normal(*shape):
    return RNG.standard_normal(shape).astype("float32")


# Instructions of float16 by target: multiply-adds of eight, of 32 lanes.
HALF = {
    "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76": r"fmla\s+v\d+\.8h",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n2": r"fmla\s+v\d+\.8h",
    "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids": r"vfmadd\d+ph\s.*%zmm",
}


@pytest.mark.parametrize("target", HALF)
def test_processors_with_float16_multiply_and_add_in_it_where_that_is_chosen(target):
    for precision, narrow in (("float16_acc16", True), ("float16", False), ("auto", False)):
        made, _ = in_precision(half_model(normal), None, precision, Target(target))
        with tvm.transform.PassContext(opt_level=3):
            assembly = relay.build(made, target=target).get_lib().get_source("asm")
        assert bool(re.search(HALF[target], assembly)) == narrow, precision


@pytest.mark.parametrize(("draw", "bound"), [(small, 0), (normal, 2.0**-8)])
def test_float16_sums_in_float16_where_that_is_chosen(remote, draw, bound, tmp_path):
    module, data = half_model(draw), draw(1, 16, 11, 11)
    made, _ = in_precision(module, None, "float16_acc16", Target(TARGET))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(made, target=TARGET)
    library.export_library(tmp_path / "half.tar")
    remote.upload(tmp_path / "half.tar")
    model = graph_executor.GraphModule(remote.load_module("half.tar")["default"](remote.cpu()))
    model.run(x=data)
    for number, want in enumerate(interpret(module["main"], data)):
        got = model.get_output(number).numpy()
        assert np.abs(got - want).max() <= bound * np.abs(want).max()
