"""Questions about graphs."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import TypeInferenceError


def net():
    x = relay.var("x", shape=(2, 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, padding=1))
    y = relay.nn.dense(relay.nn.batch_flatten(y), relay.var("v", shape=(5, 256)))
    return relay.nn.softmax(y).as_function()


def test_multiply_adds_are_those_of_the_products():
    want = 2 * 4 * 8 * 8 * 27 + 2 * 5 * 256
    assert relay.analysis.get_total_mac_number(net()) == want
    with pytest.raises(TypeInferenceError, match="InferType"):
        relay.analysis.get_total_mac_number(
            relay.nn.conv2d(relay.var("a"), relay.var("b")).as_function()
        )


def test_variables_free_and_bound():
    function = net()
    a = relay.analysis
    assert a.free_vars(function) == []
    assert [v.name for v in a.bound_vars(function)] == ["x", "w", "v"]
    assert [v.name for v in a.all_vars(function.body)] == ["x", "w", "v"]
    assert a.free_vars(function.body) == list(function.params)


def test_a_variable_belongs_to_one_function():
    x = relay.var("x", shape=(2,))
    inner = relay.Function((x,), relay.exp(x))
    assert relay.analysis.well_formed(inner)
    assert not relay.analysis.well_formed(relay.Function((x,), inner(x)))
    assert not relay.analysis.well_formed(relay.Function((), relay.exp(x)))


def test_layers_are_counted_along_the_deepest_way():
    mod, _ = relay.testing.resnet.get_workload(1, 10, 8, (3, 16, 16))
    # The first convolution and two in each of three units; shortcuts lie beside them.
    assert relay.analysis.count_layers(mod["main"], ["nn.conv2d"]) == 7
    assert relay.analysis.list_op_freqs(mod)["nn.conv2d"] == 9 + 1
    assert relay.analysis.count_layers(mod, ["nn.dense"]) == 1


def test_order_and_dtypes():
    x = relay.var("x", shape=(2,))
    y = relay.cast(x, "int8")
    seen = []
    relay.analysis.post_order_visit(y, seen.append)
    assert seen == [x, y.op, y]
    assert relay.analysis.all_dtypes(y) == {"float32", "int8"}
    assert relay.analysis.check_constant(relay.Tuple((relay.const(1), relay.const(2))))
    assert not relay.analysis.check_constant(x)


def test_an_array_of_the_runtime_is_a_constant():
    from slipway import nd

    value = relay.Constant(nd.array(np.arange(3, dtype="float32")))
    assert value.checked_type == relay.TensorType((3,), "float32")
    assert value.data.numpy().tolist() == [0, 1, 2]
