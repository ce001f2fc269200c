"""Operators that move, choose and reduce: int8 and int16 as in LiteRT, bit for bit."""

import numpy as np
import pytest
from builder import T, const, model
from litert import Peer, compiled, outputs

RNG = np.random.default_rng(21)
CASES = {}
VERSIONS = {"BROADCAST_TO": 2}  # of operators that LiteRT has in later versions only


def q8(*shape, scale=0.05, zero=3):
    return T(shape, "int8", scale, zero)


def q16(*shape, scale=0.0004):
    return T(shape, "int16", scale, 0)


def f32(*shape):
    return T(shape, "float32")


def i32(*shape):
    return T(shape, "int32")


KINDS = {"int8": q8, "int16": q16, "float": f32, "int32": i32}


def case(name, kind, inputs, outs, options=None, **fields):
    assert name not in CASES, name
    CASES[name] = (kind, inputs, outs, options, fields)


def each(name, kind, make, options=None, dtypes=("int8", "int16", "float"), **fields):
    """One case per dtype; `make` gives (inputs, outputs) from the maker of tensors."""
    for dtype in dtypes:
        inputs, outs = make(KINDS[dtype])
        case(f"{name}-{dtype}", kind, inputs, outs, options, **fields)


def flag(*shape):
    return T(shape, "bool")


# Elements change places.
each("reshape", "RESHAPE", lambda t: ([t(2, 6), const([3, 4])], [t(3, 4)]), "ReshapeOptions",
     newShape=[3, 4])  # fmt: skip
each("expand-dims", "EXPAND_DIMS", lambda t: ([t(2, 6), const([1])], [t(2, 1, 6)]),
     "ExpandDimsOptions")  # fmt: skip
each("squeeze", "SQUEEZE", lambda t: ([t(2, 1, 6)], [t(2, 6)]), "SqueezeOptions", squeezeDims=[1])
each("transpose", "TRANSPOSE", lambda t: ([t(2, 3, 4), const([2, 0, 1])], [t(4, 2, 3)]),
     "TransposeOptions")  # fmt: skip
each("concatenation", "CONCATENATION", lambda t: ([t(2, 3), t(2, 5)], [t(2, 8)]),
     "ConcatenationOptions", axis=1)  # fmt: skip
each("pack", "PACK", lambda t: ([t(2, 3), t(2, 3)], [t(2, 2, 3)]), "PackOptions", axis=1,
     valuesCount=2, dtypes=("int8", "float", "int32"))  # fmt: skip
each("unpack", "UNPACK", lambda t: ([t(2, 3)], [t(2), t(2), t(2)]), "UnpackOptions", axis=1, num=3,
     dtypes=("int8", "float", "int32"))  # fmt: skip
each("split", "SPLIT", lambda t: ([const(np.int32(1)), t(2, 6)], [t(2, 3), t(2, 3)]),
     "SplitOptions", numSplits=2)  # fmt: skip
each("split-v", "SPLIT_V", lambda t: ([t(2, 6), const([2, 4]), const(np.int32(1))],
     [t(2, 2), t(2, 4)]), "SplitVOptions", numSplits=2)  # fmt: skip
each("slice", "SLICE", lambda t: ([t(4, 6), const([1, 2]), const([2, -1])], [t(2, 4)]),
     "SliceOptions")  # fmt: skip
each("tile", "TILE", lambda t: ([t(2, 3), const([2, 1])], [t(4, 3)]), "TileOptions",
     dtypes=("float", "int32"))  # fmt: skip
each("broadcast-to", "BROADCAST_TO", lambda t: ([t(1, 3), const([4, 3])], [t(4, 3)]),
     "BroadcastToOptions")  # fmt: skip
each("reverse", "REVERSE_V2", lambda t: ([t(2, 3), const([1])], [t(2, 3)]), "ReverseV2Options",
     dtypes=("int16", "float", "int32"))  # fmt: skip
