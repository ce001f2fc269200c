"""Kernels of a GPU are measured on it, and those of the processor beside it keep their choices."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.tuning.database import Database
from slipway.tuning.explain_gpu import explain_gpu_model
from slipway.tuning.runner import LocalRunner
from slipway.tuning.task import extract_tasks
from slipway.tuning.tune import Budget, tune_model

RNG = np.random.default_rng(0)


def constant(*shape):
    return relay.const(RNG.standard_normal(shape).astype("float32"))


def recurrent():
    """A convolution, and a loop over its rows, which runs on the processor."""
    x = relay.var("x", shape=(1, 4, 12))
    rows = relay.transpose(relay.nn.conv1d(x, constant(6, 4, 3), padding=(1, 1)), (2, 0, 1))
    state, sample = relay.var("state", shape=(1, 6)), relay.var("sample", shape=(1, 6))
    after = relay.tanh(state + sample)
    body = relay.Function([state, sample], relay.Tuple([after, after]))
    scanned = relay.scan(body, [relay.zeros((1, 6), "float32")], [rows])
    return tvm.IRModule.from_expr(relay.Function([x], scanned[1]))


def test_tasks_are_those_of_the_gpu_in_the_graph_that_is_built():
    target = tvm.target.Target("opencl")
    tasks = extract_tasks(recurrent(), target)
    built = relay.build(recurrent(), target).graph
    there = {name for name, kind in built.kernel_devices.items() if kind == 4}
    assert tasks
    assert {task.name for task in tasks} <= there
    assert "scan" not in {task.op for task in tasks}
    assert any("scan" in name for name in set(built.kernels) - there)


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
def test_a_search_on_a_gpu(kind, tmp_path):
    if not tvm.device(kind, 0).exist:
        pytest.skip(f"no {kind} device: README names the packages that bring one")
    x = relay.var("x", shape=(8, 36))
    w = constant(24, 36)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, w)))
    target = tvm.target.Target(kind)
    database = Database(tmp_path / "trials.sqlite")
    (task,) = tune_model(mod, target, {}, LocalRunner(60.0), database, Budget(6))
    trials = database.trials(task, "local")
    assert len([t for t in trials if t.seconds]) >= 3
    with database, tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target)
    module = graph_executor.GraphModule(lib["default"](tvm.device(kind, 0)))
    data = RNG.standard_normal((8, 36)).astype("float32")
    module.run(x=data)
    np.testing.assert_allclose(module.get_output(0).numpy(), data @ w.data.numpy().T, 1e-4, 1e-4)


def image_model():
    """A convolution, a softmax over its pixels, and a dense layer of one row."""
    x = relay.var("x", shape=(1, 32, 20, 20))
    body = relay.nn.conv2d(x, constant(40, 32, 3, 3), channels=40, kernel_size=(3, 3))
    body = relay.nn.softmax(relay.nn.batch_flatten(body))
    body = relay.nn.dense(body, constant(50, 12960))
    return tvm.IRModule.from_expr(relay.Function([x], body))


@pytest.mark.parametrize("target", ["opencl", "cuda", "vulkan", "webgpu", "metal", "rocm"])
def test_a_kernel_is_explained_by_its_blocks_threads_and_limits(target):
    found = explain_gpu_model(image_model(), target)
    assert {e.task.op for e in found} == {"nn.conv2d", "nn.softmax", "nn.dense"}
    for each in found:
        assert each.chosen.strategy in each.paragraph
        assert each.chosen.strategy not in each.strategies
        for launch in each.launches:
            threads = int(np.prod(launch.threads))
            assert 1 <= threads <= each.values["most_threads"]
            assert launch.shared_bytes <= each.values["most_shared_bytes"]
            assert f"{threads:,} thread" in each.paragraph
    conv = next(e for e in found if e.task.op == "nn.conv2d")
    assert conv.flops == 2 * 40 * 32 * 9 * 18 * 18
    assert conv.bytes == 4 * (32 * 20 * 20 + 40 * 32 * 9 + 40 * 18 * 18)


def test_threads_cover_what_the_default_computes():
    """What is told of the blocks is what the library launches: see `slipway.device.launch`."""
    found = explain_gpu_model(image_model(), "cuda -arch=sm_80")
    conv = next(e for e in found if e.task.op == "nn.conv2d")
    (launch,), knobs = conv.launches, dict(conv.chosen.knobs)
    rows, columns = -(-40 // knobs["block_rows"]), -(-18 * 18 // knobs["block_columns"])
    assert int(np.prod(launch.blocks)) == rows * columns
    sides = knobs["block_rows"] // knobs["rows"], knobs["block_columns"] // knobs["columns"]
    assert int(np.prod(launch.threads)) == sides[0] * sides[1]
    assert launch.shared_bytes > 0
    assert "threads.elements" in conv.strategies


def test_another_choice_is_explained_too():
    force = {"nn.conv2d": {"strategy": "threads.elements", "threads": 16}}
    with tvm.transform.PassContext(opt_level=3, config={"schedules.force": force}):
        found = explain_gpu_model(image_model(), "cuda")
    conv = next(e for e in found if e.task.op == "nn.conv2d")
    assert conv.launches[0].threads == (16, 1, 1)
    assert "threads.shared" in conv.strategies
    assert conv.values["strategy"] == "threads.elements"
