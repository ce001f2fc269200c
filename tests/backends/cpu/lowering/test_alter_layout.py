"""Blocked layouts: the same values, transforms at the edges, channels padded to vectors."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.lowering.alter_layout import alter_layout
from slipway.backends.cpu.lowering.layout_choice import best_block
from slipway.compiler.relay_build import kernel_graph
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.target import Target

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers_in_any_order():
    """Each test draws the same, whatever has run before it in its process."""
    global RNG
    RNG = np.random.default_rng(0)


def weights(*shape):
    return relay.const(RNG.standard_normal(shape).astype("float32"))


def conv(x, channels, size=1, groups=1, **attributes):
    kernel = weights(channels, x.tensor_type.shape[1] // groups, size, size)
    return relay.nn.conv2d(x, kernel, padding=size // 2, groups=groups, **attributes)


def blocked(body, lanes, winograd=False):
    """Return the function in blocks, after a check that it computes the same."""
    function = body.as_function()
    done = alter_layout(function, lanes, winograd)
    inputs = [RNG.standard_normal(p.checked_type.shape).astype("float32") for p in function.params]
    wanted, found = interpret(function, *inputs), interpret(done, *inputs)
    assert found.shape == wanted.shape
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
    return done


def calls(function):
    return [e for e in post_order(function) if isinstance(e, relay.Call)]


def operators(function):
    return [call.op.name for call in calls(function)]


def layouts(function):
    return {call.attrs.out_layout for call in calls(function) if call.op.name.endswith("nchwc")}


@pytest.mark.parametrize(
    ("channels", "lanes", "block"),
    [
        (64, 16, 16), (40, 16, 16), (24, 16, 16), (8, 16, 8), (12, 16, 16), (4, 16, 4),
        (24, 8, 8), (20, 8, 8), (1000, 16, 16), (5, 4, 4), (3, 16, 1), (2, 8, 2),
    ],
)  # fmt: skip
def test_a_block_is_chosen_for_the_fewest_vectors(channels, lanes, block):
    assert best_block(channels, lanes) == block


def test_two_half_vectors_begin_at_once_where_a_whole_one_fills_the_units():
    """Three halves are less than two whole ones; of whole ones the fewest instructions."""
    zen4, skylake = (Target(f"llvm -mcpu={cpu}").core for cpu in ("znver4", "skylake-avx512"))
    for channels, block in ((24, 8), (33, 8), (66, 8), (32, 16), (11, 16), (40, 8), (8, 8), (4, 4)):
        assert best_block(channels, 16, zen4) == block
        assert best_block(channels, 16, skylake) == best_block(channels, 16)


def convolution(channels, filters, side):
    data = relay.var("data", shape=(1, channels, side, side))
    weight = relay.const(np.ones((filters, channels, 5, 5), "float32"))
    return data, relay.nn.conv2d(data, weight, strides=(2, 2), padding=(2, 2))


@pytest.mark.parametrize(
    ("side", "by_channel", "layout"),
    [(28, False, "NCHW8c"), (28, True, "NCHW16c"), (400, False, "NCHW16c")],
)
def test_half_vectors_are_for_products_of_cached_images(side, by_channel, layout):
    """Filters of each channel by itself wait for loads, and so do images from beyond the caches."""
    data, out = convolution(24, 24, side)
    if by_channel:
        weight = relay.const(np.ones((24, 1, 3, 3), "float32"))
        out = relay.nn.conv2d(relay.nn.relu(out), weight, padding=(1, 1), groups=24)
    module = tvm.IRModule.from_expr(relay.Function([data], out))
    with tvm.transform.PassContext(opt_level=3):
        graph = kernel_graph(module, Target("llvm -mcpu=znver4"), {})
    found = {e.attrs.out_layout for f in graph.kernels.values() for e in post_order(f)
             if isinstance(e, relay.Call) and "conv" in getattr(e.op, "name", "")}  # fmt: skip
    assert found == {layout}


@pytest.mark.parametrize(
    ("kernel", "groups", "read"), [(5, 1, "1i"), (3, 1, "2i"), (1, 1, "1i"), (5, 2, "2i")]
)
def test_blocks_of_two_channels_are_for_short_windows(kernel, groups, read):
    """All taps of a long line are unrolled: with two channels of each the sums lose registers."""
    data = relay.var("data", shape=(1, 22 * groups, 14, 14))
    weight = relay.const(np.ones((16 * groups, 22, kernel, kernel), "float32"))
    out = relay.nn.conv2d(data, weight, strides=(2, 2), padding=(kernel // 2,) * 2, groups=groups)
    made = alter_layout(relay.Function([data], out), 8, winograd=True)
    found = [c.attrs.kernel_layout for c in calls(made) if c.op.name.endswith("nchwc")]
    assert [read in layout for layout in found] == [True], found


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("units", [3, 10, 30, 40, 100, 127])
def test_a_product_of_one_row_has_all_its_units(units, target):
    shapes = (units, 24), (1, 24)
    weight, value = (RNG.integers(-4, 5, shape).astype("float32") for shape in shapes)
    x = relay.var("x", shape=value.shape)
    function = relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(weight))))
    module = relay.create_executor("graph", IRModule.from_expr(function), target=target)
    np.testing.assert_array_equal(module.evaluate()(value).numpy(), np.maximum(value @ weight.T, 0))


@pytest.fixture(params=[(4, 10, 7), (8, 20, 12), (16, 24, 40), (16, 20, 21)])
def case(request):
    """A convolution whose channels are no multiple of the lanes, and the channels of the next."""
    lanes, channels, more = request.param
    return conv(relay.var("x", shape=(2, 3, 6, 7)), channels, 3), lanes, more


def test_convolutions_read_only_the_channels_there_are(case):
    first, lanes, more = case
    body = conv(relay.nn.relu(first), more)
    done = blocked(body, lanes)
    assert layouts(done) == {f"NCHW{lanes}c"}
    shapes = [c.args[1].tensor_type.shape for c in calls(done) if c.op.name.endswith("nchwc")]
    ((chunks, block),) = {(s[1], s[4]) for s in shapes if s[2:4] == (1, 1)}
    assert chunks * block == first.tensor_type.shape[1]


def test_elementwise_operators_and_pools_stay_in_blocks(case):
    first, lanes, _ = case
    x = relay.nn.relu(first + weights(first.tensor_type.shape[1], 1, 1))
    x = relay.multiply(x, relay.sigmoid(relay.divide(x, relay.const(2.0))))
    x = relay.nn.max_pool2d(x, pool_size=(2, 2))
    done = blocked(relay.add(x, relay.nn.global_avg_pool2d(x)), lanes)
    moved = [name for name in operators(done) if name == "strided_slice"]
    assert len(moved) == 1  # at the end


@pytest.mark.parametrize("name", ["log", "rsqrt", "exp"])
def test_operators_that_could_make_infinities_get_the_plain_value(case, name):
    first, lanes, _ = case
    make = {"log": relay.log, "rsqrt": relay.rsqrt, "exp": relay.exp}[name]
    body = make(relay.add(relay.abs(first), relay.const(1.0)))
    blocked(conv(body, 8), lanes)


def test_a_quotient_of_two_filled_values_is_plain(case):
    first, lanes, _ = case
    above = relay.add(relay.nn.relu(first), relay.const(1.0))
    done = blocked(conv(relay.divide(first, above), 8), lanes)
    (quotient,) = (call for call in calls(done) if call.op.name == "divide")
    assert quotient.tensor_type.rank == 4


def test_depthwise_convolutions_pad_their_filters(case):
    first, lanes, more = case
    channels = first.tensor_type.shape[1]
    body = conv(relay.nn.relu(conv(relay.nn.relu(first), channels, 3, groups=channels)), more)
    assert "nn.contrib_depthwise_conv2d_nchwc" in operators(blocked(body, lanes))


def test_winograd_takes_filled_data():
    first = conv(relay.var("x", shape=(1, 3, 17, 17)), 24, 3)
    done = blocked(conv(relay.nn.relu(first), 40, 3), 16, winograd=True)
    assert "nn.contrib_conv2d_winograd_nchwc" in operators(done)


@pytest.mark.parametrize("lanes", [8, 16])
def test_winograd_pads_plain_data_that_no_block_divides(lanes):
    x = relay.var("x", shape=(1, 50, 33, 33))
    done = blocked(conv(x, 50, 3), lanes, winograd=True)
    assert "nn.contrib_conv2d_winograd_nchwc" in operators(done)
    assert f"NCHW{lanes}c" in layouts(done)


def test_joins_and_reductions_over_channels_see_no_filling(case):
    first, lanes, more = case
    joined = relay.concatenate([relay.nn.relu(first), conv(first, more)], axis=1)
    blocked(relay.nn.softmax(conv(joined, more), axis=1), lanes)
    blocked(relay.mean(first, axis=(2, 3), keepdims=True), lanes)
    blocked(relay.max(first, axis=1, keepdims=True), lanes)


def test_a_value_in_smaller_blocks_joins_one_that_is_padded():
    x = relay.var("x", shape=(1, 24, 5, 5))
    wide = conv(x, 24, 3)
    depthwise = relay.nn.conv2d(x, weights(24, 1, 3, 3), padding=1, groups=24)
    blocked(relay.add(wide, depthwise), 16)
    blocked(relay.add(depthwise, x), 16)


@pytest.mark.parametrize(("channels", "filters", "groups"), [
    (32, 32, 2), (32, 48, 8), (12, 24, 3), (60, 60, 3), (16, 16, 4), (9, 6, 3), (48, 96, 48),
])  # fmt: skip
def test_groups_are_convolutions_in_blocks(channels, filters, groups):
    x = relay.var("x", shape=(1, channels, 6, 7))
    body = relay.nn.relu(conv(relay.nn.relu(x), filters, 3, groups=groups))
    done = blocked(conv(body, 8), 16)
    assert not {"nn.conv2d", "nn.conv1d"} & set(operators(done))


@pytest.mark.parametrize(("groups", "channels"), [(1, 24), (2, 32), (24, 24)])
def test_sequences_and_volumes_are_in_blocks(groups, channels):
    for count, layout in ((1, "NCW"), (3, "NCDHW")):
        x = relay.var("x", shape=(1, channels, 7, 6, 5)[: count + 2])
        make = {1: relay.nn.conv1d, 3: relay.nn.conv3d}[count]
        pool = {1: relay.nn.max_pool1d, 3: relay.nn.max_pool3d}[count]
        kernel = weights(channels, channels // groups, *(3,) * count)
        body = make(x, kernel, padding=1, groups=groups)
        body = relay.nn.relu(relay.nn.bias_add(body, weights(channels)))
        body = make(pool(body, pool_size=2), weights(8, channels, *(1,) * count))
        found = operators(done := blocked(body, 16))
        assert found.count("layout_transform") == 5  # two kernels, bias, data, result
        assert f"nn.max_pool{count}d" in found
        assert layouts(done) == {f"{layout}16c", f"{layout}8c"}


def test_few_filters_take_the_smallest_vector():
    assert "nn.contrib_conv2d_nchwc" in operators(
        blocked(conv(relay.var("x", shape=(1, 6, 5, 5)), 3, 3), 16)
    )


@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
def test_images_are_resized_in_blocks(case, method):
    first, lanes, more = case
    attributes = {"method": method, "coordinate_transformation_mode": "half_pixel"}
    body = relay.image.resize(relay.nn.relu(first), [0, 0, 12, 9], **attributes)
    done = blocked(conv(body, more), lanes)
    (resized,) = (call for call in calls(done) if call.op.name == "image.resize")
    assert resized.tensor_type.rank == 5
    plain = relay.image.resize(relay.var("x", shape=(1, 21, 5, 6)), [0, 0, 9, 9], **attributes)
    assert ("layout_transform" in operators(blocked(plain, lanes))) == (method == "linear")


def test_overlapping_windows_are_pooled_in_blocks():
    x = relay.var("x", shape=(1, 24, 9, 9))
    done = blocked(relay.nn.avg_pool2d(x, (3, 3), (1, 1), padding=1), 16)
    assert operators(done).count("layout_transform") == 2
    done = blocked(relay.nn.max_pool2d(x, (2, 2), (2, 2)), 16)
    assert operators(done).count("layout_transform") == 0


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("filters", [1, 8])
@pytest.mark.parametrize(
    "head",
    [
        relay.sigmoid,
        lambda y: y + weights(1, 1, 1, 1),
        lambda y: y + weights(1) * y,
        lambda y: relay.clip(relay.nn.relu(y), 0, 1) * relay.const(2.0),
        lambda y: relay.nn.prelu(y, weights(y.tensor_type.shape[1])),
        lambda y: relay.broadcast_to(y, (1, 8, 3, 5)) + y,
        lambda y: relay.broadcast_to(y, (2, *y.tensor_type.shape)),
        lambda y: y + weights(1, 8, 5, 3),
        lambda y: relay.where(relay.greater(y, relay.const(0.0)), y, weights(1, 8, 1, 3)),
    ],
)
def test_a_value_of_one_element_is_no_scalar(head, filters, lanes):
    """A score head: one filter over an image of one pixel."""
    x = relay.var("x", shape=(1, 16, 3, 3))
    kernel = weights(filters, 16, 3, 3)
    blocked(head(relay.nn.conv2d(x, kernel)), lanes)


@pytest.mark.parametrize(
    ("shape", "window", "stride", "is_blocked"),
    [
        ((2, 12, 28, 28, 28), 3, 1, False), ((1, 32, 8, 14, 14), 3, 1, False),
        ((1, 32, 8, 14, 2), 3, 1, True), ((1, 32, 28, 28), 3, 1, True),
        ((1, 12, 28, 28), 3, 1, True),
    ],
)  # fmt: skip
def test_pools_of_volumes_stay_plain_where_rows_take_fewer_steps(shape, window, stride, is_blocked):
    x = relay.var("x", shape=shape)
    count = len(shape) - 2
    pool = relay.nn.max_pool3d if count == 3 else relay.nn.max_pool2d
    body = pool(x, (window,) * count, (stride,) * count, padding=(1,) * count)
    assert ("layout_transform" in str(blocked(body, 16))) == is_blocked


@pytest.mark.parametrize(
    ("channels", "window", "stride", "in_blocks"),
    [(100, 7, 1, False), (64, 7, 1, False), (64, 5, 1, True), (64, 7, 2, True), (24, 3, 1, True)],
)
def test_pools_that_take_fewer_steps_by_their_rows_stay_plain(channels, window, stride, in_blocks):
    """Windows too large for registers."""
    x = relay.var("x", shape=(1, channels, 14, 14))
    done = blocked(relay.nn.max_pool2d(x, window, stride, padding=window // 2), 16)
    assert ("layout_transform" in operators(done)) == in_blocks
