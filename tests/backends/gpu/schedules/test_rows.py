"""Softmax, norms and reductions of rows in one kernel, on PoCL and watched for races."""

import numpy as np
import pytest
import run_kernels

import slipway as tvm
from slipway import relay
from slipway.backends.gpu.schedules import rows
from slipway.backends.gpu.schedules.rows import RowOfThreadsKnobs, Rows, row_cost
from slipway.contrib import graph_executor
from slipway.target import Target

IN_STEP = "-thread_warp_size=32 -max_threads_per_block=256"
WARPS = Target(f"cuda {IN_STEP}", host="llvm")


def softmax(x, axis=-1):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def normal(x, axis):
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


CASES = {
    "softmax": (lambda x: relay.nn.softmax(x), (7, 90), softmax),
    "middle": (lambda x: relay.nn.softmax(x, axis=1), (2, 40, 5), lambda x: softmax(x, 1)),
    "one row": (lambda x: relay.nn.log_softmax(x), (1, 70), lambda x: np.log(softmax(x))),
    "epilogue": (
        lambda x: relay.nn.relu(relay.nn.softmax(x) - relay.const(0.02)), (20, 40),
        lambda x: np.maximum(softmax(x) - 0.02, 0),
    ),
    "layer norm": (
        lambda x: relay.nn.layer_norm(x, relay.const(np.ones(48, "float32")),
                                      relay.const(np.full(48, 2, "float32"))),
        (3, 6, 48), lambda x: normal(x, -1) + 2,
    ),
    "instance norm": (
        lambda x: relay.nn.instance_norm(x, relay.const(np.ones(5, "float32")),
                                         relay.const(np.zeros(5, "float32"))),
        (2, 5, 6, 7), lambda x: normal(x, (2, 3)),
    ),
    "sum": (lambda x: relay.sum(x, axis=(1, 2)), (5, 6, 11), lambda x: x.sum((1, 2))),
    "all": (lambda x: relay.mean(x), (6, 50), lambda x: x.mean()),
    "kept": (lambda x: relay.max(x, axis=-1, keepdims=True), (9, 33), lambda x: x.max(1)[:, None]),
    "pool": (lambda x: relay.nn.global_avg_pool2d(x), (2, 9, 6, 6),
             lambda x: x.mean((2, 3), keepdims=True)),
}  # fmt: skip


def compiled(body, shape, target):
    x = relay.var("x", shape=shape)
    return relay.build(tvm.IRModule.from_expr(relay.Function([x], body(x))), target=target)


def run(library, device, x):
    module = graph_executor.GraphModule(library["default"](device))
    module.run(x=x)
    return module.get_output(0).numpy()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("options", ["", IN_STEP])
