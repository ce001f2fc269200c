"""What ONNX says of attributes in words: values that there are not, and lists that do not fit."""

import numpy as np
import onnx
import pytest
from onnx import helper

from slipway import relay
from slipway.errors import ModelError

SQUARE = {"kernel_shape": [3, 3]}


def imported(kind, attributes, *, shape=(1, 2, 7, 9), constants=(), dtype=1, opset=19):
    names = [f"c{n}" if value is not None else "" for n, value in enumerate(constants)]
    outputs = ["y", "z"] if kind == "TopK" else ["y"]
    node = helper.make_node(kind, ["x", *names], outputs, name="n0", **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_empty_tensor_value_info("y")],
        [
            onnx.numpy_helper.from_array(np.asarray(value), name)
            for name, value in zip(names, constants, strict=True) if name
        ],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    return relay.frontend.from_onnx(helper.make_model(graph, opset_imports=opsets))


def weights_of(kind):
    shapes = {"Conv": (3, 2, 3, 3), "ConvTranspose": (2, 3, 3, 3)}
    return (np.ones(shapes[kind], "float32"),) if kind in shapes else ()


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool", "Conv", "ConvTranspose"])
@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"pads": [-1, 0, 0, 0]}, "'pads' is .*it must be 0 or more"),
        ({"pads": [0, 0]}, "'pads' has 2 numbers, where 2 spatial axes need 4"),
        ({"strides": [1]}, "'strides' has 1 numbers, where 2 spatial axes need 2"),
        ({"dilations": [1, 1, 1]}, "'dilations' has 3 numbers"),
        ({"auto_pad": "SAME"}, "'auto_pad' is 'SAME'; there are 'NOTSET', 'SAME_UPPER'"),
        ({"kernel_shape": [3]}, "'kernel_shape' has 1 numbers"),
    ],
)
def test_windows_have_a_number_for_each_axis(kind, attributes, words):
    imported(kind, SQUARE, constants=weights_of(kind))
    with pytest.raises(ModelError, match=rf"{kind} x 1 \(n0\): its attribute {words}"):
        imported(kind, {**SQUARE, **attributes}, constants=weights_of(kind))


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_a_kernel_is_that_of_the_weights_and_padding_is_said_once(kind):
    with pytest.raises(ModelError, match=r"'kernel_shape' is \[2, 2\], where its weights have"):
        imported(kind, {"kernel_shape": [2, 2]}, constants=weights_of(kind))
    with pytest.raises(ModelError, match="both 'auto_pad' and 'pads'"):
        imported(kind, {"auto_pad": "VALID", "pads": [1] * 4}, constants=weights_of(kind))


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool"])
def test_every_window_of_a_pooling_reaches_the_data(kind):
    imported(kind, {**SQUARE, "pads": [2, 0, 2, 0]})
    with pytest.raises(ModelError, match="lies in the padding and has no data"):
        imported(kind, {**SQUARE, "pads": [3, 0, 0, 0]})


@pytest.mark.parametrize("kind", ["LpPool", "GlobalLpPool"])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_norm_of_squares_needs_no_powers(kind, p):
    module, _ = imported(kind, {"p": p, **(SQUARE if kind == "LpPool" else {})})
    assert ("power" in str(module)) == (p == 3)


@pytest.mark.parametrize(
    ("kind", "attributes", "more"),
    [
        ("MaxPool", {**SQUARE, "storage_order": 7}, {}),
        ("CumSum", {"exclusive": -1}, {"constants": (np.int64(0),)}),
        ("Mod", {"fmod": 2}, {"constants": (np.float32(2),)}),
        ("DepthToSpace", {"blocksize": 1, "mode": "RCD"}, {}),
        ("LpNormalization", {"p": 3}, {}),
        ("BitShift", {"direction": "UP"}, {"constants": (np.uint8(1),), "dtype": 2}),
    ],
)
def test_values_are_those_that_onnx_names(kind, attributes, more):
    with pytest.raises(ModelError, match=rf"{kind} x 1 \(n0\): its attribute .* is .*; there are "):
        imported(kind, attributes, **more)


@pytest.mark.parametrize(
    ("constants", "attributes", "words"),
    [
        ((None, np.float32([1, 1, 0, 1])), {}, "each must be greater than 0"),
        ((None, np.float32([1, 1, np.nan, 1])), {}, "each must be greater than 0"),
        ((None, np.float32([1, 1, np.inf, 1])), {}, "each must be greater than 0"),
        ((None, np.float32([2])), {"axes": [2, 3]}, "1 scales are given for the axes"),
        ((None, np.float32([2, 2])), {"axes": [2, 2]}, "2 scales are given for the axes"),
        ((None, np.float32([2])), {"axes": [4]}, r"'axes' is \[4\], where its data has 4"),
        ((None, None, np.int64([0, 6])), {"axes": [2, 3]}, "each must be 1 or more"),
        ((None, np.float32([1, 1, 2, 2]), np.int64([1, 2, 9, 9])), {}, "both scales and sizes"),
    ],
)
def test_a_resize_says_one_size_above_zero_for_each_axis(constants, attributes, words):
    with pytest.raises(ModelError, match=rf"Resize x 1 \(n0\): .*{words}"):
        imported("Resize", attributes, constants=constants)