each("gather", "GATHER", lambda t: ([t(4, 3), const([2, 0, 3])], [t(3, 3)]), "GatherOptions")
each("gather-nd", "GATHER_ND", lambda t: ([t(4, 3), const([[2, 0], [3, 1]])], [t(2)]),
     "GatherNdOptions")  # fmt: skip
each("depth-to-space", "DEPTH_TO_SPACE", lambda t: ([t(1, 2, 3, 8)], [t(1, 4, 6, 2)]),
     "DepthToSpaceOptions", blockSize=2, dtypes=("int8", "float"))  # fmt: skip
each("space-to-depth", "SPACE_TO_DEPTH", lambda t: ([t(1, 4, 6, 2)], [t(1, 2, 3, 8)]),
     "SpaceToDepthOptions", blockSize=2, dtypes=("int8", "float"))  # fmt: skip
each("space-to-batch", "SPACE_TO_BATCH_ND", lambda t: (
     [t(1, 4, 4, 2), const([2, 2]), const([[0, 0], [0, 2]])], [t(4, 2, 3, 2)]),
     "SpaceToBatchNDOptions")  # fmt: skip
each("batch-to-space", "BATCH_TO_SPACE_ND", lambda t: (
     [t(4, 2, 3, 2), const([2, 2]), const([[0, 0], [0, 2]])], [t(1, 4, 4, 2)]),
     "BatchToSpaceNDOptions")  # fmt: skip
each("pad", "PAD", lambda t: ([t(2, 3), const([[1, 0], [0, 2]])], [t(3, 5)]), "PadOptions")
each("mirror-pad", "MIRROR_PAD", lambda t: ([t(2, 3), const([[1, 0], [0, 2]])], [t(3, 5)]),
     "MirrorPadOptions", mode=0, dtypes=("int8", "float"))  # fmt: skip
each("update-slice", "DYNAMIC_UPDATE_SLICE", lambda t: ([t(4, 5), t(2, 3), const([1, 2])],
     [t(4, 5)]), "DynamicUpdateSliceOptions", dtypes=("int8", "float"))  # fmt: skip
each("nearest", "RESIZE_NEAREST_NEIGHBOR", lambda t: ([t(1, 3, 4, 2), const([5, 7])],
     [t(1, 5, 7, 2)]), "ResizeNearestNeighborOptions", halfPixelCenters=True)  # fmt: skip
each("bilinear", "RESIZE_BILINEAR", lambda t: ([t(1, 3, 4, 2), const([5, 7])], [t(1, 5, 7, 2)]),
     "ResizeBilinearOptions", halfPixelCenters=True)  # fmt: skip
for number, (begin, end, strides, shape, masks) in enumerate(
    [
        ([1, 0, 0], [3, 0, 2], [1, 1, 1], (2, 1, 2, 4), {"newAxisMask": 2}),
        ([0, 1], [0, 3], [1, 1], (3, 5, 2), {"ellipsisMask": 1}),
        ([1, 0, 3], [2, 0, 1], [1, 1, -1], (5, 2), {"ellipsisMask": 2, "shrinkAxisMask": 1}),
        ([0, 0, 0], [0, 0, 0], [1, 1, 1], (1, 3, 5, 4), {"newAxisMask": 1, "ellipsisMask": 2,
                                                         "endMask": 4}),
        ([0, -2], [9, 9], [2, 1], (2, 2, 4), {}),
    ]
):  # fmt: skip
    if number == 2:
        shape = (5, 2)
    each(f"strided-slice-{number}", "STRIDED_SLICE", lambda t, a=begin, b=end, c=strides, s=shape: (
         [t(3, 5, 4), const(a), const(b), const(c)], [t(*s)]), "StridedSliceOptions",
         **masks)  # fmt: skip

# Choosing and comparing.
each("select-v2", "SELECT_V2", lambda t: ([flag(3, 1), t(3, 4), t(1, 4)], [t(3, 4)]),
     "SelectV2Options")  # fmt: skip
