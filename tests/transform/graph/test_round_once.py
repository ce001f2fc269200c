"""RoundOnce: chains of operators on bfloat16 round at their ends, and only there."""

import ml_dtypes
import numpy as np

import slipway
from slipway import relay
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.precision.round_once import round_once

RNG = np.random.default_rng(0)


def const(*shape):
    return relay.const(RNG.standard_normal(shape).astype(ml_dtypes.bfloat16))


def var(*shape, dtype="bfloat16"):
    return relay.var("x", shape=shape, dtype=dtype)


def rounded(x, body):
    return round_once(infer_type(relay.Function([x], body)))


def kinds(function):
    return [
        (e.op.name, e.tensor_type.dtype) for e in post_order(function) if is_call_of(e, *OPERATORS)
    ]


OPERATORS = ("cast", "add", "nn.relu", "nn.dense", "reshape", "sigmoid", "nn.softmax")


def test_a_chain_is_float32_with_a_cast_at_each_end():
    x = var(2, 8)
    made = rounded(x, relay.nn.relu(relay.add(x, const(8))))
    assert kinds(made) == [
        ("cast", "float32"), ("add", "float32"), ("nn.relu", "float32"), ("cast", "bfloat16"),
    ]  # fmt: skip


def test_the_result_is_that_of_float32_rounded():
    x, bias = var(2, 8), const(8)
    data = RNG.standard_normal((2, 8)).astype(ml_dtypes.bfloat16)
    made = rounded(x, relay.sigmoid(relay.add(x, bias)))
    wide = data.astype("float32") + bias.array.astype("float32")
    wanted = (1 / (1 + np.exp(-wide))).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(interpret(made, data), wanted)


def test_what_a_product_reads_is_rounded_for_all():
    x, weight = var(4, 8), const(8, 8)
    hidden = relay.add(x, const(8))
    made = rounded(x, relay.add(hidden, relay.nn.dense(hidden, weight)))
    dense = next(e for e in post_order(made) if is_call_of(e, "nn.dense"))
    assert dense.args[0].tensor_type.dtype == "bfloat16"
    (total,) = made.body.args  # the sum, in float32, of two values that were rounded
    assert total.args[0].args[0] is dense.args[0]


def test_a_move_follows_its_only_reader():
    x = var(2, 8, dtype="bfloat16")
    softmax = rounded(x, relay.nn.softmax(relay.reshape(relay.nn.relu(x), (4, 4))))
    assert ("reshape", "float32") in kinds(softmax)
    dense = rounded(x, relay.nn.dense(relay.reshape(relay.nn.relu(x), (4, 4)), const(4, 4)))
    assert ("reshape", "bfloat16") in kinds(dense)


def test_other_types_stay():
    x = var(2, 8, dtype="float32")
    function = infer_type(relay.Function([x], relay.nn.relu(relay.add(x, x))))
    assert round_once(function) is function


def test_chains_of_float16_round_once_too():
    x = var(2, 8, dtype="float16")
    made = rounded(x, relay.sigmoid(relay.nn.relu(x)))
    assert kinds(made) == [
        ("cast", "float32"), ("nn.relu", "float32"), ("sigmoid", "float32"), ("cast", "float16"),
    ]  # fmt: skip


def test_a_kernel_that_the_module_has_stays():
    x = var(2, 8, dtype="float32")
    inner = var(2, 8, dtype="float32")
    body = relay.cast(relay.nn.softmax(inner), "float16")
    kernel = relay.Function([inner], body).with_attr("Primitive", 1)
    made = rounded(x, relay.add(kernel(x), relay.const(np.float16(1))))
    given = RNG.standard_normal((2, 8)).astype("float32")
    wanted = interpret(relay.Function([x], relay.add(kernel(x), relay.const(np.float16(1)))), given)
    np.testing.assert_array_equal(interpret(made, given), wanted)
    found = relay.create_executor("graph", mod=slipway.IRModule.from_expr(made)).evaluate()(given)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3)


def test_variables_have_the_types_of_a_called_kernel():
    x, weight = relay.var("x", shape=(1, 3, 8, 8)), relay.var("weight")
    data, kernel = relay.var("data", shape=(1, 3, 8, 8)), relay.var("kernel")
    conv = relay.nn.conv2d(data, kernel, channels=4, kernel_size=(3, 3))
    inner = relay.Function([data, kernel], conv).with_attr("Primitive", 1)
    typed = infer_type(relay.Function([x, weight], inner(x, weight)))
    assert str(typed.params[1].type) == "Tensor[(4, 3, 3, 3), float32]"


def test_largest_and_smallest_values_are_found_in_float32():
    x = var(4, 6)
    for reduce in (relay.max, relay.min):
        made = rounded(x, reduce(x, axis=1))
        names = [e.op.name for e in post_order(made) if hasattr(e, "op")]
        assert names == ["cast", reduce.__name__, "cast"]
        given = RNG.standard_normal((4, 6)).astype(ml_dtypes.bfloat16)
        given[1, 2], given[2, 3] = np.nan, np.inf
        wanted = interpret(relay.Function([x], reduce(x, axis=1)), given)
        wide = wanted.astype("float32")
        np.testing.assert_array_equal(interpret(made, given).astype("float32"), wide)
        module = slipway.IRModule.from_expr(relay.Function([x], reduce(x, axis=1)))
        found = relay.create_executor("graph", mod=module).evaluate()(given).numpy()
        np.testing.assert_array_equal(found.astype("float32"), wide)
