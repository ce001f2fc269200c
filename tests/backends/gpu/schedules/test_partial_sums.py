"""Long reductions of few results: a thread has a part of one, and another kernel combines them."""

import re

import numpy as np
import pytest
import run_kernels

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.schedules.partial_sums import parts_of
from slipway.contrib import graph_executor
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

LONG = ANY_GPU.longest_sum


def drawn(*shape, mean=3.0):
    return (np.random.default_rng(sum(shape)).standard_normal(shape) + mean).astype("float32")


def compiled(body, x, target, simulator=None):
    """Return the library of `body`, a function of one tensor."""
    given = relay.var("x", shape=x.shape, dtype=str(x.dtype))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([given], body(given))), target=target)
    if simulator is not None:
        simulator.learn(lib.lib.imported_modules[0])
    return lib


def result(lib, x, device):
    module = graph_executor.GraphModule(lib["default"](device))
    module.run(x=x)
    return module.get_output(0).numpy()


def plain(x):
    return x.astype("float64")


def norm(x, axes):
    wide = plain(x)
    middle = wide.mean(axes, keepdims=True)
    return (wide - middle) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)


def ones(count):
    return relay.const(np.ones(count, "float32"))


CASES = {
    # A number that nothing divides: the last parts are shorter.
    "sum": (lambda x: relay.sum(x, axis=1), drawn(2, 9001), lambda x: plain(x).sum(1)),
    "all of it": (relay.sum, drawn(101, 97), lambda x: plain(x).sum()),
    "across": (lambda x: relay.mean(x, axis=0), drawn(9001, 3), lambda x: plain(x).mean(0)),
    "around": (lambda x: relay.max(x, axis=(0, 2)), drawn(11, 3, 1031), lambda x: x.max((0, 2))),
    "followed": (
        lambda x: relay.exp(relay.mean(x, axis=1, keepdims=True)) * x,
        drawn(2, 9001, mean=0.5),
        lambda x: np.exp(plain(x).mean(1, keepdims=True)) * plain(x),
    ),
    "variance": (
        lambda x: relay.variance(x, axis=1),
        drawn(2, 8500),
        lambda x: plain(x).var(1),
    ),
    "norm": (
        lambda x: relay.nn.instance_norm(x, ones(2), relay.const(np.zeros(2, "float32"))),
        drawn(1, 2, 97, 93),
        lambda x: norm(x, (2, 3)),
    ),
    "softmax": (
        relay.nn.softmax,
        drawn(2, 8300),
        lambda x: np.exp(plain(x)) / np.exp(plain(x)).sum(1, keepdims=True),
    ),
    "bytes": (
        lambda x: relay.sum(relay.cast(x, "int32"), axis=1),
        np.random.default_rng(1).integers(-128, 128, (2, 9001)).astype("int8"),
        lambda x: x.astype("int32").sum(1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_language_has_the_number(any_device, name):
    body, x, wanted = CASES[name]
    target, simulator = run_kernels.current
    lib = compiled(body, x, target, simulator)
    wanted = wanted(x)
    found = result(lib, x, any_device)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("last", [False, True])
def test_the_first_of_equal_elements_is_found(any_device, last):
    x = np.round(drawn(3, 9001))
    x[0, 7000], x[1, 20] = np.nan, np.nan
    target, simulator = run_kernels.current
    lib = compiled(lambda v: relay.argmax(v, axis=1, select_last_index=last), x, target, simulator)
    wanted = x.argmax(1)
    if last:
        wanted = [7000, 20, 9000 - x[2, ::-1].argmax()]
    np.testing.assert_array_equal(result(lib, x, any_device), wanted)


@pytest.mark.parametrize("kind", ["opencl", "vulkan", "vulkan -device_type=cpu"])
@pytest.mark.parametrize("size", [256, 512])
def test_the_mean_of_a_large_image(device, vulkan, kind, size):
    """A thread with more than 65,535 steps ends too early on lavapipe; its sum has few bits."""
    x = drawn(1, 2, size, size, mean=0.5)
    lib = compiled(relay.nn.global_avg_pool2d, x, Target(kind, host="llvm"))
    found = result(lib, x, device if kind == "opencl" else vulkan)
    np.testing.assert_allclose(found, plain(x).mean((2, 3), keepdims=True), rtol=2e-6)


def test_a_thread_adds_up_in_registers(device):
    """Nothing is read from the memory that a result is written to, step by step."""
    for shape in ((40, 100), (2, 9001)):
        lib = compiled(lambda x: relay.sum(x, axis=1), drawn(*shape), Target("opencl", host="llvm"))
        text = lib.lib.imported_modules[0].get_source("opencl")
        written = re.findall(r"^ *(\w+)\[.*?\] = (.*)$", text, re.MULTILINE)
        tensors = set(re.findall(r"__global float\* restrict (\w+)", text))
        assert {name for name, _ in written} & tensors
        assert not [value for name, value in written if name in tensors and f"{name}[" in value]


DEEP = {
    "dense": (
        lambda x: relay.nn.relu(relay.nn.dense(x, x)),
        drawn(5, 70_001, mean=0),
        lambda x: np.maximum(x @ x.T, 0),
    ),
    "matmul": (
        lambda x: relay.nn.matmul(relay.transpose(x), x),
        drawn(70_000, 3, mean=0),
        lambda x: x.T @ x,
    ),
    "convolution": (
        lambda x: relay.nn.conv2d(x, relay.nn.relu(x), padding=(1, 1), channels=1, kernel_size=3),
        drawn(1, 8000, 3, 3, mean=0),
        lambda x: padded_products(x, np.maximum(x, 0)),
    ),
    "large kernel": (
        lambda x: relay.nn.conv2d(x, x, channels=1, kernel_size=(260, 260)),
        drawn(1, 1, 260, 260, mean=0),
        lambda x: (x * x).sum(keepdims=True),
    ),
    # A thread adds up products of 36,000 elements: the two are not one kernel.
    "mean of a convolution": (
        lambda x: relay.nn.global_avg_pool2d(
            relay.nn.conv2d(x, relay.nn.relu(x), padding=(1, 1), channels=1, kernel_size=3)
        ),
        drawn(1, 4000, 3, 3, mean=0),
        lambda x: padded_products(x, np.maximum(x, 0)).mean((2, 3), keepdims=True),
    ),
    "sum of products": (
        lambda x: relay.sum(relay.nn.dense(x, x), axis=1),
        drawn(8, 40_000, mean=0.1),
        lambda x: (x @ x.T).sum(1),
    ),
    "many rows": (
        lambda x: relay.max(x, axis=1),
        drawn(130, 140_000),
        lambda x: x.max(1),
    ),
}


def padded_products(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3)
    )
    return np.einsum("nchwij,ocij->nohw", windows, w)


@pytest.mark.parametrize("options", ["", " -device_type=cpu", " -thread_warp_size=8"])
@pytest.mark.parametrize("name", DEEP)
def test_more_steps_than_a_thread_of_lavapipe_takes(vulkan, name, options):
    body, x, wanted = DEEP[name]
    found = result(compiled(body, x, Target(f"vulkan{options}", host="llvm")), x, vulkan)
    wanted = wanted(plain(x))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_a_large_product_that_is_deep(vulkan):
    """One whose panels would be in shared memory, of 65,568 steps."""
    x = drawn(33, 65_568, mean=0)
    target = Target("vulkan -thread_warp_size=8", host="llvm")
    found = result(compiled(lambda v: relay.nn.dense(v, v), x, target), x, vulkan)
    wanted = plain(x) @ plain(x).T
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["dense", "large kernel"])
def test_parts_of_deep_products_in_opencl(device, name):
    body, x, wanted = DEEP[name]
    found = result(compiled(body, x, Target("opencl", host="llvm")), x, device)
    wanted = wanted(plain(x))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_how_many_parts_there_are():
    gpu, processor = Target("opencl"), Target("vulkan -device_type=cpu")
    assert parts_of(1, ANY_GPU.part_length, gpu) == 1
    assert parts_of(1, 65536, gpu) == 256  # as long as what is left for the second kernel
    assert parts_of(64, 56 * 56, gpu) > 1
    assert parts_of(1280, 49, gpu) == 1
    assert parts_of(ANY_GPU.busy_threads, LONG, gpu) == 1  # all of the device works
    assert parts_of(ANY_GPU.busy_threads, LONG + 1, gpu) == 2
    assert parts_of(64, 56 * 56, processor) == 1
    assert parts_of(64, 300 * 300, processor) > 1
    assert parts_of(ANY_GPU.busy_threads, 5 * ANY_GPU.thread_steps, gpu) == 8
    # As many bits as parts have, in one thread.
    assert parts_of(1, LONG + 1, gpu, keeps_bits=True) > 1
    assert parts_of(1, 30_000, Target("pocl/cpu"), keeps_bits=True) == 1
    assert parts_of(1, 30_000, Target("pocl/cpu")) > 1


IN_TURNS = {
    # The kernels of a device whose threads run beside each other, and of one where in turns.
    "mean of images": (lambda x: relay.mean(x, axis=(2, 3)), (1, 8, 56, 56), 2, 1),
    "mean over rows": (lambda x: relay.mean(x, axis=0), (4096, 16), 2, 1),
    "one sum": (lambda x: relay.sum(x, axis=1), (1, 30_000), 2, 1),
    "of a length that nothing divides": (lambda x: relay.sum(x, axis=1), (2, 9001), 2, 2),
    "softmax of one row": (relay.nn.softmax, (1, 1000), 5, 1),
    "softmax of few rows": (relay.nn.softmax, (4, 4000), 5, 1),
    "norm of one row": (
        lambda x: relay.nn.layer_norm(x, ones(768), ones(768)), (1, 768), 5, 1,
    ),
    "position": (lambda x: relay.argmax(x, axis=1), (1, 1000), 4, 1),
    "position in a long row": (lambda x: relay.argmax(x, axis=1), (1, 30_000), 4, 2),
    "positions of rows": (lambda x: relay.argmin(x, axis=1), (64, 300), 1, 1),
    "position in several axes": (relay.argmax, (10, 11, 12), 4, 1),
    "a number": (relay.max, (60, 60), 2, 1),
    "a number of few elements": (relay.sum, (20, 20), 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_TURNS)
def test_a_processor_that_runs_a_thread_after_the_other(device, name):
    body, shape, beside, in_turns = IN_TURNS[name]
    x = drawn(*shape, mean=0.5)
    wanted = result(compiled(body, x, Target("llvm")), x, tvm.cpu(0))
    for target, kernels in (("opencl", beside), ("pocl/cpu", in_turns)):
        lib = compiled(body, x, Target(target, host="llvm"))
        found = result(lib, x, device)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-6 * np.abs(wanted).max())
        assert len(lib.compiled.device.kernels) == kernels, target
