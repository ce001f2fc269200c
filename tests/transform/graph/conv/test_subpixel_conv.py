import numpy as np
import pytest

from slipway import relay
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.transform.graph.conv.subpixel_conv import subpixel_conv


@pytest.mark.parametrize(
    ("kernel", "strides", "padding"),
    [((2, 2), (2, 2), 0), ((3, 3), (2, 2), 1), ((4, 4), (2, 2), 1), ((3, 5), (1, 2), (1, 2)),
     ((1, 1), (3, 2), 0), ((5, 4), (3, 3), (2, 0))],
)  # fmt: skip
def test_same_numbers_from_plain_convolutions(kernel, strides, padding):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((3, 4, *kernel)).astype("float32")
    x = relay.var("x", shape=(2, 3, 6, 5))
    body = relay.nn.conv2d_transpose(x, relay.const(weight), strides=strides, padding=padding)
    before = body.as_function()
    after = subpixel_conv(before)
    names = {e.op.name for e in post_order(after.body) if isinstance(e, relay.Call)}
    assert "nn.conv2d" in names
    assert "nn.conv2d_transpose" not in names
    data = rng.standard_normal((2, 3, 6, 5)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("channels", "filters", "groups", "kernel", "padding"),
    [(6, 2, 3, 3, 1), (6, 1, 6, 2, 0), (6, 2, 6, 4, 1), (4, 5, 2, 2, 0)],
)
def test_groups(channels, filters, groups, kernel, padding):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((channels, filters, kernel, kernel)).astype("float32")
    x = relay.var("x", shape=(2, channels, 4, 5))
    before = relay.nn.conv2d_transpose(
        x, relay.const(weight), strides=(2, 2), padding=padding, groups=groups
    ).as_function()
    after = subpixel_conv(before)
    convolutions = [
        e for e in post_order(after.body) if isinstance(e, relay.Call) and e.op.name == "nn.conv2d"
    ]
    assert {c.attrs.groups for c in convolutions} == {groups}
    data = rng.standard_normal((2, channels, 4, 5)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-4, atol=1e-5
    )


def test_a_kernel_that_is_no_constant_stays():
    x, w = relay.var("x", shape=(1, 3, 4, 4)), relay.var("w", shape=(3, 2, 2, 2))
    function = relay.nn.conv2d_transpose(x, w, strides=(2, 2)).as_function()
    assert subpixel_conv(function) is function


def test_a_stride_far_beyond_the_kernel_stays():
    """The kernels of its phases would be zeros but for a few taps: gigabytes of them."""
    x = relay.var("x", shape=(1, 3, 4, 4))
    weight = relay.const(np.ones((3, 2, 2, 2), "float32"))
    function = relay.nn.conv2d_transpose(x, weight, strides=(1 << 30, 2)).as_function()
    assert subpixel_conv(function) is function


@pytest.mark.parametrize(("count", "kernel"), [(1, 6), (1, 3), (3, 2), (3, 3)])
def test_sequences_and_volumes(count, kernel):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((3, 4, *(kernel,) * count)).astype("float32")
    x = relay.var("x", shape=(2, 3, 4, 5, 3)[: count + 2])
    make = {1: relay.nn.conv1d_transpose, 3: relay.nn.conv3d_transpose}[count]
    before = make(x, relay.const(weight), strides=2, padding=1).as_function()
    after = subpixel_conv(before)
    names = {e.op.name for e in post_order(after.body) if isinstance(e, relay.Call)}
    assert f"nn.conv{count}d" in names
    data = rng.standard_normal(x.tensor_type.shape).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "more", "convolutions"),
    [(3, 2, 1, 1, [1, 2, 2, 4]), (4, 2, 1, 0, [4] * 4), (5, 2, 2, 1, [4, 6, 6, 9]),
     (2, 2, 0, 0, [4]), (6, 3, 0, 0, [36]), (3, 2, 0, 0, [1, 2, 2, 4]), (3, 2, 1, 0, [1, 2, 2, 4]),
     (5, 3, 0, 0, [1, 2, 2, 2, 2, 4, 4, 4, 4]), (2, 3, 0, 0, [1] * 4)],
)  # fmt: skip
def test_each_rest_has_its_own_taps_where_that_saves_much(
    kernel, stride, padding, more, convolutions
):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((3, 4, kernel, kernel)).astype("float32")
    x = relay.var("x", shape=(2, 3, 6, 5))
    before = relay.nn.conv2d_transpose(
        x, relay.const(weight), strides=(stride, stride), padding=padding, output_padding=more
    ).as_function()
    after = subpixel_conv(before)
    taps = [
        e.args[1].array.size // 12
        for e in post_order(after.body)
        if isinstance(e, relay.Call) and e.op.name == "nn.conv2d"
    ]
    assert sorted(taps) == convolutions
    data = rng.standard_normal((2, 3, 6, 5)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("filters", "groups", "kernel", "convolutions", "last"),
    [
        (1, 1, 3, 1, "nn.contrib_column_sum"), (17, 1, 3, 1, "nn.contrib_column_sum"),
        (33, 1, 3, 1, "nn.contrib_column_sum"), (64, 1, 3, 4, "nn.contrib_interleave"),
        (1, 3, 3, 4, "nn.contrib_interleave"), (4, 1, 4, 1, "reshape"), (64, 1, 4, 1, "reshape"),
        (3, 1, 5, 1, "strided_slice"), (33, 1, 9, 1, "strided_slice"),
    ],
)  # fmt: skip
def test_the_way_with_the_fewest_vectors(filters, groups, kernel, convolutions, last):
    x = relay.var("x", shape=(1, 3, 40, 40))
    weight = relay.const(np.ones((3, filters, kernel, kernel), "float32"))
    before = relay.nn.conv2d_transpose(x, weight, strides=(2, 2), groups=groups).as_function()
    after = subpixel_conv(before, lanes=16)
    made = [
        e for e in post_order(after.body) if isinstance(e, relay.Call) and e.op.name == "nn.conv2d"
    ]
    assert (len(made), after.body.op.name) == (convolutions, last)


