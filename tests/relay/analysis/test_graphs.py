"""Questions about graphs."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.ir.function import IRModule
from slipway.relay import analysis


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


def test_intermediate_values():
    x = relay.var("x", shape=(4, 2))
    parts = relay.split(relay.nn.relu(x), 2, axis=0)
    mod = IRModule.from_expr(relay.Function([x], parts[0] + parts[1]))
    infer = relay.transform.InferType()
    made = [infer(analysis.extract_intermdeiate_expr(mod, n)) for n in range(5)]
    kinds = [str(module["main"].ret_type) for module in made]
    part = "Tensor[(2, 2), float32]"
    assert kinds == ["Tensor[(4, 2), float32]", f"({part}, {part})", part, part, part]
    with pytest.raises(ValueError, match="expr_id is 5, and the graph has 5 values"):
        analysis.extract_intermdeiate_expr(mod, 5)


def test_operators_between_quantised_values():
    x = relay.var("x", shape=(2, 4), dtype="int8")
    one, zero = relay.const(1.0), relay.const(0)
    y = relay.nn.relu(relay.qnn.op.dequantize(x, one, zero))
    y = relay.qnn.op.dequantize(relay.qnn.op.quantize(y, one, zero), one, zero)
    w = relay.qnn.op.dequantize(relay.const(np.ones((3, 4), "int8")), one, zero)
    y = relay.qnn.op.quantize(relay.nn.dense(y, w), one, zero)
    other = relay.qnn.op.quantize(relay.exp(relay.var("y", shape=(2, 3))), one, zero)
    mod = IRModule.from_expr(relay.Tuple([y, other]))
    found = analysis.list_fake_quantized_op_freqs(mod)
    assert {name: n for name, n in found.items() if n} == {"nn.relu": 1, "nn.dense": 1}


def test_kernels_of_a_module_that_has_none():
    x = relay.var("x", shape=(2, 3))
    mod = IRModule.from_expr(relay.Function([x], relay.exp(relay.nn.relu(x))))
    (kernel,) = analysis.extract_fused_functions(mod).values()
    assert analysis.list_op_freqs(kernel) == {"nn.relu": 1, "exp": 1}


def test_functions_of_a_module_are_known_by_name():
    kind = relay.FuncType([], relay.TensorType((), "float32"))
    one, typed = relay.GlobalVar("f"), relay.GlobalVar("f", kind)
    assert one == typed
    assert {typed: 1}[one] == 1
    assert one != relay.GlobalVar("g")
