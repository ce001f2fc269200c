"""Dense layers with constant weights: neighbouring threads read contiguous weights."""

import numpy as np
import pytest
from run_kernels import OPENCL, random

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.target import Target


def layer(rows, depth, columns, target, dtype="float32", knobs=None):
    """Compile a layer with a relu behind it; return it and its weights."""
    weights = random(columns, depth).astype(dtype)
    x = relay.var("x", shape=(rows, depth), dtype=dtype)
    body = relay.nn.relu(relay.nn.dense(x, relay.const(weights)))
    config = {"schedules.force": {"nn.matmul": knobs}} if knobs else {}
    with tvm.transform.PassContext(opt_level=3, config=config):
        return relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target), weights


def kernels(lib):
    return lib.lib.imported_modules[0].get_source()


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "dtype"),
    [(16, 128, 7, "float32"), (50, 129, 64, "float32"), (32, 256, 33, "float16")],
)
def test_weights_are_transposed_and_the_numbers_are_right(device, rows, depth, columns, dtype):
    lib, weights = layer(rows, depth, columns, OPENCL, dtype)
    assert "nn_matmul" in kernels(lib)
    module = graph_executor.GraphModule(lib["default"](device))
    x = random(rows, depth, seed=1).astype(dtype)
    module.run(x=x)
    wanted = np.maximum(x.astype("float32") @ weights.astype("float32").T, 0)
    rtol = 1e-5 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=rtol, atol=rtol)


def test_a_product_of_matrices_is_computed_in_tiles():
    tile = {"strategy": "threads.tile", "rows": 4, "columns": 4, "threads": 64}
    default = kernels(layer(64, 128, 64, OPENCL)[0])
    assert default == kernels(
        layer(64, 128, 64, OPENCL, knobs={**tile, "rows": 2, "columns": 2})[0]
    )
    assert default != kernels(layer(64, 128, 64, OPENCL, knobs=tile)[0])


@pytest.mark.parametrize(
    ("rows", "depth", "target"),
    [(8, 256, OPENCL), (32, 64, OPENCL), (64, 256, Target("cuda", host="llvm"))],
)
def test_few_rows_short_sums_and_panels_in_shared_memory_take_rows(rows, depth, target):
    assert "nn_matmul" not in kernels(layer(rows, depth, 64, target)[0])
