"""TFLite files whose sizes stay open: one library for all of them, against LiteRT resized."""

import numpy as np
import pytest
from builder import TYPES, Node, T, const, program
from litert import Peer, compiled, outputs

from slipway.errors import ModelError, SlipwayError
from slipway.frontends.tflite.importer import from_tflite
from slipway.relay import Any as Open
from slipway.relay import Dim

TYPES["complex64"] = 8
RNG = np.random.default_rng(11)
N, H, W = Dim("n", 1, 6), Dim("h", 5, 40), Dim("w", 5, 40)


def weights(*shape):
    return const(RNG.standard_normal(shape) / 4, "float32")


def compare(data, ranges, sizes, tolerance=1e-5, reference=False):
    """Compile once for `ranges`, by input, and run every size here and in LiteRT."""
    executor, rng = compiled(data, shape_dict=ranges), np.random.default_rng(3)
    for shapes in sizes:
        peer = Peer(data, reference, allocate=False)
        for detail, shape in zip(peer.inputs, shapes, strict=True):
            peer.run_time.resize_tensor_input(detail["index"], shape, strict=True)
        peer.run_time.allocate_tensors()
        peer.inputs, peer.outputs = (
            peer.run_time.get_input_details(),
            peer.run_time.get_output_details(),
        )
        inputs = peer.random_inputs(rng)
        for got, want in zip(outputs(executor, inputs), peer(inputs), strict=True):
            assert got.shape == want.shape
            if want.dtype.kind == "f":
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(got, want)


IMAGES = [[(1, 5, 5, 3)], [(2, 8, 13, 3)], [(6, 40, 39, 3)], [(1, 7, 40, 3)]]


def test_images_of_any_size_with_same_padding():
    """Odd and even extents are padded differently at stride 2."""
    x, a, b, c, d = (T((-1, -1, -1, k), name=str(k)) for k in (3, 4, 4, 4, 4))
    strided = {"padding": 0, "strideH": 2, "strideW": 2}
    window = {**strided, "filterHeight": 2, "filterWidth": 2}
    y = T((-1, 4))
    nodes = [
        Node("CONV_2D", [x, weights(4, 3, 3, 3), weights(4)], [a], "Conv2DOptions", strided),
        Node("MAX_POOL_2D", [a], [b], "Pool2DOptions", window),
        Node("DEPTHWISE_CONV_2D", [b, weights(1, 3, 3, 4), weights(4)], [c],
             "DepthwiseConv2DOptions", {**strided, "depthMultiplier": 1}),
        Node("AVERAGE_POOL_2D", [c], [d], "Pool2DOptions", window),
        Node("MEAN", [d, const([1, 2])], [y], "ReducerOptions"),
    ]  # fmt: skip
    compare(program((nodes, [x], [y])), {"3": (N, H, W, 3)}, IMAGES)


def test_integers_of_any_size_with_same_padding():
    x, a, b = (T((-1, -1, -1, k), "int8", 0.05, 3, name=f"q{k}") for k in (3, 4, 4))
    kernel = const(RNG.integers(-90, 90, (4, 3, 3, 3)), "int8", 0.02)
    bias = const(RNG.integers(-900, 900, 4), "int32", 0.001)
    nodes = [
        Node("CONV_2D", [x, kernel, bias], [a], "Conv2DOptions",
             {"padding": 0, "strideH": 2, "strideW": 2}),
        Node("MAX_POOL_2D", [a], [b], "Pool2DOptions",
             {"padding": 0, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}),
    ]  # fmt: skip
    compare(program((nodes, [x], [b])), {"q3": (N, H, W, 3)}, IMAGES, reference=True)


