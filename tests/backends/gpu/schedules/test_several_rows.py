"""Variances, norms and softmax of small operators in one kernel, on every language of kernels."""

import numpy as np
import pytest
import run_kernels

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.target import Target

STEP = Target("opencl -thread_warp_size=32 -max_threads_per_block=256", host="llvm")
POCL = Target("pocl/cpu", host="llvm")


def ones(*shape, seed=3):
    return relay.const(run_kernels.random(*shape, seed=seed))


def norm(x, axes=(-1,), epsilon=1e-5):
    """As exporters write it that have no operator of the name."""
    centred = x - relay.mean(x, axes, keepdims=True)
    spread = relay.mean(centred * centred, axes, keepdims=True)
    return centred / relay.sqrt(spread + relay.const(epsilon))


def rms(x):
    square = relay.mean(x * x, -1, keepdims=True)
    return x * relay.rsqrt(square + relay.const(1e-6)) * ones(x.type_annotation.shape[-1])


def softmax(x, axis=-1):
    raised = relay.exp(x - relay.max(x, axis, keepdims=True))
    return raised / relay.sum(raised, axis, keepdims=True)


def normal(x, axes=(-1,)):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def soft(x, axis=-1):
    raised = np.exp(x - x.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


GAIN = run_kernels.random(40, seed=3)
# What there is, the shape of its input, its reference, and how many kernels it is without the pass.
CASES = {
    "variance": (lambda x: relay.variance(x, -1), (64, 40), lambda x: x.var(-1), 2),
    "variance of an image": (lambda x: relay.variance(x, (2, 3), keepdims=True), (4, 32, 6, 7),
                             lambda x: x.var((2, 3), keepdims=True), 2),
    "deviation": (lambda x: relay.std(x, 1, unbiased=True), (4, 30, 9),
                  lambda x: x.std(1, ddof=1), 2),
    "norm": (lambda x: norm(x) * ones(40) + relay.const(2.0), (3, 20, 40),
             lambda x: normal(x) * GAIN + 2, 3),
    "norm of channels": (lambda x: norm(x, (1,)), (4, 24, 5, 6), lambda x: normal(x, (1,)), 3),
    "root mean square": (rms, (2, 33, 40),
                         lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * GAIN, 2),
    "softmax": (softmax, (5, 7, 40), soft, 4),
    "softmax of channels": (lambda x: softmax(x, 1), (8, 21, 9), lambda x: soft(x, 1), 4),
    "weighted": (lambda x: relay.sum(softmax(x) * ones(40), -1), (64, 40),
                 lambda x: (soft(x) * GAIN).sum(-1), 4),
    "unit length": (lambda x: relay.nn.l2_normalize(x, 1e-12, -1), (50, 40),
                    lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)), 2),
    "between the ends": (lambda x: (x - relay.min(x, -1, keepdims=True)) / (
                             relay.max(x, -1, keepdims=True) - relay.min(x, -1, keepdims=True)),
                         (48, 40), lambda x: (x - x.min(-1, keepdims=True)) / np.ptp(
                             x, -1, keepdims=True), 3),
}  # fmt: skip


def built(name, target, *without):
    body, shape, *_ = CASES[name]
    x = relay.var("x", shape=shape)
    module = tvm.IRModule.from_expr(relay.Function([x], body(x)))
    with tvm.transform.PassContext(opt_level=3, disabled_pass=list(without)):
        return relay.build(module, target=target)


def launches(library):
    return len(library.compiled.device.kernels)


def agrees(name, device, target=None):
    chosen, simulator = run_kernels.current
    x = run_kernels.random(*CASES[name][1])
    library = built(name, target or chosen)
    if simulator is not None:
        simulator.learn(library.lib.imported_modules[0])
    module = graph_executor.GraphModule(library["default"](device))
    module.run(x=x)
    wanted = CASES[name][2](x.astype("float64"))
    found = module.get_output(0).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    return library


@pytest.mark.parametrize("target", [POCL, STEP], ids=["processor", "in step"])
@pytest.mark.parametrize("name", CASES)
def test_rows_are_one_kernel(device, name, target):
    apart = launches(built(name, target, "JoinRows"))
    joined = launches(agrees(name, device, target))
    assert joined == 1
    assert apart >= CASES[name][3]


@pytest.mark.parametrize("name", CASES)
def test_every_language_computes_them_without_a_race(any_device, name):
    agrees(name, any_device)


def kernels_of(body, target, *shape):
    x = relay.var("x", shape=shape)
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body(x))), target=target)
    return library, launches(library)


def test_kernels_whose_results_others_read_are_apart():
    """A mean that is an output too, rows of another axis, and a sum of what a sum changes."""
    both, count = kernels_of(
        lambda x: relay.Tuple([relay.mean(x, -1), relay.variance(x, -1)]), POCL, 64, 40
    )
    assert count == 2
    _, count = kernels_of(lambda x: norm(norm(x, (1,)), (0,)), POCL, 64, 40)
    assert count == 2
    x = run_kernels.random(64, 40)
    module = graph_executor.GraphModule(both["default"](tvm.opencl(0)))
    module.run(x=x)
    for number, wanted in enumerate((x.mean(-1), x.var(-1))):
        found = module.get_output(number).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_few_long_rows_keep_their_kernels_on_a_device_that_they_leave_without_work():
    _, phone = kernels_of(norm, Target("opencl", host="llvm"), 4, 4096)
    _, processor = kernels_of(norm, POCL, 4, 4096)
    assert phone > 1
    assert processor == 1


def test_strict_targets_compute_each_operator_by_itself():
    _, count = kernels_of(norm, Target("opencl -device_type=cpu -strict=1", host="llvm"), 128, 40)
    assert count > 1


@pytest.mark.parametrize("body", [norm, relay.nn.softmax, lambda x: relay.variance(x, -1)])
def test_a_processor_that_runs_threads_in_turn_adds_up_a_row_in_lanes(body):
    library, count = kernels_of(body, POCL, 64, 96)
    assert count == 1
    assert "[16];" in library.lib.imported_modules[0].get_source()
