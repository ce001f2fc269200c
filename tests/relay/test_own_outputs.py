"""OwnOutputs: whatever the results of a model are, each has memory of its own."""

import numpy as np
import pytest

from slipway import relay
from slipway.ir.function import IRModule
from slipway.runtime import cpu
from slipway.runtime import ndarray as nd
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.transform.context import PassContext
from slipway.transform.graph.own_outputs import own_outputs

SHAPE = (2, 3, 4)


def results():
    x = relay.var("x", shape=SHAPE)
    y = relay.exp(x)
    parts = relay.split(x, 2, axis=2)
    pair = relay.Tuple([x, y])
    flat = relay.reshape(x, (6, 4))
    return x, {
        "reshape": relay.reshape(y, (6, 4)),
        "chain": relay.squeeze(relay.expand_dims(relay.nn.batch_flatten(y), 0)),
        "dense": relay.reshape(relay.nn.dense(flat, relay.const(np.eye(4, dtype="f4"))), SHAPE),
        "also read": relay.Tuple([relay.expand_dims(y, 0), relay.sum(y), relay.exp(y)]),
        "under two shapes": relay.Tuple([relay.reshape(y, (6, 4)), y]),
        "twice": relay.Tuple([y, y]),
        "input": x,
        "input reshaped": relay.reshape(x, (24,)),
        "constant": relay.Tuple([relay.const(np.ones((2, 2), "float32")), y]),
        "nested": relay.Tuple([relay.Tuple([x, y]), y]),
        "one field twice": relay.Tuple([parts[0], parts[0], parts[1]]),
        "fields of a tuple": relay.Tuple(
            [relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1), y]
        ),
        "a call's tuple": parts.astuple(),
        "scalar": relay.sum(y),
        "empty": relay.Tuple([y, relay.strided_slice(x, [0, 0, 0], [2, 0, 4])]),
    }


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("name", list(results()[1]))
def test_bound_outputs_are_written(name, opt_level):
    x, made = results()
    with PassContext(opt_level=opt_level):
        lib = relay.build(IRModule.from_expr(relay.Function([x], made[name])), "llvm")
    model, plain = GraphModule(lib["default"](cpu(0))), GraphModule(lib["default"](cpu(0)))
    data = np.random.default_rng(0).normal(size=SHAPE).astype("float32")
    bound = [nd.array(np.full(shape, 7, dtype)) for shape, dtype in model.get_output_info()]
    for index, buffer in enumerate(bound):
        model.set_output_zero_copy(index, buffer)
    own = nd.array(data)
    model.set_input_zero_copy("x", own)  # afterwards: it must not move the outputs back
    model.run()
    plain.run(x=data)
    for index, buffer in enumerate(bound):
        np.testing.assert_array_equal(buffer.numpy(), plain.get_output(index).numpy())
        np.testing.assert_array_equal(buffer.numpy(), model.get_output(index).numpy())
    np.testing.assert_array_equal(own.numpy(), data)


def test_a_tuple_input_is_copied():
    pair = relay.TupleType([relay.TensorType((2,)), relay.TensorType((3,))])
    given = relay.Var("t", pair)
    for body in (given, relay.TupleGetItem(given, 1)):
        owned = own_outputs(relay.Function([given], body))
        assert owned.body is not body
        assert owned.ret_type == body.checked_type


def test_fresh_results_are_kept():
    x, made = results()
    for name in ("reshape", "a call's tuple", "scalar", "also read"):
        function = relay.Function([x], made[name])
        assert own_outputs(function) is function
