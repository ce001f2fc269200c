"""What onnxruntime does at the edges of attributes, where words leave room."""

import numpy as np
import onnxruntime
import pytest
from graphs import helper, model

import slipway
from slipway import relay
from slipway.relay.interpret import interpret

X = np.random.default_rng(2).standard_normal((1, 2, 4, 5)).astype(np.float32)


def check(node, weights, opset=17):
    proto = model([node], {"x": ("float32", X.shape)}, ["y"], weights, opset)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    got = interpret(relay.frontend.from_onnx(proto)[0], x=X)
    (want,) = session.run(None, {"x": X})
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("start", [-9, -6, -5, -1, 2, 9])
@pytest.mark.parametrize("end", [-100, -7, -5, -4, 1])
@pytest.mark.parametrize("step", [-1, -2])
def test_a_slice_that_goes_backwards_from_before_the_data_begins_at_its_first_element(
    start, end, step
):
    weights = {"s": [start], "e": [end], "a": [-1], "t": [step]}
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    check(node, {name: np.int64(value) for name, value in weights.items()})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(0.7, 0.6), (0.7, 1.4), (2.5, 0.3), (2.0, 1.3)])
def test_resize_before_its_rounding_had_a_name(mode, scales):
    node = helper.make_node("Resize", ["x", "s"], ["y"], mode=mode)
    check(node, {"s": np.float32([1, 1, *scales])}, opset=10)


@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("scales", [(1.5, 0.6), (0.75, 1.4), (0.7, 1.2), (1.25, 2.2)])
def test_a_resize_reads_the_element_on_which_a_coordinate_lies(nearest, coordinates, scales):
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=nearest,
        coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    check(node, {"s": np.float32([1, 1, *scales])})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_resize_to_one_element_reads_the_first(mode):
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode=mode,
        coordinate_transformation_mode="pytorch_half_pixel",
    )  # fmt: skip
    check(node, {"s": np.float32([1, 1, 0.4, 0.3])})


@pytest.mark.parametrize("opset", [9, 10, 18])
@pytest.mark.parametrize("scales", [(0.2, 2.0), (0.2, 0.1)])
def test_a_factor_may_leave_nothing_of_an_axis(opset, scales):
    kind = "Upsample" if opset == 9 else "Resize"
    names = ["x", "s"] if opset < 11 else ["x", "", "s"]
    proto = model(
        [helper.make_node(kind, names, ["y"], mode="nearest")], {"x": ("float32", X.shape)}, ["y"],
        {"s": np.float32([1, 1, *scales])}, opset,
    )  # fmt: skip
    got = interpret(relay.frontend.from_onnx(proto)[0], x=X)
    assert got.shape == (1, 2, *(int(e * f) for e, f in zip((4, 5), scales, strict=True)))


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("scales", [(2.3, 1.4), (0.7, 1.15), (10 / 3, 0.6)])
def test_an_open_size_times_a_factor_of_a_few_decimals(coordinates, nearest, scales):
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=nearest,
        coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    weights = {"s": np.float32([1, 1, *scales])}
    proto = model([node], {"x": ("float32", (1, 1, "h", "w"))}, ["y"], weights, 13)
    sizes = {"x": (1, 1, relay.Dim("h", 2, 60), relay.Dim("w", 2, 60))}
    compiled = slipway.compile(proto, shapes=sizes)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for h, w in ((2, 3), (20, 7), (55, 59), (30, 50)):
        x = np.random.default_rng(h).standard_normal((1, 1, h, w)).astype(np.float32)
        (want,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(compiled(x), want)


@pytest.mark.parametrize("kind", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("opset", [7, 11, 17])
def test_a_transposed_convolution_of_a_stated_size_is_cut_at_the_side_that_onnx_names(kind, opset):
    weight = np.random.default_rng(3).standard_normal((2, 3, 3, 3)).astype(np.float32)
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], auto_pad=kind, strides=[2, 1], dilations=[1, 2],
        output_shape=[8, 6],
    )  # fmt: skip
    check(node, {"w": weight}, opset)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("size", [(1, 2, 3), (1, 1, 3), (2, 4, 1), (1, 2, 3, 4), (2, 1, 1, 2)])
def test_a_grid_of_one_sample_or_one_element(size, corners):
    batch, *spatial = size
    theta = np.random.default_rng(5).standard_normal((batch, len(spatial), len(spatial) + 1))
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=corners)
    check(node, {"theta": theta.astype("float32"), "size": np.array([batch, 1, *spatial])}, 20)


@pytest.mark.parametrize("kind", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("extra", [(0, 0), (1, 0), (0, 1)])
def test_a_transposed_convolution_whose_strides_are_longer_than_its_window(kind, extra):
    """The extent is what the inputs reach, not the input's times the stride."""
    weight = np.random.default_rng(4).standard_normal((2, 3, 2, 1)).astype(np.float32)
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], auto_pad=kind, strides=[3, 2], output_padding=extra
    )
    check(node, {"w": weight}, 11)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ((3, 2), (2, 3), (0, 0, 0, 0)),
        ((2, 3), (3, 2), (1, 1, 0, 1)),
        ((2, 2), (3, 3), (0, 1, 1, 1)),
    ],
)
def test_a_norm_of_the_windows_that_ceil_mode_adds(p, kernel, strides, pads):
    node = helper.make_node(
        "LpPool", ["x"], ["y"], p=p, kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=1
    )
    check(node, {}, opset=18)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("opset", [10, 16])  # the older takes no half element off
def test_a_region_has_as_many_samples_as_elements_where_no_number_is_said(mode, ratio, opset):
    draw = np.random.default_rng(6)
    corners = np.sort(draw.uniform(-4, 30, (4, 2, 2)), axis=1).reshape(4, 4)
    corners[0, 2:] = corners[0, :2]  # a region of no size
    weights = {"rois": corners.astype("float32"), "image": np.int64([0, 0, 0, 0])}
    node = helper.make_node(
        "RoiAlign", ["x", "rois", "image"], ["y"], mode=mode, sampling_ratio=ratio,
        output_height=2, output_width=3, spatial_scale=0.5,
    )  # fmt: skip
    check(node, weights, opset)


@pytest.mark.parametrize(
    ("shape", "scales", "nearest", "coordinates"),
    [
        ((11, 18), (0.9, 0.7), "round_prefer_floor", "half_pixel"),
        ((17, 16), (1.8, 2.6), "ceil", "pytorch_half_pixel"),
        ((5, 17), (1.0, 2.8), "round_prefer_floor", "asymmetric"),
        ((13, 13), (1.9, 2.2), "floor", "half_pixel"),
        ((10, 8), (1.4, 2.8), "ceil", "half_pixel"),
    ],
)
def test_a_coordinate_on_an_element_falls_where_float32_puts_it(
    shape, scales, nearest, coordinates
):
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=nearest,
        coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    data = np.random.default_rng(7).standard_normal((1, 2, *shape)).astype(np.float32)
    proto = model(
        [node], {"x": ("float32", data.shape)}, ["y"], {"s": np.float32([1, 1, *scales])}, 17
    )
    (want,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": data})
    np.testing.assert_array_equal(interpret(relay.frontend.from_onnx(proto)[0], x=data), want)
