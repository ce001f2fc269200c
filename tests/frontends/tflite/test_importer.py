"""Reports of what is not supported, inputs that are given wrongly, float16 weights."""

import numpy as np
import pytest
from builder import T, const, model
from litert import Peer, compiled, outputs

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.tflite.importer import check_tflite
from slipway.relay.interpret import interpret


def f32(*shape):
    return T(shape, "float32")


def add():
    one, other, out = f32(2, 3), f32(2, 3), f32(2, 3)
    one.name, other.name, out.name = "left", "right", "sum"
    return model("ADD", [one, other], [out], "AddOptions")


def test_inputs_and_outputs_keep_their_names():
    mod, params = relay.frontend.from_tflite(add())
    assert [p.name for p in mod["main"].params] == ["left", "right"]
    assert params == {}
    assert dict(mod["main"].attrs)["output_names"] == ("sum",)


def test_a_converter_of_classic_tvm_is_refused():
    with pytest.raises(ModelError, match=r"op_converter=\.\.\.\) takes a converter class"):
        relay.frontend.from_tflite(add(), op_converter=object)


def test_an_unknown_input_gets_a_suggestion():
    with pytest.raises(ModelError, match="Did you mean 'left'"):
        relay.frontend.from_tflite(add(), shape_dict={"lefd": (2, 3)})


def test_a_shape_that_contradicts_the_file():
    with pytest.raises(ModelError, match=r"shape \(2, 4\), but the model has \(2, 3\)"):
        relay.frontend.from_tflite(add(), shape_dict={"left": (2, 4)})


def test_a_list_of_one_may_be_given_as_a_number():
    one, other, out = f32(1), f32(2, 3), f32(2, 3)
    one.name = "left"
    data = model("ADD", [one, other], [out], "AddOptions")
    mod, _ = relay.frontend.from_tflite(data, shape_dict={"left": ()})
    assert mod["main"].params[0].type_annotation.shape == ()
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    names = [p.name for p in mod["main"].params]
    got = interpret(mod, **{names[0]: np.float32(2), names[1]: values})
    np.testing.assert_array_equal(got, values + 2)


def test_a_dtype_that_contradicts_the_file():
    with pytest.raises(ModelError, match="dtype int8, but the model has float32"):
        relay.frontend.from_tflite(add(), dtype_dict={"left": "int8"})


def test_an_operator_without_converter_is_reported():
    data = model("HASHTABLE_FIND", [f32(4, 4), const([4, 4])], [f32(4, 4)])
    with pytest.raises(ModelError, match=r"HASHTABLE_FIND x 1 .*: there is no converter for it"):
        relay.frontend.from_tflite(data)
    (row,) = check_tflite(data)
    assert (row.kind, row.status) == ("HASHTABLE_FIND", "unsupported")


def test_what_an_operator_does_not_support_is_reported():
    whole = [T((5, 6), "int8", 0.1, 0), T((5, 6), "int8", 0.0625, 127)]
    data = model("NEG", whole[:1], whole[1:], "NegOptions")
    with pytest.raises(ModelError, match="not supported on quantised numbers"):
        relay.frontend.from_tflite(data)


def test_check_tells_native_from_rewritten():
    assert check_tflite(add())[0].status == "native"
    data = model("HARD_SWISH", [f32(2, 3)], [f32(2, 3)], "HardSwishOptions")
    (row,) = check_tflite(data)
    assert row.status == "rewritten"
    assert "clip" in row.detail


def test_every_operator_of_the_shared_models_is_supported(tflite_models):
    for path in sorted(tflite_models.glob("*.tflite")):
        assert {row.status for row in check_tflite(path)} <= {"native", "rewritten"}


def test_float16_weights_become_float32():
    halves = const(np.linspace(-1, 1, 12).reshape(3, 4), "float16")
    data = model("DEQUANTIZE", [halves], [f32(3, 4)], "DequantizeOptions")
    mod, _ = relay.frontend.from_tflite(data)
    want = halves.data.astype(np.float32)
    np.testing.assert_array_equal(mod["main"].body.array, want)


def test_no_tflite_file():
    with pytest.raises(ModelError, match="no TFLite file"):
        relay.frontend.from_tflite(b"not a model at all")
    with pytest.raises(ModelError, match="cannot read"):
        relay.frontend.from_tflite("there/is/no.tflite")
    with pytest.raises(ModelError, match=r"takes bytes, a path or a tflite\.Model, got int"):
        relay.frontend.from_tflite(3)


def test_a_buffer_of_the_wrong_size():
    bad = const(np.zeros((2, 3)), "float32")
    bad.shape = (2, 4)
    with pytest.raises(ModelError, match="needs 32 bytes, but has 24"):
        relay.frontend.from_tflite(model("ADD", [f32(2, 4), bad], [f32(2, 4)], "AddOptions"))


