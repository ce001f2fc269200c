"""Shapes and values where there are no elements."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import SlipwayError
from slipway.relay.ops.tensor.shape import reshaped


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


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_a_position_in_no_elements_is_refused_where_one_is_asked_for(name):
    x = relay.var("x", shape=(0, 3))
    with pytest.raises(SlipwayError, match="there is no position in no elements"):
        assert getattr(relay, name)(x, 0).tensor_type