@pytest.mark.parametrize(
    ("data", "kernel", "strides", "padding", "more"),
    [
        ((14,), (3,), 2, 1, 1), ((7, 9), (3, 3), 2, 1, 1), ((7, 9), (3, 2), (2, 3), 0, 0),
        ((5, 6), (5, 4), 3, (2, 1), 0), ((5, 4), (3, 3), 2, (2, 3), (1, 0)),
        ((4, 5), (2, 3), (5, 2), 0, (4, 1)), ((3, 4, 5), (3, 3, 3), 2, 1, 0),
        ((1, 1), (3, 3), 2, 0, 0),
    ],
)  # fmt: skip
def test_columns(data, kernel, strides, padding, more):
    rng = np.random.default_rng(0)
    count = len(data)
    weight = rng.standard_normal((5, 3, *kernel)).astype("float32")
    make = (relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose)
    body = make[count - 1](
        relay.var("x", shape=(2, 5, *data)), relay.const(weight), strides=strides, padding=padding,
        output_padding=more,
    )  # fmt: skip
    before = body.as_function()
    after = subpixel_conv(before, lanes=16)
    names = [e.op.name for e in post_order(after.body) if isinstance(e, relay.Call)]
    assert names == [f"nn.conv{count}d", "nn.contrib_column_sum"]
    x = rng.standard_normal((2, 5, *data)).astype("float32")
    np.testing.assert_allclose(interpret(after, x), interpret(before, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("data", "filters", "kernel", "stride", "dilation", "groups", "columns"),
    [
        ((14, 5), 3, 4, 1, 1, 4, True),  # rows of 5 fill no vector, nor do 3 filters
        ((7, 5), 2, 4, 1, 3, 2, True), ((5, 5), 5, 5, 2, 1, 2, True), ((9,), 3, 3, 2, 1, 4, True),
        ((60, 60), 5, 4, 1, 1, 2, False), ((14, 5), 3, 3, 1, 1, 4, False),
        ((14, 14), 16, 4, 2, 1, 2, False),
    ],
)  # fmt: skip
def test_columns_of_groups(data, filters, kernel, stride, dilation, groups, columns):
    """Deep sums of few filters, also where many taps meet at a pixel."""
    rng = np.random.default_rng(0)
    count = len(data)
    weight = rng.standard_normal((48 * groups, filters, *(kernel,) * count)).astype("float32")
    make = (relay.nn.conv1d_transpose, relay.nn.conv2d_transpose)[count - 1]
    x = relay.var("x", shape=(2, 48 * groups, *data))
    before = make(
        x, relay.const(weight), strides=stride, padding=1, dilation=dilation, groups=groups
    ).as_function()
    after = subpixel_conv(before, lanes=16)
    names = [e.op.name for e in post_order(after.body) if isinstance(e, relay.Call)]
    assert ("nn.contrib_column_sum" in names) == columns
    given = rng.standard_normal((2, 48 * groups, *data)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, given), interpret(before, given), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("kernel", "strides", "columns"),
    [((3, 3), 3, True), ((2, 3), (2, 4), True), ((2, 2), 2, False), ((4, 4), 3, False)],
)
def test_columns_of_one_plane(kernel, strides, columns):
    """Its taps do not meet, and what is written is most of the work."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((1, 7, *kernel)).astype("float32")
    x = relay.var("x", shape=(2, 1, 8, 9))
    before = relay.nn.conv2d_transpose(x, relay.const(weight), strides=strides).as_function()
    after = subpixel_conv(before, lanes=16)
    names = [e.op.name for e in post_order(after.body) if isinstance(e, relay.Call)]
    assert ("nn.contrib_column_sum" in names) == columns
    given = rng.standard_normal((2, 1, 8, 9)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, given), interpret(before, given), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("given", [{"dtype": "float16"}, {"open": True}])
def test_no_columns_where_each_is_rounded_or_their_number_is_not_known(given):
    size = relay.Any() if "open" in given else 14
    dtype = given.get("dtype", "float32")
    x = relay.var("x", shape=(1, 4, size, size), dtype=dtype)
    weight = relay.const(np.ones((4, 1, 3, 3), dtype))
    after = subpixel_conv(relay.nn.conv2d_transpose(x, weight, strides=2).as_function(), lanes=16)
    names = {e.op.name for e in post_order(after.body) if isinstance(e, relay.Call)}
    assert "nn.contrib_column_sum" not in names


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(
    ("kernel", "strides", "padding", "dilation", "more"),
    [
        ((3, 3), (1, 1), 0, (2, 2), 0), ((3, 2), (1, 1), (1, 0), (2, 3), 0),
        ((3, 3), (2, 2), 1, (2, 2), 1), ((3, 3), (2, 3), 0, (3, 1), 0),
        ((2, 4), (1, 2), (2, 1), (4, 2), 0), ((3, 3), (2, 2), 0, (3, 3), 1),
        ((2, 3), (3, 2), (1, 0), (2, 5), 0), ((3, 2), (4, 6), (0, 3), (6, 4), 0),
        ((2, 2), (4, 3), (3, 2), (2, 3), (3, 2)), ((3, 1), (2, 3), 5, (3, 2), 0),
    ],
)  # fmt: skip
def test_dilated_kernels(kernel, strides, padding, dilation, more, groups):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((3, 4, *kernel)).astype("float32")
    x = relay.var("x", shape=(2, 3, 6, 5))
    before = relay.nn.conv2d_transpose(
        x, relay.const(weight), strides=strides, padding=padding, dilation=dilation,
        output_padding=more, groups=groups,
    ).as_function()  # fmt: skip
    after = subpixel_conv(before)
    names = {e.op.name for e in post_order(after.body) if isinstance(e, relay.Call)}
    assert "nn.conv2d_transpose" not in names
    data = rng.standard_normal((2, 3, 6, 5)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "taps"),
    [(3, 2, 3, [1, 2, 2, 4]), (3, 2, 2, [9]), (3, 4, 2, [1, 2, 2, 4]), (2, 3, 2, [1] * 4)],
)
def test_dilated_kernels_multiply_no_zeros_between_their_taps(kernel, stride, dilation, taps):
    x = relay.var("x", shape=(1, 3, 9, 9))
    weight = relay.const(np.ones((3, 4, kernel, kernel), "float32"))
    before = relay.nn.conv2d_transpose(
        x, weight, strides=(stride, stride), dilation=(dilation, dilation)
    ).as_function()
    after = subpixel_conv(before)
    made = [
        e.args[1].array.size // 12
        for e in post_order(after.body)
        if isinstance(e, relay.Call) and e.op.name == "nn.conv2d"
    ]
    assert sorted(made) == taps


@pytest.mark.parametrize(
    ("kernel", "strides", "filters", "padding", "more"),
    [
        ((3, 3), (3, 3), 8, 0, 0),
        ((2, 4), (3, 4), 16, (1, 2), (1, 0)),  # pixels that no tap reaches; some are cut off
        ((4,), (4,), 8, 1, 3),
        ((2, 3, 2), (2, 3, 2), 8, 0, 0),
    ],
)
def test_taps_that_do_not_meet_are_pixels_of_one_product(kernel, strides, filters, padding, more):
    """Each in whole vectors of channels, which are copied to their place."""
    count, rng = len(kernel), np.random.default_rng(5)
    weight = rng.standard_normal((6, filters, *kernel)).astype("float32")
    x = relay.var("x", shape=(2, 6, *(5, 4, 3)[:count]))
    make = getattr(relay.nn, f"conv{count}d_transpose")
    before = make(
        x, relay.const(weight), strides=strides, padding=padding, output_padding=more
    ).as_function()
    after = subpixel_conv(before, lanes=8)
    calls = [e for e in post_order(after.body) if isinstance(e, relay.Call)]
    made = {c.op.name: c.attrs for c in calls}
    products = [c for c in calls if c.op.name == f"nn.conv{count}d"]
    assert [c.args[1].tensor_type.shape[2:] for c in products] == [(1,) * count]
    assert made["nn.contrib_interleave"].together == np.prod(kernel)
    data = rng.standard_normal(x.tensor_type.shape).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-4, atol=1e-5
    )


def test_taps_that_do_not_meet_with_filters_that_are_no_vectors_have_a_product_each():
    """To take them from their vectors apart took ten times as long as to copy whole ones."""
    weight = relay.const(np.ones((31, 31, 3, 3), "float32"))
    x = relay.var("x", shape=(1, 31, 7, 7))
    body = relay.nn.conv2d_transpose(x, weight, strides=(3, 3))
    calls = [e for e in post_order(subpixel_conv(body.as_function(), lanes=16).body)
             if isinstance(e, relay.Call)]  # fmt: skip
    assert sum(c.op.name == "nn.conv2d" for c in calls) == 9
    assert sum(c.op.name == "nn.contrib_interleave" for c in calls) == 1
