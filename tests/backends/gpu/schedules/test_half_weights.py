"""Weights of float16 and bfloat16 that kernels widen, in every language of kernels."""

import ml_dtypes
import numpy as np
import pytest
import run_kernels

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.half_weights import widened_in_kernels
from slipway.contrib import graph_executor
from slipway.target import Target

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def network(dtype):
    """Return convolutions, dense layers of one row and of many, and what is no weight alone."""

    def weights(*shape, seed):
        return relay.const(run_kernels.random(*shape, seed=seed).astype(DTYPES[dtype]))

    x = relay.var("x", shape=(1, 4, 14, 14), dtype=dtype)
    y = relay.nn.relu(relay.nn.conv2d(x, weights(8, 4, 3, 3, seed=1), padding=1))
    y = relay.nn.relu(relay.nn.conv2d(y, weights(8, 1, 3, 3, seed=2), padding=1, groups=8))
    y = relay.nn.conv2d(y, weights(40, 8, 1, 1, seed=3), strides=(2, 2))
    rows = relay.reshape(y, (40, 49))
    rows = relay.nn.dense(rows, weights(36, 49, seed=4))
    same = weights(36, 36, seed=5)
    both = relay.nn.matmul(relay.nn.dense(rows, same), same)
    return tvm.IRModule.from_expr(
        relay.Function([x], relay.nn.dense(relay.mean(both, axis=0, keepdims=True), same))
    )


def built(dtype, target, *without):
    with tvm.transform.PassContext(opt_level=3, disabled_pass=list(without)):
        return relay.build(network(dtype), target=target)


def run(library, dtype, device, simulator):
    if simulator is not None:
        simulator.learn(library.lib.imported_modules[0])
    module = graph_executor.GraphModule(library["default"](device))
    module.run(x=run_kernels.random(1, 4, 14, 14).astype(DTYPES[dtype]))
    return module.get_output(0).numpy()


def weight_types(library):
    return {value.dtype for value in library.params.values()}


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_bits_of_wide_weights(any_device, dtype):
    target, simulator = run_kernels.current
    kept = built(dtype, target)
    expected = dtype if dtype in widened_in_kernels(target) else "float32"
    assert weight_types(kept) == {expected}
    wide = built(dtype, target, "HalfWeights")
    assert weight_types(wide) == {"float32"}
    found = [run(library, dtype, any_device, simulator) for library in (kept, wide)]
    np.testing.assert_array_equal(found[0].view(np.uint16), found[1].view(np.uint16))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("opencl", {"float32"}),
        ("opencl -supports_float16=1", {"float16"}),
        ("vulkan", {"float32"}),
        ("cuda -arch=sm_62", {"float16"}),
        ("metal", {"float16"}),
    ],
)
def test_float16_stays_where_a_device_widens_it_at_once(target, expected):
    assert weight_types(built("float16", Target(target, host="llvm"))) == expected


def test_weights_that_are_no_halves_stay_wide():
    x = relay.var("x", shape=(4, 16))
    exact = relay.const(np.full((8, 16), 0.5, "float32"))
    body = relay.nn.dense(x, exact)  # of a model without any narrow tensor
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    assert weight_types(relay.build(mod, Target("cuda", host="llvm"))) == {"float32"}

    narrow = relay.var("narrow", shape=(4, 16), dtype="float16")
    third = relay.const(np.full((8, 16), 1 / 3, "float32"))
    body = relay.nn.dense(relay.cast(narrow, "float32"), third)
    mod = tvm.IRModule.from_expr(relay.Function([narrow], body))
    assert weight_types(relay.build(mod, Target("cuda", host="llvm"))) == {"float32"}