each("select", "SELECT", lambda t: ([flag(3), t(3, 4), t(3, 4)], [t(3, 4)]), "SelectOptions")
each("maximum", "MAXIMUM", lambda t: ([t(3, 4), t(3, 4)], [t(3, 4)]), "MaximumMinimumOptions",
     dtypes=("int16", "int32"))  # fmt: skip
each("minimum", "MINIMUM", lambda t: ([t(3, 4), t(3, 4)], [t(3, 4)]), "MaximumMinimumOptions",
     dtypes=("int16", "int32"))  # fmt: skip
each("top-k", "TOPK_V2", lambda t: ([t(3, 9), const(np.int32(4))], [t(3, 4), i32(3, 4)]),
     "TopKV2Options", dtypes=("int8", "float", "int32"))  # fmt: skip
for kind in ("ARG_MAX", "ARG_MIN"):
    name = "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"
    each(kind.lower(), kind, lambda t: ([t(3, 9), const(np.int32(1))], [i32(3)]), name,
         dtypes=("int8", "float", "int32"), outputType=2)  # fmt: skip
each("one-hot", "ONE_HOT", lambda t: (
     [const([2, 0, 5, -1]), const(np.int32(4)), t(), t()], [t(4, 4)]), "OneHotOptions", axis=-1,
     dtypes=("float", "int32"))  # fmt: skip
each("embedding", "EMBEDDING_LOOKUP", lambda t: (
     [const([2, 0, 3]), const(RNG.standard_normal((4, 5)), "float32")], [t(3, 5)]),
     dtypes=("float",))  # fmt: skip

# Reductions.  LiteRT's reference kernel of SUM adds stored integers without a scale; its other one
# follows the scales, as TensorFlow Lite Micro does.
NOT_REFERENCE = ("sum-int8",)
case("sum-int8", "SUM", [q8(3, 7), const([1])], [q8(3, scale=0.2, zero=-7)], "ReducerOptions")
case("mean-rescaled-int8", "MEAN", [q8(3, 7), const([1])], [q8(3, scale=0.02, zero=-7)],
     "ReducerOptions")  # fmt: skip
case("sum-float", "SUM", [f32(3, 7), const([1])], [f32(3)], "ReducerOptions")
for kind in ("MEAN", "REDUCE_MAX", "REDUCE_MIN"):
    dtypes = ("int8", "int16", "float")
    each(f"{kind.lower()}-keep", kind, lambda t: (
         [t(2, 4, 5, 3), const([1, 2])], [t(2, 1, 1, 3)]), "ReducerOptions", dtypes=dtypes,
         keepDims=True)  # fmt: skip
    each(f"{kind.lower()}-drop", kind, lambda t: ([t(3, 7), const([-1])], [t(3)]), "ReducerOptions",
         dtypes=dtypes)  # fmt: skip
each("reduce-prod", "REDUCE_PROD", lambda t: ([t(3, 5), const([1])], [t(3)]), "ReducerOptions",
     dtypes=("float", "int32"))  # fmt: skip
for kind in ("REDUCE_ANY", "REDUCE_ALL"):
    case(kind.lower(), kind, [flag(3, 2), const([1])], [flag(3)], "ReducerOptions")
each("cumsum", "CUMSUM", lambda t: ([t(3, 5), const(np.int32(1))], [t(3, 5)]), "CumsumOptions",
     dtypes=("float", "int32"), exclusive=True)  # fmt: skip

# Numbers.
for kind in ("SQRT", "SIGN", "CEIL", "FLOOR"):
    options = {"SIGN": "SignOptions"}.get(kind)
    case(f"{kind.lower()}-float", kind, [f32(3, 20)], [f32(3, 20)], options)
case("neg-int32", "NEG", [i32(3, 9)], [i32(3, 9)], "NegOptions")
case("pow-int32", "POW", [const(RNG.integers(-3, 4, (3, 4))), const([0, 1, 2, 3])], [i32(3, 4)],
     "PowOptions")  # fmt: skip