def test_sizes_that_the_model_computes():
    """SHAPE, STRIDED_SLICE, PACK and RESHAPE, as Keras writes a Flatten, and zeros of a size."""
    x, size, rows = T((-1, 4, 6), name="x"), T((3,), "int32"), T((), "int32")
    shape, flat, y = T((2,), "int32"), T((-1, 24)), T((-1, 5))
    zeros_shape, zeros, both = T((2,), "int32"), T((-1, 3)), T((-1, 8))
    cut = {"shrinkAxisMask": 1}
    nodes = [
        Node("SHAPE", [x], [size], "ShapeOptions", {"outType": 2}),
        Node("STRIDED_SLICE", [size, const([0]), const([1]), const([1])], [rows],
             "StridedSliceOptions", cut),
        Node("PACK", [rows, const(24)], [shape], "PackOptions", {"valuesCount": 2}),
        Node("RESHAPE", [x, shape], [flat], "ReshapeOptions"),
        Node("FULLY_CONNECTED", [flat, weights(5, 24), weights(5)], [y],
             "FullyConnectedOptions"),
        Node("PACK", [rows, const(3)], [zeros_shape], "PackOptions", {"valuesCount": 2}),
        Node("FILL", [zeros_shape, const(0.5, "float32")], [zeros], "FillOptions"),
        Node("CONCATENATION", [y, zeros], [both], "ConcatenationOptions", {"axis": 1}),
    ]  # fmt: skip
    data = program((nodes, [x], [both, size]))
    compare(data, {"x": (N, 4, 6)}, [[(n, 4, 6)] for n in (1, 2, 5, 6)])


