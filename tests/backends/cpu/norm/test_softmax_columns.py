"""Softmax along an axis that others lie inside of: which vectors it takes, and its numbers."""

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.schedules.norm.columns import apart, covering
from slipway.backends.primitive import schedule_primitive
from slipway.target import Target

SHAPES = [
    ((3, 192, 12), 1), ((5, 23, 6), 1), ((2, 9, 3), 1), ((2, 17, 15), 1), ((2, 5, 16), 1),
    ((2, 7, 33), 1), ((2, 11, 127), 1), ((3, 4, 200), 1), ((7, 13, 2), 0), ((2, 3, 4, 5), 1),
    ((4, 2, 2), 1), ((2, 1, 9), 1), ((3, 30, 20), 1), ((2, 3, 24), 1),
]  # fmt: skip


@pytest.mark.parametrize(("width", "lanes"), [(48, 16), (50, 16), (7, 16), (16, 8), (1, 4)])
def test_vectors_take_all_elements(width, lanes):
    once = [at + n for at, count in apart(width, lanes) for n in range(count)]
    assert once == list(range(width))
    assert {at + n for at, count in covering(width, lanes) for n in range(count)} == set(once)


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_softmax_of_columns(target, shape, axis):
    x = var("x", *shape)
    run(relay.nn.softmax(x, axis=axis), target)
    run(relay.nn.log_softmax(x, axis=axis), target)
    run(relay.nn.relu(relay.nn.softmax(relay.tanh(x), axis=axis)), target)


@pytest.mark.parametrize(("shape", "axis"), [((3, 40, 12), 1), ((2, 30, 50), 1)])
def test_halves_are_computed_in_float32(shape, axis):
    x = relay.var("x", shape=shape, dtype="float16")
    body = relay.nn.softmax(x, axis=axis)
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    model = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    data = np.random.default_rng(0).standard_normal(shape).astype("float16") * 8
    model.run(x=data)
    wide = np.exp(data.astype("float64") - data.max(axis, keepdims=True))
    wanted = wide / wide.sum(axis, keepdims=True)
    np.testing.assert_allclose(model.get_output(0).numpy(), wanted, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("shape", [(3, 40, 12), (2, 30, 50)])
def test_infinities_and_what_is_no_number(shape):
    """A column of NaN stays alone; what is minus infinity has no share."""
    x = relay.var("x", shape=shape)
    library = relay.build(
        tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x, axis=1))), "llvm"
    )
    model = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    data = np.random.default_rng(1).standard_normal(shape).astype("float32")
    data[0, 3:, 2], data[1, 5, 7] = -np.inf, np.nan
    model.run(x=data)
    found = model.get_output(0).numpy()
    assert (found[0, 3:, 2] == 0).all()
    assert np.isnan(found[1, :, 7]).all()
    assert np.isnan(found).sum() == shape[1]
    np.testing.assert_allclose(found[0].sum(0), 1, rtol=1e-5)


@pytest.mark.parametrize(("shape", "vector"), [((14, 192, 12), 16), ((4, 64, 127), 16)])
def test_columns_are_whole_vectors(shape, vector):
    body = relay.nn.softmax(var("x", *shape), axis=1)
    kernel = schedule_primitive(
        body.as_function().with_attr("Primitive", 1), Target("llvm -mcpu=znver4")
    )
    assert kernel.choice.strategy.name == "softmax.columns"
    text = str(tvm.lower(kernel.schedule, list(kernel.args), simple_mode=True))
    assert f"range({vector})" in text
