"""ToMixedPrecision: which operators take the low type, and that a second run changes nothing."""

import warnings

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import LoweringError
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order

RNG = np.random.default_rng(0)


def const(*shape):
    return relay.const((RNG.standard_normal(shape) * 0.2).astype("float32"))


def var(*shape, dtype="float32"):
    return relay.var("x", shape=shape, dtype=dtype)


def converted(x, body, low="bfloat16", mode=1, config=None):
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    with warnings.catch_warnings(), tvm.transform.PassContext(config=config):
        warnings.simplefilter("error")
        return relay.transform.ToMixedPrecision(low, mode)(mod)


def calls(mod, name):
    return [e for e in post_order(mod["main"]) if is_call_of(e, name)]


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_products_take_the_low_type_and_sum_in_float32(low):
    x = var(1, 8, 6, 6)
    mod = converted(x, relay.nn.relu(relay.nn.conv2d(x, const(4, 8, 3, 3))), low)
    (conv,) = calls(mod, "nn.conv2d")
    assert [a.tensor_type.dtype for a in conv.args] == [low, low]
    assert conv.tensor_type.dtype == "float32"
    assert calls(mod, "nn.relu")[0].tensor_type.dtype == low
    assert mod["main"].body.tensor_type.dtype == low


def test_softmax_and_sums_stay_wide():
    x = var(4, 8)
    mod = converted(x, relay.sum(relay.nn.softmax(relay.nn.dense(x, const(6, 8))), axis=1))
    assert calls(mod, "nn.softmax")[0].tensor_type.dtype == "float32"
    assert mod["main"].body.tensor_type.dtype == "float32"


def test_a_wide_operand_keeps_what_follows_wide():
    x = var(4, 8)
    product = relay.nn.dense(x, const(8, 8))
    mod = converted(x, relay.add(relay.exp(product), product))
    assert calls(mod, "add")[0].tensor_type.dtype == "float32"


def test_integers_are_left():
    x = var(3, dtype="int32")
    mod = converted(x, relay.take(const(10, 4), relay.add(x, relay.const(1, "int32")), axis=0))
    (take,) = calls(mod, "take")
    assert [a.tensor_type.dtype for a in take.args] == ["bfloat16", "int32"]


def test_tuples_of_values_follow():
    x = var(2, 8)
    parts = relay.split(relay.nn.dense(x, const(8, 8)), 2, axis=1)
    mod = converted(x, relay.concatenate([parts[0], relay.nn.relu(parts[1])], axis=1))
    assert mod["main"].body.tensor_type.dtype == "bfloat16"


def test_a_second_run_changes_nothing():
    x = var(4, 8)
    hidden = relay.nn.relu(relay.nn.dense(x, const(8, 8)))
    once = converted(x, relay.nn.softmax(relay.nn.dense(hidden, const(8, 8)) + hidden))
    twice = relay.transform.ToMixedPrecision("bfloat16")(once)
    assert str(twice) == str(once)


def test_outputs_keep_their_type_on_request():
    x = var(4, 8)
    option = {"relay.ToMixedPrecision.keep_orig_output_dtype": True}
    mod = converted(x, relay.nn.dense(x, const(8, 8)), config=option)
    assert mod["main"].body.tensor_type.dtype == "float32"


def test_results_are_near_those_in_float32():
    x = var(4, 32)
    body = relay.nn.softmax(relay.nn.dense(relay.tanh(relay.nn.dense(x, const(16, 32))),
                                           const(8, 16)))  # fmt: skip
    data = RNG.standard_normal((4, 32)).astype("float32")
    wide = interpret(relay.Function([x], body), data)
    low = interpret(converted(x, body)["main"], data)
    np.testing.assert_allclose(low, wide, rtol=0.05)


def test_unknown_operators_raise_warn_or_pass():
    x = var(4, 8)
    body = relay.tan(relay.nn.dense(x, const(8, 8)))
    with pytest.raises(LoweringError, match="tan"):
        converted(x, body, mode=0)
    with pytest.raises(UserWarning, match="tan"):
        converted(x, body, mode=1)
    assert calls(converted(x, body, mode=2), "tan")[0].tensor_type.dtype == "float32"


def test_wrong_arguments_are_named():
    x = var(4)
    with pytest.raises(LoweringError, match="int8"):
        converted(x, relay.nn.relu(x), "int8")
    with pytest.raises(LoweringError, match="missing_op_mode"):
        converted(x, relay.nn.relu(x), mode=7)
