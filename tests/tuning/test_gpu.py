"""Kernels of a GPU are measured on it, and those of the processor beside it keep their choices."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.tuning.database import Database
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