case("relu-0-to-1", "RELU_0_TO_1", [f32(3, 9)], [f32(3, 9)])
case("gelu", "GELU", [f32(3, 9)], [f32(3, 9)], "GeluOptions", approximate=False)
case("gelu-approximate", "GELU", [f32(3, 9)], [f32(3, 9)], "GeluOptions", approximate=True)
case("gelu-int8", "GELU", [q8(3, 90)], [q8(3, 90, scale=0.04, zero=-100)], "GeluOptions")
case("l2-pool", "L2_POOL_2D", [f32(1, 6, 6, 3)], [f32(1, 3, 3, 3)], "Pool2DOptions", padding=1,
     strideW=2, strideH=2, filterWidth=2, filterHeight=2)  # fmt: skip
case("shape", "SHAPE", [q8(3, 7)], [i32(2)], "ShapeOptions", outType=2)
case("rank", "RANK", [q8(3, 7)], [i32()], "RankOptions")
case("range", "RANGE", [const(np.int32(2)), const(np.int32(11)), const(np.int32(3))], [i32(3)],
     "RangeOptions")  # fmt: skip
case("broadcast-args", "BROADCAST_ARGS", [const([1, 4]), const([3, 1])], [i32(2)])
case("fill-int8", "FILL", [const([2, 3]), q8()], [q8(2, 3)], "FillOptions")
case("zeros-like-int32", "ZEROS_LIKE", [i32(2, 3)], [i32(2, 3)], "ZerosLikeOptions")
each("prelu", "PRELU", lambda t: ([t(2, 4, 4, 3), const(RNG.integers(-99, 99, (1, 1, 3)), "int8",
     0.01, 0)], [t(2, 4, 4, 3)]), dtypes=("int8",))  # fmt: skip
case("relu-int16", "RELU", [q16(3, 50)], [q16(3, 50)])
case("relu6-int16", "RELU6", [q16(3, 50)], [q16(3, 50)])
case("batch-matmul-int16", "BATCH_MATMUL", [q16(2, 3, 8), q16(2, 8, 5)],
     [q16(2, 3, 5, scale=0.0005)], "BatchMatMulOptions")  # fmt: skip
for step in (0.002, 0.03, 0.1, 0.5):
    case(f"log-softmax-{step}", "LOG_SOFTMAX", [q8(4, 37, scale=step)],
         [q8(4, 37, scale=1 / 16, zero=127)], "LogSoftmaxOptions")  # fmt: skip
case("log-softmax-long", "LOG_SOFTMAX", [q8(2, 2000, scale=0.01)],
     [q8(2, 2000, scale=1 / 16, zero=127)], "LogSoftmaxOptions")  # fmt: skip
for source, target in (("int8", "float32"), ("int32", "int8"), ("bool", "float32"),
                       ("int16", "int32"), ("float32", "int32")):  # fmt: skip
    case(f"cast-{source}-{target}", "CAST", [T((3, 9), source)], [T((3, 9), target)],
         "CastOptions")  # fmt: skip


# The same operator on other dtypes than int8 takes the same way for the most part.
OTHERS = ("-int16", "-float", "-int32")
NAMES = [pytest.param(n, marks=pytest.mark.long) if n.endswith(OTHERS) else n for n in CASES]


@pytest.mark.parametrize("name", NAMES)
def test_operator_equals_litert(name):
    kind, inputs, outs, options, fields = CASES[name]
    data = model(kind, inputs, outs, options, version=VERSIONS.get(kind, 1), **fields)
    peer, executor = Peer(data, name not in NOT_REFERENCE), compiled(data)
    rng = np.random.default_rng(6)
    for _ in range(2):
        values = peer.random_inputs(rng)
        if name.startswith("sqrt"):
            values = [np.abs(v) for v in values]
        for got, want in zip(outputs(executor, values), peer(values), strict=True):
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            if want.dtype == np.float32:
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
            elif name in NOT_REFERENCE:  # its factor is a float32
                assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
            else:
                np.testing.assert_array_equal(got, want)
