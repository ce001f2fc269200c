"""Windows of one point with strides copy the rows they read, and only of data that is copied."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order


def kernel(*shape):
    return relay.const(np.random.default_rng(0).standard_normal(shape).astype("float32"))


def altered(body):
    function = body.as_function()
    done = alter_layout(function, 16)
    shapes = [p.checked_type.shape for p in function.params]
    given = [np.random.default_rng(1).standard_normal(s).astype("float32") for s in shapes]
    wanted, found = interpret(function, *given), interpret(done, *given)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
    return [call for call in post_order(done) if isinstance(call, relay.Call)]


def convolutions(calls):
    return [c for c in calls if "conv" in c.op.name]


@pytest.mark.parametrize(
    ("shape", "filters", "groups", "strides", "rows"),
    [
        ((1, 56, 9, 10), 68, 4, (2, 2), (5, 10)),
        ((2, 48, 7, 5), 32, 1, (3, 1), (3, 5)),
        ((1, 32, 5, 4, 6), 16, 1, (2, 3, 2), (3, 2, 6)),
    ],
)
def test_plain_data_loses_rows_before_it_is_copied_into_blocks(
    shape, filters, groups, strides, rows
):
    x = relay.var("x", shape=shape)
    conv = relay.nn.conv2d if len(strides) == 2 else relay.nn.conv3d
    weight = kernel(filters, shape[1] // groups, *[1] * len(strides))
    calls = altered(conv(x, weight, strides=strides, groups=groups))
    (made,) = convolutions(calls)
    assert tuple(made.attrs.strides) == (*[1] * len(rows[1:]), strides[-1])
    assert tuple(made.args[0].tensor_type.shape[2:-1]) == rows


@pytest.mark.parametrize(("strides", "kind"), [((1, 2), "conv2d"), ((2,), "conv1d")])
def test_points_within_a_row_are_left_to_the_convolution(strides, kind):
    x = relay.var("x", shape=(1, 32, *[8] * len(strides)))
    weight = kernel(16, 32, *[1] * len(strides))
    calls = altered(getattr(relay.nn, kind)(x, weight, strides=strides))
    assert not [c for c in calls if c.op.name == "strided_slice"]


def test_data_that_lies_in_blocks_is_read_where_it_lies():
    x = relay.var("x", shape=(1, 16, 8, 8))
    first = relay.nn.relu(relay.nn.conv2d(x, kernel(32, 16, 3, 3), padding=1))
    calls = altered(relay.nn.conv2d(first, kernel(16, 32, 1, 1), strides=2))
    assert [tuple(c.attrs.strides) for c in convolutions(calls)] == [(1, 1), (2, 2)]


def test_a_copy_that_another_reader_needs_whole_serves_both():
    x = relay.var("x", shape=(1, 32, 8, 8))
    short = relay.nn.conv2d(x, kernel(16, 32, 1, 1), strides=2)
    long = relay.nn.conv2d(x, kernel(16, 32, 3, 3), strides=2, padding=1)
    calls = altered(short + long)
    assert not [c for c in calls if c.op.name == "strided_slice"]


def test_padded_windows_of_one_point_stay():
    x = relay.var("x", shape=(1, 32, 8, 8))
    (made,) = convolutions(altered(relay.nn.conv2d(x, kernel(16, 32, 1, 1), strides=2, padding=1)))
    assert tuple(made.attrs.strides) == (2, 2)