def test_rows_on_opencl(device, name, options):
    body, shape, reference = CASES[name]
    x = run_kernels.random(*shape)
    found = run(compiled(body, shape, Target(f"opencl {options}", host="llvm")), device, x)
    np.testing.assert_allclose(found, reference(x.astype("float64")), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("knobs", [(1, 8), (8, 4), (32, 1), (64, 2)])
def test_rows_do_not_race(simulators, monkeypatch, knobs):
    monkeypatch.setattr(rows, "legal_knobs", lambda target: [RowOfThreadsKnobs(*knobs)])
    simulator = simulators("ll")
    simulator.enter()
    for name in ("softmax", "epilogue", "layer norm", "kept"):
        body, shape, reference = CASES[name]
        library = compiled(body, shape, WARPS)
        simulator.learn(library.lib.imported_modules[0])
        x = run_kernels.random(*shape)
        found = run(library, tvm.cuda(0), x)
        np.testing.assert_allclose(found, reference(x.astype("float64")), rtol=1e-5, atol=1e-5)
    simulator.leave()


@pytest.mark.parametrize("rows_", [1, 5])
@pytest.mark.parametrize("columns", [70, 333])
def test_products_of_few_rows_share_their_sums(simulators, device, rows_, columns):
    """With an epilogue and without, on PoCL and watched for races; neighbours read neighbours."""
    depth = 77
    x, w = relay.var("x", shape=(rows_, depth)), run_kernels.random(columns, depth, seed=1)
    bias = run_kernels.random(columns, seed=2)
    product = relay.nn.dense(x, relay.const(w))
    given = run_kernels.random(rows_, depth)
    sums = given.astype("float64") @ w.T.astype("float64")
    cases = [(product, sums)]
    epilogue = relay.nn.relu(relay.nn.bias_add(product, relay.const(bias)))
    cases.append((epilogue, np.maximum(sums + bias, 0)))
    simulator = simulators("ll")
    for body, wanted in cases:
        module = tvm.IRModule.from_expr(relay.Function([x], body))
        library = relay.build(module, target=Target(f"opencl {IN_STEP}", host="llvm"))
        text = library.lib.imported_modules[0].get_source()
        assert len(library.compiled.device.kernels) == 1
        assert "__local float" in text
        np.testing.assert_allclose(run(library, device, given), wanted, rtol=1e-5, atol=1e-4)
        library = relay.build(module, target=WARPS)
        simulator.enter()
        simulator.learn(library.lib.imported_modules[0])
        np.testing.assert_allclose(run(library, tvm.cuda(0), given), wanted, rtol=1e-5, atol=1e-4)
        simulator.leave()


@pytest.mark.parametrize("name", ["softmax", "sum", "layer norm"])
def test_a_row_is_combined_once_whatever_its_length(name):
    """The parts of a row were combined again for every step of the loop over it."""
    shape = {"softmax": (4, 2000), "sum": (4, 20, 50), "layer norm": (3, 6, 48)}[name]
    force = {"strategy": "threads.rows", "lanes": 8}
    config = {"schedules.force": dict.fromkeys(("nn.softmax", "sum", "nn.layer_norm"), force)}
    with tvm.transform.PassContext(opt_level=3, config=config):
        library = compiled(CASES[name][0], shape, WARPS)
    lines = library.lib.imported_modules[0].get_source("cuda").splitlines()
    loops = [k for k, line in enumerate(lines) if line.lstrip().startswith("for (")]
    assert loops
    for first in loops:
        indent = lines[first][: -len(lines[first].lstrip())]
        last = lines.index(indent + "}", first)
        assert not any("__syncthreads" in line for line in lines[first:last])


@pytest.mark.parametrize(
    ("shape", "options", "kernels"),
    [
        ((64, 1000), "", 1),
        ((64, 1000), IN_STEP, 1),
        ((1, 10), "", 1),  # three kernels would start later than a thread ends
        ((1, 1000), "", 5),  # parts of the maximum and the sum, these, and the quotients
        ((64, 9000), "", 5),  # too long a sum for one thread
    ],
)
def test_a_softmax_is_one_kernel_unless_a_thread_is_slower(shape, options, kernels):
    target = Target(f"opencl {options}", host="llvm")
    library = compiled(CASES["softmax"][0], shape, target)
    assert len(library.compiled.device.kernels) == kernels


def test_long_rows_have_more_threads_than_short_ones():
    legal = rows.legal_knobs(WARPS)
    assert all(k.lanes * k.rows <= 256 for k in legal)

    def best(count, length):
        rows = Rows(count, length, together=True)
        return min(legal, key=lambda knobs: row_cost(rows, knobs))

    assert best(64, 4096).lanes > best(65536, 40).lanes
    assert best(1, 4096).lanes == 256


def test_rows_that_are_no_rows_are_computed_by_elements(device):
    x = run_kernels.random(6, 40)
    library = compiled(  # the softmax is read transposed
        lambda x: relay.transpose(relay.nn.softmax(x)), (6, 40), Target("opencl", host="llvm")
    )
    np.testing.assert_allclose(run(library, device, x), softmax(x).T, rtol=1e-5, atol=1e-6)