@pytest.mark.parametrize("kind", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("option", ["halfPixelCenters", "alignCorners", ""])
def test_images_resized_to_twice_their_size(kind, option):
    x, y = T((-1, -1, -1, 3), name="x"), T((-1, -1, -1, 3))
    size, spatial, twice = T((4,), "int32"), T((2,), "int32"), T((2,), "int32")
    options = "ResizeBilinearOptions" if "BI" in kind else "ResizeNearestNeighborOptions"
    nodes = [
        Node("SHAPE", [x], [size], "ShapeOptions", {"outType": 2}),
        Node("STRIDED_SLICE", [size, const([1]), const([3]), const([1])], [spatial],
             "StridedSliceOptions"),
        Node("MUL", [spatial, const([2, 2])], [twice], "MulOptions"),
        Node(kind, [x, twice], [y], options, {option: True} if option else {}),
    ]  # fmt: skip
    sizes = [[(1, 5, 5, 3)], [(3, 8, 13, 3)], [(2, 16, 9, 3)]]
    small = Dim("h", 5, 16), Dim("w", 5, 16)  # positions are float32 there
    compare(program((nodes, [x], [y])), {"x": (N, *small, 3)}, sizes)


LENGTHS = [[(n, t, 8)] for n, t in ((1, 2), (3, 9), (2, 30), (6, 17))]


def sequence(*made):
    """Nodes over x of (n, t, 8), each (kind, more inputs, shape of its result, options, fields)."""
    x = T((-1, -1, 8), name="x")
    nodes, last = [], x
    for kind, more, shape, options, fields in made:
        out = T(shape[:-1], shape[-1]) if shape[-1] == "complex64" else T(shape)
        nodes.append(Node(kind, [last, *more], [out], options, fields))
        last = out
    return program((nodes, [x], [last]))


SEQUENCES = {
    "attention's products": [
        ("FULLY_CONNECTED", [weights(8, 8), weights(8)], (-1, -1, 8), "FullyConnectedOptions",
         {"keepNumDims": True}),
        ("SOFTMAX", [], (-1, -1, 8), "SoftmaxOptions", {"beta": 1.0}),
        ("TRANSPOSE", [const([0, 2, 1])], (-1, 8, -1), "TransposeOptions", {}),
        ("MEAN", [const([2])], (-1, 8), "ReducerOptions", {}),
    ],
    "slices": [
        ("STRIDED_SLICE", [const([0, 1, 2]), const([0, 0, 7]), const([1, 1, 2])], (-1, -1, 3),
         "StridedSliceOptions", {"beginMask": 1, "endMask": 3}),
        ("SLICE", [const([0, 0, 1]), const([-1, -1, 2])], (-1, -1, 2), "SliceOptions", {}),
        ("PAD", [const([[0, 0], [2, 1], [0, 0]])], (-1, -1, 2), "PadOptions", {}),
        ("REVERSE_V2", [const([1])], (-1, -1, 2), "ReverseV2Options", {}),
    ],
    "from the end": [
        ("STRIDED_SLICE", [const([0, -1, 0]), const([0, 0, 0]), const([1, 1, 1])], (-1, 8),
         "StridedSliceOptions", {"beginMask": 5, "endMask": 7, "shrinkAxisMask": 2}),
    ],
    "products of matrices": [
        ("BATCH_MATMUL", [weights(1, 8, 5)], (-1, -1, 5), "BatchMatMulOptions", {}),
        ("EXPAND_DIMS", [const(2)], (-1, -1, 1, 5), "ExpandDimsOptions", {}),
        ("RFFT2D", [const([1, 4])], (-1, -1, 1, 3, "complex64"), "", {}),
        ("COMPLEX_ABS", [], (-1, -1, 1, 3), "", {}),
    ],
    "sums, orders": [
        ("CUMSUM", [const(1)], (-1, -1, 8), "CumsumOptions", {}),
        ("TILE", [const([1, 2, 1])], (-1, -1, 8), "TileOptions", {}),
        ("ARG_MAX", [const(1)], (-1, 8), "ArgMaxOptions", {"outputType": 2}),
    ],
    "split": [
        ("SPLIT_V", [const([8]), const(2)], (-1, -1, 8), "SplitVOptions", {"numSplits": 1}),
        ("EXPAND_DIMS", [const(1)], (-1, 1, -1, 8), "ExpandDimsOptions", {}),
        ("CONV_2D", [weights(4, 1, 3, 8), weights(4)], (-1, 1, -1, 4), "Conv2DOptions",
         {"padding": 0, "strideH": 1, "strideW": 1}),
        ("SQUEEZE", [], (-1, -1, 4), "SqueezeOptions", {"squeezeDims": [1]}),
    ],
    "gather": [
        ("GATHER", [const([3, 1])], (-1, -1, 2), "GatherOptions", {"axis": 2}),
        ("MIRROR_PAD", [const([[0, 0], [1, 1], [0, 0]])], (-1, -1, 2), "MirrorPadOptions",
         {"mode": 0}),
        ("LOG_SOFTMAX", [], (-1, -1, 2), "LogSoftmaxOptions", {}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_of_any_length(name):
    compare(sequence(*SEQUENCES[name]), {"x": (N, Dim("t", 2, 32), 8)}, LENGTHS)


def test_what_a_file_fixes_stays_fixed():
    x, y = T((-1, 8), name="x"), T((-1, 8))
    data = program(([Node("RELU", [x], [y])], [x], [y]))
    with pytest.raises(ModelError, match="the model has"):
        from_tflite(data, shape_dict={"x": (N, Dim("t", 1, 8))})
    with pytest.raises(ModelError, match=r'relay\.Dim\("n", 1, 8\)'):
        from_tflite(data, shape_dict={"x": (Open(), 8)})
    executor = compiled(data, shape_dict={"x": (N, 8)})
    with pytest.raises(SlipwayError, match="n is 1 to 6"):
        executor.set_input(0, np.zeros((7, 8), "float32"))


@pytest.mark.parametrize("is_open", [False, True])
def test_what_is_found_in_the_data(is_open):
    """Positions, what lies there and a sum over as many as there are: none, some, all."""
    x, threshold = T((-1, 4), name="x"), const(0.3, "float32")
    mask, indices = T((-1, 4), "bool"), T((-1, 2), "int64")
    values, total = T((-1,)), T((1,))
    nodes = [
        Node("GREATER", [x, threshold], [mask], "GreaterOptions"), Node("WHERE", [mask], [indices]),
        Node("GATHER_ND", [x, indices], [values], "GatherNdOptions"),
        Node("SUM", [values, const([0])], [total], "ReducerOptions", {"keepDims": True}),
    ]  # fmt: skip
    data = program((nodes, [x], [indices, values, total]))
    sizes = (5, 1, 6) if is_open else (5, 5)
    executor = compiled(data, shape_dict={"x": (N if is_open else 5, 4)})
    for way, size in enumerate((*sizes, sizes[0])):
        peer = Peer(data, reference=False, allocate=False)
        peer.run_time.resize_tensor_input(peer.inputs[0]["index"], (size, 4))
        peer.run_time.allocate_tensors()
        given = RNG.standard_normal((size, 4)).astype(np.float32)
        given = given if way < len(sizes) else -np.abs(given)
        found = np.argwhere(given > np.float32(0.3))
        lying = given[tuple(found.T)]
        wanted = [found, lying, lying.sum(keepdims=True)]
        if len(found):  # LiteRT does not give tensors without elements
            wanted = peer([given])
        for got, want in zip(outputs(executor, [given]), wanted, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
