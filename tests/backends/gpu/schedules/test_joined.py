"""Reductions in the kernel of the product that they reduce, on every language of kernels."""

import numpy as np
import pytest
import run_kernels

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.schedules.joined import JoinedThreads
from slipway.contrib import graph_executor
from slipway.target import Target


def weights(*shape, seed=1):
    return relay.const(run_kernels.random(*shape, seed=seed))


def conv(x, filters, window=3, channels=None, groups=1, layout="NCHW", **attrs):
    channels = channels or x.type_annotation.shape[1 if layout == "NCHW" else 3]
    inside = channels // groups
    first = layout == "NCHW"
    shape = (filters, inside, window, window) if first else (window, window, inside, filters)
    return relay.nn.conv2d(
        x, weights(*shape), padding=(window // 2, window // 2), channels=filters, groups=groups,
        kernel_size=(window, window), data_layout=layout,
        kernel_layout="OIHW" if first else "HWIO", **attrs,
    )  # fmt: skip


def squeezed(x):
    """Two joined reductions, the second of what the first is used for, and an image between."""
    y = relay.nn.relu(conv(x, 8))
    gate = relay.sigmoid(relay.mean(conv(y, 8, channels=8), axis=(2, 3), keepdims=True))
    return relay.nn.global_max_pool2d(conv(y * gate, 8, 1, channels=8))


# What there is, the shape of its input, and how many kernels fewer there are.
CASES = {
    "residual": (lambda x: relay.nn.global_avg_pool2d(x + relay.nn.relu(conv(x, 16))),
                 (1, 16, 32, 32), 1),
    "flat mean": (lambda x: relay.mean(conv(x, 12, 1), axis=(2, 3)), (2, 5, 14, 14), 1),
    "largest": (lambda x: relay.max(relay.nn.relu(conv(x, 24, strides=(2, 2))), axis=(2, 3)),
                (3, 4, 23, 18), 1),
    "channels last": (lambda x: relay.nn.global_avg_pool2d(conv(x, 24, layout="NHWC"), "NHWC"),
                      (1, 20, 12, 8), 1),
    "after the pool": (lambda x: relay.sigmoid(relay.nn.global_avg_pool2d(conv(x, 20))),
                       (1, 3, 16, 16), 1),
    "groups": (lambda x: relay.sum(conv(x, 16, groups=8), axis=(2, 3)), (1, 16, 20, 20), 1),
    "rows of an image": (lambda x: relay.min(conv(x, 32), axis=3), (1, 3, 12, 20), 1),
    "channels": (lambda x: relay.mean(conv(x, 32), axis=1, keepdims=True), (2, 3, 12, 10), 1),
    "sum of products": (lambda x: relay.sum(relay.nn.dense(x, weights(96, 40)), axis=1),
                        (64, 40), 1),
    "tokens": (lambda x: relay.mean(relay.nn.relu(relay.nn.batch_matmul(x, weights(2, 24, 16))),
                                    axis=1), (2, 112, 16), 1),
    "two": (squeezed, (1, 4, 32, 32), 2),
    "read twice": (lambda x: (y := conv(x, 8)) - relay.mean(y, axis=(2, 3), keepdims=True),
                   (1, 3, 8, 8), 0),
    "one number": (lambda x: relay.mean(relay.nn.relu(conv(x, 8))), (1, 3, 8, 8), 0),
    "few lanes": (lambda x: relay.mean(conv(x, 8, 5), axis=(2, 3)), (1, 3, 257, 1), 0),
}  # fmt: skip


def built(name, target, *without):
    body, shape, _ = CASES[name]
    x = relay.var("x", shape=shape)
    module = tvm.IRModule.from_expr(relay.Function([x], body(x)))
    with tvm.transform.PassContext(opt_level=3, disabled_pass=list(without)):
        return relay.build(module, target=target)


def run(library, device, x):
    module = graph_executor.GraphModule(library["default"](device))
    module.run(x=x)
    return module.get_output(0).numpy()


def agrees(name, device, target=None):
    chosen, simulator = run_kernels.current
    x = run_kernels.random(*CASES[name][1])
    wanted = run(built(name, Target("llvm")), tvm.cpu(), x)
    library = built(name, target or chosen)
    if simulator is not None:
        simulator.learn(library.lib.imported_modules[0])
    found = run(library, device, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    return library


@pytest.mark.parametrize("name", CASES)
def test_a_reduction_is_in_the_kernel_of_its_product(device, name):
    joined = agrees(name, device).graph.kernels
    apart = built(name, run_kernels.OPENCL, "JoinReductions", "JoinRows").graph.kernels
    assert len(apart) - len(joined) == CASES[name][2]


@pytest.mark.parametrize("name", ["residual", "largest", "after the pool", "two", "tokens"])
def test_threads_in_step_combine_their_sums_in_one_kernel(device, name):
    target = Target("opencl -thread_warp_size=32 -max_threads_per_block=256", host="llvm")
    joined = agrees(name, device, target).compiled.device.kernels
    apart = built(name, target, "JoinReductions", "JoinRows").compiled.device.kernels
    assert len(apart) - len(joined) == CASES[name][2]


@pytest.mark.parametrize("name", ["two", "channels last"])
def test_every_language_computes_them_without_a_race(any_device, name):
    agrees(name, any_device)


def test_one_kernel_is_for_reductions_that_keep_the_device_busy():
    apart, step = Target("opencl", host="llvm"), Target("cuda", host="llvm")
    mobile = JoinedThreads.of((1, 1280, 7, 7), (2, 3), (1, 3), (2, 7), step)
    lanes = mobile.lanes(320)
    assert (lanes, mobile.groups, mobile.together(lanes)) == (7, 640, 8)
    assert mobile.is_cheaper(320)
    long = JoinedThreads.of((1, 4, 512, 512), (2, 3), (1, 3), (4, 4), step)
    assert not long.is_cheaper(144)  # 256 threads in place of 16,384
    assert JoinedThreads.of((1, 4, 512, 512), (2, 3), (1, 3), (4, 4), apart).is_cheaper(144)
    many = JoinedThreads.of((512, 128, 4, 4), (2, 3), (1, 3), (4, 4), apart)
    assert many.lanes(64) == 1  # a thread has all that its results are made of
