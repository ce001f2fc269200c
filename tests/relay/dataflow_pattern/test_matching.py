"""What looks like a pattern and what does not."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import SlipwayError
from slipway.ir import make_node
from slipway.relay.dataflow_pattern import (
    FunctionPattern,
    dominates,
    has_dtype,
    has_shape,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)

X = relay.var("x", shape=(1, 8, 4, 4))
Y = relay.var("y", shape=(1, 8, 4, 4))
W = relay.const(np.ones((8, 8, 1, 1), "float32"))


def conv(x=X):
    return relay.nn.conv2d(x, W)


def test_leaves():
    assert is_var().match(X)
    assert is_var("x").match(X)
    assert not is_var("y").match(X)
    assert is_constant().match(W)
    assert not is_constant().match(X)
    assert is_expr(relay.const(1.0) + X).match(relay.const(1.0) + X)
    assert not is_expr(relay.const(2.0) + X).match(relay.const(1.0) + X)


def test_calls_take_any_or_certain_arguments():
    assert is_op("nn.conv2d")(wildcard(), is_constant()).match(conv())
    assert is_op("nn.conv2d")(None).match(conv())
    assert not is_op("nn.conv2d")(wildcard()).match(conv())
    assert not is_op("nn.conv2d")(is_constant(), wildcard()).match(conv())
    assert (is_op("nn.relu") | is_op("exp"))(wildcard()).match(relay.exp(X))


def test_one_pattern_twice_is_one_expression():
    z = wildcard()
    assert (z * z).match(relay.multiply(X, X))
    assert not (z * z).match(relay.multiply(X, Y))


@pytest.mark.parametrize(
    ("name", "commutes"),
    [("add", True), ("multiply", True), ("subtract", False), ("divide", False)],
)
def test_sums_and_products_match_in_both_orders(name, commutes):
    pattern = is_op(name)(is_op("exp")(wildcard()), is_var())
    make = getattr(relay, name)
    assert pattern.match(make(relay.exp(X), Y))
    assert pattern.match(make(Y, relay.exp(X))) == commutes


def test_a_choice_made_early_is_taken_back():
    """The sum matches in its first order, but then the shared part does not: the other serves."""
    z = wildcard()
    pattern = is_op("subtract")(is_op("add")(wildcard(), z), z)
    assert pattern.match(relay.subtract(relay.add(X, Y), X))
    assert pattern.match(relay.subtract(relay.add(X, Y), Y))


def test_attributes_types_and_shapes():
    pattern = is_op("nn.conv2d")(wildcard(), wildcard())
    assert pattern.has_attr({"groups": 1, "strides": [1, 1]}).match(conv())
    assert not pattern.has_attr({"groups": 2}).match(conv())
    assert not pattern.has_attr({"no_such": 2}).match(conv())
    own = relay.Call(relay.var("f"), [relay.var("x")], make_node("DictAttrs", groups=1))
    assert wildcard()(wildcard()).has_attr({"groups": 1}).match(own)
    assert not wildcard()(wildcard()).has_attr({"no_such": 1}).match(own)
    assert has_dtype("float32").match(X)
    assert not has_dtype("int8").match(X)
    assert has_shape((1, 8, 4, 4)).match(X)
    assert not wildcard().has_shape((1, 8, 4)).match(X)
    assert wildcard().has_type(X.checked_type).match(Y)


def test_tuples():
    parts = relay.split(X, 2, axis=1)
    split = is_op("split")(wildcard())
    assert is_tuple_get_item(split, 1).match(parts[1])
    assert not is_tuple_get_item(split, 1).match(parts[0])
    assert is_tuple_get_item(split).match(parts[0])
    assert is_tuple([is_var(), wildcard()]).match(relay.Tuple((X, conv())))
    assert is_tuple(None).match(relay.Tuple((X, Y, X)))
    assert not is_tuple([is_var()]).match(relay.Tuple((X, Y)))


def test_if_let_and_function():
    flag = relay.var("flag", shape=(), dtype="bool")
    v = relay.Var("v", X.checked_type)
    assert is_if(is_var(), is_var("x"), is_var("y")).match(relay.If(flag, X, Y))
    assert is_let(is_var("v"), is_op("exp")(wildcard()), is_var("v")).match(
        relay.Let(v, relay.exp(X), v)
    )
    a, b = wildcard(), wildcard()
    assert FunctionPattern([a, b], a + b).match(relay.Function((X, Y), relay.add(X, Y)))
    assert not FunctionPattern([a], a + a).match(relay.Function((X, Y), relay.add(X, X)))


def test_optional_parts():
    pattern = is_op("nn.conv2d")(wildcard(), wildcard()).optional(lambda p: is_op("nn.relu")(p))
    assert pattern.match(conv())
    assert pattern.match(relay.nn.relu(conv()))
    assert not pattern.match(relay.exp(conv()))


def test_every_way_leads_to_the_dominator():
    elemwise = wildcard().has_attr({"TOpPattern": relay.op.OpPattern.ELEMWISE})(wildcard())
    product, total = is_op("nn.conv2d")(None), is_op("add")(wildcard(), wildcard())
    diamond = dominates(product, elemwise, total)
    one, other = conv(), conv(Y)
    assert diamond.match(relay.add(relay.nn.relu(one), relay.exp(relay.nn.relu(one))))
    assert not diamond.match(relay.add(relay.nn.relu(one), relay.exp(other)))
    assert not diamond.match(relay.add(relay.nn.relu(X), relay.exp(one)))
    assert not diamond.match(relay.add(relay.nn.softmax(one), relay.exp(one)))


def test_an_operator_that_there_is_not_is_named():
    with pytest.raises(SlipwayError, match=r"nn\.conv2d"):
        is_op("nn.conv2")
