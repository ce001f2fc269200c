"""Kernels of open sizes are explained, searched and chosen as those of fixed ones are."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.choices import key_of
from slipway.contrib import graph_executor
from slipway.relay.dims import Dim, odd
from slipway.tuning.database import Database
from slipway.tuning.explain import explain_model
from slipway.tuning.runner import LocalRunner
from slipway.tuning.task import extract_tasks
from slipway.tuning.tune import Budget, tune_model

N, H, L = Dim("n", 1, 8), Dim("h", 8, 64), Dim("l", 1, 256)
RNG = np.random.default_rng(0)


def constant(*shape, dtype="float32"):
    return relay.const((RNG.standard_normal(shape) * 3).astype(dtype))


def image(dtype="float32"):
    return relay.var("x", shape=(N, 16, H, H), dtype=dtype)


def rows(dtype="float32"):
    return relay.var("x", shape=(L, 64), dtype=dtype)


def batch():
    return relay.var("x", shape=(N, L, 64))


NN = relay.nn
CASES = {
    "dense": (rows(), lambda x: NN.dense(x, constant(33, 64))),
    "wide_dense": (rows(), lambda x: NN.dense(x, constant(256, 64))),
    "computed_dense": (rows(), lambda x: NN.dense(x, NN.relu(x))),
    "batch_matmul": (batch(), lambda x: NN.batch_matmul(x, x)),
    "conv3x3": (image(), lambda x: NN.conv2d(x, constant(32, 16, 3, 3), padding=(1, 1))),
    "conv1x1": (image(), lambda x: NN.conv2d(x, constant(32, 16, 1, 1))),
    "depthwise": (
        image(), lambda x: NN.conv2d(x, constant(16, 1, 3, 3), padding=(1, 1), groups=16),
    ),
    "grouped": (image(), lambda x: NN.conv2d(x, constant(32, 4, 3, 3), groups=4)),
    "transposed": (image(), lambda x: NN.conv2d_transpose(x, constant(16, 8, 4, 4), (2, 2))),
    "max_pool": (image(), lambda x: NN.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))),
    "mean": (image(), NN.global_avg_pool2d),
    "softmax": (batch(), NN.softmax),
    "sum": (batch(), lambda x: relay.sum(x, axis=1)),
    "argmax": (batch(), lambda x: relay.argmax(x, axis=1)),
    "layer_norm": (batch(), lambda x: NN.layer_norm(x, constant(64), constant(64))),
    "relu": (batch(), NN.relu),
    "transpose": (batch(), lambda x: relay.transpose(x, (0, 2, 1))),
    "resize": (image(), lambda x: relay.image.resize2d(x, (16, 16))),
    "cumsum": (batch(), lambda x: relay.cumsum(x, axis=1)),
    "topk": (batch(), lambda x: relay.topk(x, 3, axis=2, ret_type="values")),
    "int8_dense": (
        rows("int8"),
        lambda x: NN.dense(x, constant(32, 64, dtype="int8"), out_dtype="int32"),
    ),
    "int8_conv": (
        image("int8"),
        lambda x: NN.conv2d(x, constant(32, 16, 3, 3, dtype="int8"), out_dtype="int32"),
    ),
}  # fmt: skip
TARGETS = (
    "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
    "c",
    "opencl",
)


def module_of(case):
    x, body = CASES[case]
    return tvm.IRModule.from_expr(relay.Function([x], body(x)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_every_kernel_has_its_space_and_its_reasons(case, target):
    for each in explain_model(module_of(case), target):
        assert each.chosen.strategy in each.paragraph
        legal = each.task.space.values[each.chosen.strategy]
        assert all(dict(each.chosen.knobs)[name] in values for name, values in legal.items())


def test_a_tile_is_legal_for_all_sizes():
    (task,) = [t for t in extract_tasks(module_of("dense"), TARGETS[0]) if "dense" in t.op]
    assert task.space.values["dense_pack.cut"]["rows"] == (1,)  # l may be 1


def test_a_record_is_of_its_range():
    keys = set()
    for high in (4, 64):
        x = relay.var("x", shape=(Dim("l", 2, high), 64))
        mod = tvm.IRModule.from_expr(relay.Function([x], NN.dense(x, constant(33, 64))))
        (task,) = [t for t in extract_tasks(mod, TARGETS[0]) if "dense" in t.op]
        keys.add(key_of(task.problem))
    assert len(keys) == 2


@pytest.mark.parametrize(("low", "high", "prime"), [(1, 8, 7), (8, 64, 61), (8, 10, 10), (0, 1, 1)])
def test_the_size_that_nothing_divides(low, high, prime):
    dim = Dim("d", low, high)
    assert odd(dim) == prime
    assert odd(dim * 4) == prime * 4
    assert odd(12) == 12


def test_a_model_is_searched_and_its_choices_serve_every_size(tmp_path):
    x = relay.var("x", shape=(Dim("n", 1, 9), 24, 7))
    w = relay.const(RNG.standard_normal((10, 24 * 7)).astype("float32") * 0.1)
    body = NN.softmax(NN.dense(relay.reshape(relay.transpose(x, (0, 2, 1)), (-1, 168)), w))
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    database = Database(tmp_path / "trials.sqlite")
    tasks = tune_model(mod, tvm.target.Target("llvm"), {}, LocalRunner(), database, Budget(4))
    assert len(tasks) >= 2
    assert all(database.trials(task, "local") for task in tasks)
    with database, tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for n in (1, 4, 9):
        data = RNG.standard_normal((n, 24, 7)).astype("float32")
        module.run(x=data)
        product = data.transpose(0, 2, 1).reshape(n, -1).astype("float64") @ w.data.numpy().T
        raised = np.exp(product - product.max(1, keepdims=True))
        np.testing.assert_allclose(
            module.get_output(0).numpy(), raised / raised.sum(1, keepdims=True), 1e-5, 1e-7
        )
