"""Shapes and values where there are no elements."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import SlipwayError
from slipway.relay.ops.tensor.shape import reshaped
from slipway.runtime.graph import graph_executor


@pytest.mark.parametrize(
    ("shape", "new"),
    [((0, 3), (3, 0)), ((1, 0), (0,)), ((2, 0, 4), (0, 4)), ((0,), (5, 0, 2)), ((0, 3), (1, 0, 1))],
)
def test_a_zero_that_no_axis_can_have_given_is_an_empty_axis(shape, new):
    assert reshaped(shape, new) == np.zeros(shape).reshape(new).shape


def test_a_zero_still_copies_an_axis():
    assert reshaped((2, 0, 4), (0, 0, 2, 2)) == (2, 0, 2, 2)
    assert reshaped((2, 0, 4), (0, -2)) == (2, 0, 4)
    assert reshaped((2, 3), (0, 3)) == (2, 3)
    with pytest.raises(SlipwayError, match="no axis 2"):
        reshaped((2, 3), (2, 3, 0))


X, IMAGE = relay.var("x", shape=(0, 3)), relay.var("image", shape=(1, 3, 0, 5))
PLACES = relay.var("places", shape=(2, 3), dtype="int64")
READING = {
    "take": lambda: relay.take(X, PLACES, 0),
    "take, flat": lambda: relay.take(X, PLACES),
    "take, fast": lambda: relay.take(X, PLACES, 0, mode="fast"),
    "gather": lambda: relay.gather(X, 0, PLACES),
    "gather_nd": lambda: relay.gather_nd(X, PLACES),
    "edge": lambda: relay.nn.pad(X, ((1, 1), (0, 0)), 0, "edge"),
    "resize": lambda: relay.image.resize2d(IMAGE, (4, 5)),
    "resize, nearest": lambda: relay.image.resize2d(IMAGE, (4, 5), method="nearest_neighbor"),
    "grid": lambda: relay.image.grid_sample(IMAGE, relay.var("grid", shape=(1, 2, 4, 4))),
}


@pytest.mark.parametrize("name", READING)
def test_nothing_is_read_from_no_elements(name):
    """A kernel would read beside the tensor."""
    with pytest.raises(SlipwayError, match="no elements"):
        assert READING[name]().tensor_type


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_pools_of_nothing(target):
    function = relay.Function(
        [IMAGE], relay.Tuple([relay.nn.global_max_pool2d(IMAGE), relay.nn.global_avg_pool2d(IMAGE)])
    )
    library = relay.build(tvm.IRModule.from_expr(function), target=target)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.set_input("image", np.zeros((1, 3, 0, 5), "float32"))
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy().ravel(), [-np.inf] * 3)
    np.testing.assert_array_equal(module.get_output(1).numpy().ravel(), [np.nan] * 3)


def test_nothing_may_be_read_as_nothing():
    none = relay.var("none", shape=(0, 3), dtype="int64")
    assert relay.take(X, none, 0).tensor_type.shape == (0, 3, 3)
    assert relay.nn.pad(X, ((0, 0), (1, 1)), 0, "edge").tensor_type.shape == (0, 5)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_a_position_in_no_elements_is_refused_where_one_is_asked_for(name):
    x = relay.var("x", shape=(0, 3))
    with pytest.raises(SlipwayError, match="there is no position in no elements"):
        assert getattr(relay, name)(x, 0).tensor_type
