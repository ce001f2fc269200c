"""Matches are replaced, or become functions; what they compute stays."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import LoweringError
from slipway.relay.dataflow_pattern import (
    DFPatternCallback,
    is_constant,
    is_op,
    partition,
    rewrite,
    wildcard,
)
from slipway.relay.interpret import interpret


def net(channels=4):
    x = relay.var("x", shape=(1, 4, 6, 6))
    rng = np.random.default_rng(0)
    y = x
    for _ in range(3):
        w = relay.const(rng.standard_normal((channels, 4, 3, 3)).astype("float32"))
        b = relay.const(rng.standard_normal(channels).astype("float32"))
        y = relay.nn.bias_add(relay.nn.conv2d(y, w, padding=1), b)
        y = relay.add(relay.nn.relu(y), x)
    return relay.Function((x,), y)


DATA = np.random.default_rng(1).standard_normal((1, 4, 6, 6)).astype("float32")


def conv_bias_relu():
    y = is_op("nn.conv2d")(wildcard(), is_constant())
    y = is_op("nn.bias_add")(y, wildcard())
    return is_op("nn.relu")(y)


def functions(expr):
    return [e for e in relay.analysis.post_order(expr) if isinstance(e, relay.Function)]


def test_partitions_compute_the_same_and_hold_their_constants():
    function = net()
    made = conv_bias_relu().partition(function, {"Composite": "conv"})
    parts = [f for f in functions(made) if f.attr("Composite") == "conv"]
    assert len(parts) == 3
    # The weight is asked for as a constant, the bias is whatever there is: it becomes a parameter.
    assert all(len(p.params) == 2 for p in parts)
    assert parts[0].attrs["PartitionedFromPattern"] == "nn.conv2d_nn.bias_add_nn.relu_"
    np.testing.assert_allclose(interpret(made, DATA), interpret(function, DATA), rtol=1e-6)


def test_check_sees_the_result_and_may_refuse():
    seen = []
    made = partition(
        conv_bias_relu(), net(), check=lambda e: not seen.append(e.op.name) and len(seen) == 2
    )
    assert seen == ["nn.relu"] * 3
    assert len(functions(made)) == 2  # the net and one part


def test_a_value_used_outside_is_not_cut_in():
    x = relay.var("x", shape=(2,))
    inner = relay.exp(x)
    y = relay.add(relay.nn.relu(inner), inner)
    pattern = is_op("nn.relu")(is_op("exp")(wildcard()))
    assert pattern.match(relay.nn.relu(inner))
    assert pattern.partition(y) is y


def test_groups_do_not_overlap():
    x = relay.var("x", shape=(2,))
    y = x
    for _ in range(5):
        y = relay.exp(y)
    made = is_op("exp")(is_op("exp")(wildcard())).partition(relay.Function((x,), y))
    assert len(functions(made)) == 3


def test_an_earlier_part_is_not_looked_into():
    pattern = is_op("nn.bias_add")(is_op("nn.conv2d")(None), wildcard())
    made = conv_bias_relu().partition(net())
    assert pattern.partition(made) is made


class Gelu(DFPatternCallback):
    """x * sigmoid(1.702 x) in place of exact terms, to see the map of the parts."""

    def __init__(self, **options):
        super().__init__(**options)
        self.x = wildcard()
        self.pattern = is_op("nn.relu")(self.x)

    def callback(self, pre, post, node_map):
        assert pre.op == relay.op.get("nn.relu")
        x = node_map[self.x][0]
        assert post.args[0] is x
        return relay.maximum(x, relay.const(0.0))


def test_replacements_nest_and_end():
    function = net()
    made = rewrite(Gelu(), function)
    assert relay.analysis.list_op_freqs(made).get("nn.relu") is None
    assert relay.analysis.list_op_freqs(made)["maximum"] == 3
    np.testing.assert_allclose(interpret(made, DATA), interpret(function, DATA), rtol=1e-6)
    assert Gelu().rewrite(made) is made


class Twice(DFPatternCallback):
    def __init__(self, once):
        super().__init__(rewrite_once=once)
        self.pattern = is_op("exp")(wildcard())

    def callback(self, pre, post, node_map):
        return relay.exp(relay.add(post.args[0], relay.const(1.0)))


def test_a_replacement_that_matches_itself():
    x = relay.var("x", shape=(2,))
    made = rewrite(Twice(True), relay.exp(x))
    assert relay.analysis.list_op_freqs(made) == {"add": 1, "exp": 1}
    with pytest.raises(LoweringError, match=r"Twice still replaces.*rewrite_once"):
        rewrite(Twice(False), relay.exp(x))


def test_several_callbacks_work_together():
    x = relay.var("x", shape=(1, 4, 6, 6))
    made = rewrite([Twice(True), Gelu()], relay.nn.relu(relay.exp(relay.nn.relu(x))))
    assert relay.analysis.list_op_freqs(made) == {"maximum": 2, "add": 1, "exp": 1}


def test_a_callback_that_gives_no_expression_is_named():
    callback = Gelu()
    callback.callback = lambda pre, post, node_map: None
    with pytest.raises(LoweringError, match="callback of Gelu returned NoneType"):
        rewrite(callback, net())
