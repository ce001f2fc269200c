"""RemoveDeadChannels: constant channels go, values stay bit for bit."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.expr import Function, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order
from slipway.transform.graph.dead_channels import remove_dead_channels

CONVOLUTIONS = ("qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc")


def layer(data, weight, bias, make, zero=-128, **options):
    """A convolution with its bias, requantised; its zero point is the lowest value."""
    count = weight.shape[-1]
    total = make(data, weight, pad_value=zero, **options)
    total = relay.add(total, np.asarray(bias, np.int32))
    factor = np.full(count, 1500000000, np.int32)
    scaled = relay.qnn.op.rescale(total, factor, np.full(count, -7, np.int32))
    stored = relay.clip(relay.add(scaled, relay.const(zero, "int32")), -128, 127)
    return relay.cast(stored, "int8")


def network(dead, zero=-128):
    """1x1, depthwise 3x3 with a border, 1x1; the filters `dead` of the first are zero."""
    rng = np.random.default_rng(2)

    def ints(*shape):
        return rng.integers(-90, 91, shape).astype(np.int8)

    first = ints(1, 1, 4, 12)
    first[..., dead] = 0
    bias = rng.integers(-900, 900, 12)
    bias[dead] = -5000
    x = Var("x", TensorType((1, 6, 6, 4), "int8"))
    conv, depthwise = relay.qnn.op.conv2d_nhwc, relay.qnn.op.depthwise_conv2d_nhwc
    y = layer(x, first, bias, conv, zero)
    y = layer(y, ints(3, 3, 12), rng.integers(-900, 900, 12), depthwise, zero, padding=(1, 1, 1, 1))
    y = layer(y, ints(1, 1, 12, 5), rng.integers(-900, 900, 5), conv, zero)
    return Function((x,), y)


def filters(function):
    found = post_order(function.body, into_functions=False)
    return sum(e.tensor_type.shape[-1] for e in found if is_call_of(e, *CONVOLUTIONS))


def run(function, value):
    return interpret(function, value)


@pytest.fixture
def value():
    return np.random.default_rng(4).integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)


def test_zero_filters_and_what_reads_only_them_go(value):
    function = network(dead=[1, 5, 6])
    smaller = remove_dead_channels(function)
    assert filters(function) == 12 + 12 + 5
    assert filters(smaller) <= filters(function) - 6
    np.testing.assert_array_equal(run(smaller, value), run(function, value))


def test_a_graph_without_dead_channels_is_the_same_object():
    function = network(dead=[])
    assert remove_dead_channels(function) is function


def test_a_constant_other_than_the_border_stays(value):
    """With a border of another value the depthwise result differs from place to place."""
    function = network(dead=[1, 5, 6], zero=-100)
    smaller = remove_dead_channels(function)
    np.testing.assert_array_equal(run(smaller, value), run(function, value))


def test_one_channel_is_left_when_all_are_dead(value):
    function = network(dead=list(range(12)))
    smaller = remove_dead_channels(function)
    assert filters(smaller) < filters(function)
    np.testing.assert_array_equal(run(smaller, value), run(function, value))


def test_visual_wake_words_loses_half_its_channels(shared):
    path = shared / "models" / "tflite" / "vww_96_int8.tflite"
    if not path.is_file():
        pytest.skip(f"no {path}")
    mod, _ = relay.frontend.from_tflite(str(path))
    with tvm.transform.PassContext(opt_level=3):
        main = relay.transform.RemoveDeadChannels()(mod)["main"]
    assert filters(mod["main"]) == 2736
    assert filters(main) <= 2736 - 1400


@pytest.mark.parametrize("count", [1, 5])
def test_a_scalar_beside_the_convolutions(value, count):
    """A tensor of one element, reshaped to a scalar, has no axis of channels any more."""
    body = network(dead=[1, 5, 6]).body
    x = next(e for e in post_order(body) if isinstance(e, Var))
    whole = relay.reshape(relay.max(body, axis=(0, 1, 2, 3), keepdims=True), ())
    alone = relay.add(whole, relay.const(np.full((count,), 3, np.int8)))
    function = Function((x,), relay.Tuple([body, whole, alone]))
    smaller = remove_dead_channels(function)
    for got, want in zip(run(smaller, value), run(function, value), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (2, 0, 5)])
def test_constants_without_numbers_have_no_range(value, shape):
    """Beside an integer convolution, whose channels are looked at."""
    function = network([0, 3])
    empty = relay.const(np.zeros(shape, np.int32))
    doubled = relay.add(empty, empty)
    both = Function(function.params, relay.Tuple([function.body, doubled]))
    smaller = remove_dead_channels(both)
    got, rest = run(smaller, value)
    np.testing.assert_array_equal(got, run(function, value))
    assert rest.shape == shape