def test_sum_runs():
    a, b = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    np.testing.assert_array_equal(outputs(compiled(add()), [a, b])[0], a + b)


@pytest.mark.parametrize(
    ("scale", "zero"), [(np.nan, 0), (-1.0, 0), (0.1, 1 << 40), (0.1, 1 << 31), (0.1, -(1 << 63))]
)
def test_scales_that_mean_nothing_are_refused(scale, zero):
    data = model("RELU", [T((2, 3), "int8", scale, zero)], [T((2, 3), "int8", 0.1, 0)])
    with pytest.raises(ModelError, match=r"scale that is no positive number|zero point"):
        relay.frontend.from_tflite(data)


def test_options_that_fit_nothing_are_reported():
    """An axis that the data does not have, say, is a problem of that operator."""
    sizes = const([5, 7])
    data = model("RESIZE_NEAREST_NEIGHBOR", [T((4,), "int8", 0.1, 0), sizes],
                 [T((5, 7), "int8", 0.1, 0)])  # fmt: skip
    with pytest.raises(ModelError, match=r"RESIZE_NEAREST_NEIGHBOR[^:]*: .*not four axes"):
        relay.frontend.from_tflite(data)


@pytest.mark.parametrize("sizes", [[7, 268435465], [0, 5], [-3, 5], [4, 5, 6]])
def test_sizes_of_a_resize_are_bounded(sizes):
    data = model("RESIZE_BILINEAR", [T((1, 4, 5, 3), "int8", 0.1, 0), const(sizes)],
                 [T((1, 7, 9, 3), "int8", 0.1, 0)], "ResizeBilinearOptions")  # fmt: skip
    with pytest.raises(ModelError, match="it resizes to"):
        relay.frontend.from_tflite(data)


def test_a_reflection_is_no_longer_than_its_data():
    data = model("MIRROR_PAD", [T((2, 3), "int8", 0.1, 0), const([[1, 0], [0, 536870914]])],
                 [T((3, 5), "int8", 0.1, 0)], "MirrorPadOptions", mode=0)  # fmt: skip
    with pytest.raises(ModelError, match="it reflects 0 and 536870914 of 3 elements"):
        relay.frontend.from_tflite(data)


def test_unpacking_gives_every_part():
    data = model("UNPACK", [T((2, 524288), "int8", 0.1, 0)], [T((2,), "int8", 0.1, 0)] * 3,
                 "UnpackOptions", num=3, axis=1)  # fmt: skip
    with pytest.raises(ModelError, match="it gives 3 parts of 524288"):
        relay.frontend.from_tflite(data)


@pytest.mark.parametrize("bounds", [(0, 1 << 30, 1), (0, 5, 0)])
def test_a_range_is_bounded(bounds):
    data = model("RANGE", [const(np.int32(v)) for v in bounds], [T((4,), "int32")], "RangeOptions")
    with pytest.raises(ModelError, match=r"needs a constant of|it counts from"):
        relay.frontend.from_tflite(data)


def transposed(out, padding=0):
    shape, weights = T((4,), "int32", name="size"), const(np.ones((3, 2, 2, 5)), "float32")
    return model(
        "TRANSPOSE_CONV", [shape, weights, f32(1, 4, 6, 5)], [f32(*out)], "TransposeConvOptions",
        padding=padding, strideH=2, strideW=2,
    )  # fmt: skip


def test_a_transposed_convolution_whose_size_is_an_input_has_the_stated_one():
    x = np.random.default_rng(3).standard_normal((1, 4, 6, 5)).astype(np.float32)
    for out in ((1, 8, 12, 3), (1, 7, 12, 3)):
        mod, _ = relay.frontend.from_tflite(transposed(out))
        size = np.array(out, np.int32)
        (want,) = Peer(transposed(out))([size, x])
        np.testing.assert_allclose(interpret(mod, size, x), want, rtol=1e-5, atol=1e-5)
    with pytest.raises(ModelError, match=r"'size' must be constant.*constants={'size': \.\.\.}"):
        relay.frontend.from_tflite(transposed((1, 9, 12, 3)))
    bound, _ = relay.frontend.from_tflite(
        transposed((1, 9, 12, 3)), constants={"size": [1, 7, 11, 3]}
    )
    assert bound["main"].checked_type.ret_type.shape == (1, 7, 11, 3)


def test_tensors_of_one_name_get_names_of_their_own():
    """Also where a name with a number behind it is another tensor's already."""
    names = ["x", "x_2", "x", "x_4", "x"]
    tensors = [T((2,), "float32", name=n) for n in names]
    total = T((2,), "float32", name="y")
    data = model("ADD_N", tensors, [total], "AddNOptions")
    mod, _ = relay.frontend.from_tflite(data)
    given = [p.name for p in mod["main"].params]
    assert len(set(given)) == 5
    assert (given[1], given[3]) == ("x_2", "x_4")


