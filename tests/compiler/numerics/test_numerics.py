"""docs/numerics.md: the same bits from run to run, strict mode, denormal numbers."""

import multiprocessing
import re
import threading

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.backend import backend_of
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.runtime import set_num_threads

RNG = np.random.default_rng(0)


def const(*shape, scale=0.1):
    return relay.const((RNG.standard_normal(shape) * scale).astype("float32"))


def convolutional(x):
    """Winograd's and direct convolutions, a depthwise one, BatchNorm, pooling, a classifier."""
    nn = relay.nn
    y = nn.conv2d(x, const(32, 16, 3, 3), padding=(1, 1))
    y, *_ = nn.batch_norm(y, const(32), const(32), const(32), relay.const(np.ones(32, "float32")))
    y = nn.relu(y)
    y = nn.conv2d(y, const(32, 1, 3, 3), padding=(1, 1), groups=32)
    y = nn.relu(nn.conv2d(y, const(48, 32, 1, 1)))
    y = nn.max_pool2d(y, (2, 2), (2, 2))
    y = nn.batch_flatten(nn.global_avg_pool2d(y))
    return nn.softmax(nn.dense(y, const(10, 48)))


def attention(x):
    rows = relay.reshape(x, (1, 64, 196))
    scores = relay.nn.batch_matmul(rows, rows, transpose_b=True)
    mixed = relay.nn.batch_matmul(relay.nn.softmax(scores), rows, transpose_b=False)
    return relay.tanh(relay.nn.layer_norm(mixed, const(196), const(196)))


def quantized(x):
    q, d = relay.qnn.op.quantize, relay.qnn.op.dequantize
    weight = relay.const(RNG.integers(-127, 128, (32, 16, 3, 3)).astype("int8"))
    scale = np.full(32, 0.01, "float32")
    y = d(q(x, 0.05, 3), 0.05, 3)
    y = relay.nn.conv2d(y, d(weight, scale, np.zeros(32, "int32"), 0), padding=(1, 1))
    return d(q(relay.nn.relu(y), 0.1, -128), 0.1, -128)


NETWORKS = {"convolutional": convolutional, "attention": attention, "quantized": quantized}
SHAPE = (1, 16, 28, 28)


def function_of(network):
    x = relay.var("x", shape=SHAPE, dtype="float32")
    return relay.Function([x], NETWORKS[network](x))


def built(function, target="llvm"):
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(tvm.IRModule.from_expr(function), target=target)


def loaded(library):
    return graph_executor.GraphModule(library["default"](tvm.cpu(0)))


def data():
    return np.random.default_rng(1).standard_normal(SHAPE).astype("float32")


def result(model):
    model.run(x=data())
    return model.get_output(0).numpy()


@pytest.fixture(autouse=True)
def restore():
    yield
    set_num_threads(0)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_same_bits_from_every_run_on_any_number_of_threads(network):
    model = loaded(built(function_of(network)))
    want = result(model)
    for threads in (1, 2, 4):
        set_num_threads(threads)
        for _ in range(20):
            np.testing.assert_array_equal(result(model), want)


def test_several_models_at_once_in_several_threads():
    libraries = [built(function_of(network)) for network in NETWORKS]
    want = [result(loaded(library)) for library in libraries]
    wrong = []

    def work(index):
        model = loaded(libraries[index])
        for _ in range(20):
            if not np.array_equal(result(model), want[index]):
                wrong.append(index)

    set_num_threads(2)
    threads = [threading.Thread(target=work, args=(k % len(libraries),)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def child(model, want, queue):
    queue.put(all(np.array_equal(result(model), want) for _ in range(3)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_run_the_parents_model():
    """Forked before the parent's first run, and after it."""
    context = multiprocessing.get_context("fork")
    library = built(function_of("convolutional"))
    set_num_threads(2)
    want = result(loaded(library))
    model = loaded(library)
    for _ in range(2):
        queue = context.Queue()
        process = context.Process(target=child, args=(model, want, queue))
        process.start()
        assert queue.get(timeout=60)
        process.join()
        np.testing.assert_array_equal(result(model), want)


def test_strict_code_has_the_models_own_arithmetic():
    function = function_of("convolutional")
    usual, strict = built(function), built(function, "llvm -strict=1")
    assert any("winograd" in name for name in usual.graph.kernels)
    assert not any("winograd" in name for name in strict.graph.kernels)
    # Scale and shift of the BatchNorm stay behind the convolution.
    assert any("multiply_add" in name for name in strict.graph.kernels)
    assert not any("multiply" in name for name in usual.graph.kernels)
    assembly = strict.get_source("asm")
    assert "fmadd" not in assembly
    assert "fmla" not in assembly
    wide = interpret(function, data())
    for library in (usual, strict):
        np.testing.assert_allclose(result(loaded(library)), wide, rtol=1e-4)


def test_the_page_names_every_pass_that_strict_targets_leave_out(repository):
    page = (repository / "docs" / "numerics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*? \| (.*?) \| .* \| (off|on) \|$", page, re.MULTILINE)
    names = {
        switch: {word for where, its in rows if its == switch for word in re.findall(r"\w+", where)}
        for switch in ("off", "on")
    }
    for target in ("llvm", "opencl", "c"):
        passes = backend_of(tvm.target.Target(target)).graph_passes(tvm.target.Target(target))
        assert {step.name for step in passes if not step.exact} <= names["off"], target
        assert names["on"].isdisjoint(step.name for step in passes if not step.exact), target


def test_strict_code_computes_a_quantised_model_as_its_file_says():
    function = function_of("quantized")
    strict = built(function, "llvm -strict=1")
    integers = ("qnn_conv", "qnn_contrib_conv")  # packed or by Winograd, as the processor has it
    assert not any(part in name for name in strict.graph.kernels for part in integers)
    assert any(part in name for name in built(function).graph.kernels for part in integers)
    got, want = result(loaded(strict)), interpret(function, data())
    assert np.abs(got - want).max() <= 0.1001  # a step, where a sum lies between two
    assert np.mean(got != want) < 0.01


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "llvm -strict=1"])
def test_denormal_numbers_are_kept(target):
    x = relay.var("x", shape=(64,), dtype="float32")
    function = relay.Function([x], relay.multiply(x + x, relay.const(0.5)))
    tiny = np.linspace(1e-45, 1e-38, 64, dtype="float32")
    model = loaded(built(function, target))
    model.run(x=tiny)
    np.testing.assert_array_equal(model.get_output(0).numpy(), tiny)


def test_softmax_keeps_denormal_numbers_in_strict_code_only():
    x = relay.var("x", shape=(1, 64), dtype="float32")
    function = relay.Function([x], relay.nn.softmax(x))
    scores = np.linspace(-100, 0, 64, dtype="float32")[None]
    smallest = np.finfo("float32").tiny
    found = {}
    for target in ("llvm", "llvm -strict=1"):
        model = loaded(built(function, target))
        model.run(x=scores)
        out = model.get_output(0).numpy()
        found[target] = bool(((out > 0) & (out < smallest)).any())
    assert found == {"llvm": False, "llvm -strict=1": True}