@pytest.mark.parametrize("parts", [0, 3])
def test_a_transform_takes_a_real_and_an_imaginary_part(parts):
    step = np.int64(2)
    for kind, constants in (("DFT", ()), ("STFT", (step, np.ones(4, "float32")))):
        with pytest.raises(ModelError, match=f"{kind} x 1 .*last axis .* has {parts} elements"):
            imported(kind, {}, shape=(1, 8, parts), constants=constants)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pool_int64s": [2, 3, 5, 4, 5, 6]}, "does not cut its vocabulary of 6 numbers"),
        ({"ngram_counts": [0, 9]}, "does not cut"),
        ({"max_gram_length": 3}, "n-grams have 1 to 3 members"),
        ({"min_gram_length": -9}, "it must be 1 or more"),
        ({"max_skip_count": -1}, "it must be 0 or more"),
        ({"ngram_indexes": [0, 1]}, "2 ngram_indexes for 5 n-grams"),
        ({"weights": [1.0]}, "1 weights for 5 n-grams"),
    ],
)
def test_a_vocabulary_is_cut_into_whole_n_grams(change, words):
    attributes = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
        "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4],
        "pool_int64s": [2, 3, 5, 4, 5, 6, 7],
    }  # fmt: skip
    imported("TfIdfVectorizer", attributes, shape=(1, 8), dtype=7)
    with pytest.raises(ModelError, match=words):
        imported("TfIdfVectorizer", {**attributes, **change}, shape=(1, 8), dtype=7)


def test_operators_that_are_expanded_are_checked_as_well():
    with pytest.raises(ModelError, match=r"GroupNormalization x 1 \(n0\): its attribute 'num_g"):
        imported(
            "GroupNormalization", {"num_groups": 0}, constants=(np.ones(2, "f"),) * 2, opset=21
        )
    with pytest.raises(ModelError, match=r"Mish x 1 \(n0\): it has the attribute 'slope'"):
        imported("Mish", {"slope": 1.0})


@pytest.mark.parametrize("kind", ["QuantizeLinear", "DequantizeLinear"])
def test_there_is_a_scale_for_each_element_of_an_axis_that_there_is(kind):
    dtype = 1 if kind == "QuantizeLinear" else 3
    scales = (np.float32([1, 2]),)
    imported(kind, {"axis": 1}, constants=scales, dtype=dtype)
    with pytest.raises(ModelError, match="its axis is 9, where its input has 4"):
        imported(kind, {"axis": 9}, constants=scales, dtype=dtype)
    with pytest.raises(ModelError, match="2 scales for 1 elements of its axis"):
        imported(kind, {"axis": 0}, constants=scales, dtype=dtype)


@pytest.mark.parametrize("axis", [19, -19])
@pytest.mark.parametrize(
    ("kind", "constants"),
    [
        ("Compress", (np.array([True, False]),)), ("Flatten", ()), ("TopK", (np.int64([1]),)),
        ("LayerNormalization", (np.ones(9, "float32"),)), ("Split", (np.int64([1]),)),
        ("OneHot", (np.int64(2), np.float32([0, 1]))), ("Softmax", ()), ("Unique", ()),
        ("Concat", (np.ones((1, 2, 7, 9), "float32"),)), ("Gather", (np.int64([0]),)),
        ("ReduceSum", (np.int64([19]),)), ("CumSum", (np.int64(19),)), ("ArgMax", ()),
    ],
)  # fmt: skip
def test_an_axis_is_one_that_the_data_has(kind, constants, axis):
    attributes = {} if kind in ("ReduceSum", "CumSum") else {"axis": axis}
    with pytest.raises(ModelError, match=rf"{kind} x 1 \(n0\): .*ax(is|es)"):
        imported(kind, attributes, constants=constants)


def test_an_attribute_whose_name_is_no_text_is_named():
    node = helper.make_node("Relu", ["x"], ["y"], odd=1)
    proto = helper.make_model(
        helper.make_graph(
            [node], "g", [helper.make_tensor_value_info("x", 1, (2,))],
            [helper.make_tensor_value_info("y", 1, (2,))],
        )
    )  # fmt: skip
    data = proto.SerializeToString().replace(b"odd", b"o\xffd")
    with pytest.raises(ModelError, match=r"the attribute b'o.*d', which Relu"):
        relay.frontend.from_onnx(data)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_triangle_needs_two_axes(shape):
    with pytest.raises(ModelError, match="a triangle needs two"):
        imported("Trilu", {}, shape=shape)