def q8(*shape, scale=0.05):
    return T(shape, "int8", scale, 3)


REFUSED = {
    "blocks of no size": (
        ("DEPTH_TO_SPACE", [f32(1, 2, 2, 4)], [f32(1, 4, 4, 1)], "DepthToSpaceOptions"),
        {"blockSize": 0}, "blocks of",
    ),
    "blocks that leave a rest": (
        ("SPACE_TO_DEPTH", [f32(1, 3, 4, 1)], [f32(1, 1, 2, 4)], "SpaceToDepthOptions"),
        {"blockSize": 2}, "blocks of",
    ),
    "no batch entries": (
        ("BATCH_TO_SPACE_ND", [f32(4, 2, 2, 1), const([0, 2]), const([[0, 0], [0, 0]])],
         [f32(1, 4, 4, 1)], "BatchToSpaceNDOptions"), {}, "blocks of",
    ),
    "more blocks than axes": (
        ("BATCH_TO_SPACE_ND", [f32(), const([2, 2]), const([[0, 0], [0, 0]])], [f32(1, 4, 4, 1)],
         "BatchToSpaceNDOptions"), {}, "do not fit",
    ),
    "edges of other blocks": (
        ("SPACE_TO_BATCH_ND", [f32(1, 4, 4, 1), const([2, 2]), const([[0, 0]])],
         [f32(4, 2, 2, 1)], "SpaceToBatchNDOptions"), {}, "do not fit",
    ),
    "a mean of no quantised numbers": (
        ("MEAN", [q8(0, 3), const([0])], [q8(3)], "ReducerOptions"), {}, "of no elements",
    ),
    "more than there are": (
        ("TOPK_V2", [f32(2, 3), const(np.int32(4))], [f32(2, 4), T((2, 4), "int32")],
         "TopKV2Options"), {}, "no 4 largest",
    ),
    "a bias of other channels": (
        ("FULLY_CONNECTED",
         [q8(2, 3), T((4, 3), "int8", 0.1, 0, np.ones((4, 3), "int8")),
          T((4, 2), "int32", 0.005, 0, np.ones((4, 2), "int32"))],
         [q8(2, 4)], "FullyConnectedOptions"), {}, "does not fit",
    ),
    "a slice of other axes": (
        ("SLICE", [f32(4, 4), const([0]), const([2])], [f32(2, 4)], "SliceOptions"), {},
        "do not fit data",
    ),
    "an enlargement of nothing": (
        ("RESIZE_BILINEAR", [f32(1, 0, 3, 2), const([4, 4])], [f32(1, 4, 4, 2)],
         "ResizeBilinearOptions"), {}, "no elements",
    ),
    "several for one": (
        ("CUMSUM", [f32(2, 3), const([0, 1])], [f32(2, 3)], "CumsumOptions"), {},
        "2 integers, not one",
    ),
    "fewer than none": (
        ("TOPK_V2", [f32(2, 3), const(np.int32(-1))], [f32(2, 3), T((2, 3), "int32")],
         "TopKV2Options"), {}, "no -1 largest",
    ),
    "shapes apart": (
        ("BROADCAST_ARGS", [const([1, 4]), const([3, 5])], [T((2,), "int32")]), {},
        "do not broadcast",
    ),
    "batches apart": (
        ("BATCH_MATMUL", [f32(2, 3, 4), f32(3, 4, 5)], [f32(2, 3, 5)], "BatchMatMulOptions"), {},
        "do not broadcast",
    ),
    "a scale of next to nothing": (
        ("RELU6", [q8(4)], [q8(4, scale=1e-38)]), {}, "the scale of the tensor",
    ),
    "places that are no integers": (
        ("STRIDED_SLICE", [f32(4), const([np.nan], "float32"), const([2]), const([1])], [f32(2)],
         "StridedSliceOptions"), {}, "where integers go",
    ),
    "fewer ends than begins": (
        ("STRIDED_SLICE", [f32(4, 4), const([0, 0]), const([2]), const([1, 1])], [f32(2, 4)],
         "StridedSliceOptions"), {}, "not as many",
    ),
}  # fmt: skip


def test_the_largest_none():
    outputs = [f32(2, 0), T((2, 0), "int32")]
    data = model("TOPK_V2", [f32(2, 3), const(np.int32(0))], outputs, "TopKV2Options")
    mod, _ = relay.frontend.from_tflite(data)
    types = relay.transform.InferType()(mod)["main"].ret_type.fields
    assert [t.concrete_shape for t in types] == [(2, 0), (2, 0)]


@pytest.mark.parametrize("name", REFUSED)
def test_parts_that_do_not_fit_are_refused_in_words(name):
    arguments, fields, words = REFUSED[name]
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_tflite(model(*arguments, **fields))
