"""One model per operator and form: quantised ones equal LiteRT bit for bit, real ones to 1e-5."""

import numpy as np
import pytest
from builder import T, const, model
from litert import Peer, compiled, outputs

from slipway.frontends.tflite.importer import initial_state
from slipway.relay import quantization as rule

RNG = np.random.default_rng(11)


def q8(*shape, scale=0.05, zero=3):
    return T(shape, "int8", scale, zero)


def u8(*shape, scale=0.04, zero=120):
    return T(shape, "uint8", scale, zero)


def q16(*shape, scale=0.0004):
    return T(shape, "int16", scale, 0)


def f32(*shape):
    return T(shape, "float32")


def weights(*shape, axis=None, scale=0.02):
    data = RNG.integers(-127, 128, shape).astype(np.int8)
    if axis is None:
        return const(data, "int8", scale)
    scales = RNG.uniform(0.005, 0.03, shape[axis]).astype(np.float32)
    return const(data, "int8", scales, 0, axis)


def bias(count, dtype="int32", scale=0.001):
    return const(RNG.integers(-2000, 2000, count), dtype, np.full(1, scale, np.float32))


def per_channel_bias(data, kernel, dtype="int32"):
    scales = np.asarray(kernel.scale, np.float32) * np.float32(data.scale)
    values = RNG.integers(-2000, 2000, scales.size)
    return const(values, dtype, scales)


CASES = {}


def case(name, *args, tolerance=None, **options):
    CASES[name] = (args, options, tolerance)


def unary(kind, name, source, target, options=None, **fields):
    case(name, kind, [source], [target], options, **fields)


def binary(kind, name, one, other, out, options=None, **fields):
    case(name, kind, [one, other], [out], options, **fields)


# -- convolutions and products ---------------------------------------------------------------------


def conv(name, data, kernel, out, *, dtype="int32", kind="CONV_2D", act=0, pad=0, stride=1, **more):
    table = "Conv2DOptions" if kind == "CONV_2D" else "DepthwiseConv2DOptions"
    case(
        name, kind, [data, kernel, per_channel_bias(data, kernel, dtype)], [out], table,
        padding=pad, strideW=stride, strideH=stride, fusedActivationFunction=act,
        dilationWFactor=more.pop("dilation", 1), dilationHFactor=more.pop("dilation_h", 1), **more,
    )  # fmt: skip


conv(
    "conv-same-relu6", q8(1, 9, 8, 3), weights(8, 3, 3, 3, axis=0), q8(1, 9, 8, 8, scale=0.2), act=3
)
conv(
    "conv-stride", q8(2, 9, 8, 4), weights(6, 3, 2, 4, axis=0), q8(2, 5, 4, 6, scale=0.2), stride=2
)
conv("conv-valid", q8(1, 9, 8, 5), weights(7, 3, 3, 5, axis=0), q8(1, 7, 6, 7, scale=0.2), pad=1)
conv("conv-dilated", q8(1, 9, 9, 3), weights(4, 3, 3, 3, axis=0), q8(1, 5, 5, 4, scale=0.2), pad=1,
     dilation=2, dilation_h=2)  # fmt: skip
conv("conv-1x1", q8(1, 6, 6, 16), weights(32, 1, 1, 16, axis=0), q8(1, 6, 6, 32, scale=0.2), act=1)
conv("conv-int16", q16(1, 6, 6, 4), weights(5, 3, 3, 4, axis=0), q16(1, 6, 6, 5, scale=0.002),
     dtype="int64")  # fmt: skip
conv("depthwise", q8(1, 9, 8, 8), weights(1, 3, 3, 8, axis=3), q8(1, 9, 8, 8, scale=0.2),
     kind="DEPTHWISE_CONV_2D", depthMultiplier=1, act=1)  # fmt: skip
conv("depthwise-multiplier", q8(1, 9, 8, 3), weights(1, 3, 3, 6, axis=3), q8(1, 5, 4, 6, scale=0.2),
     kind="DEPTHWISE_CONV_2D", depthMultiplier=2, stride=2)  # fmt: skip
conv(
    "depthwise-one-channel",
    q8(1, 9, 8, 1),
    weights(1, 3, 3, 4, axis=3),
    q8(1, 9, 8, 4, scale=0.2),
    kind="DEPTHWISE_CONV_2D",
    depthMultiplier=4,
)
conv("depthwise-int16", q16(1, 6, 6, 4), weights(1, 3, 3, 4, axis=3), q16(1, 6, 6, 4, scale=0.001),
     kind="DEPTHWISE_CONV_2D", depthMultiplier=1, dtype="int64")  # fmt: skip


def uint8_kernel(*shape):
    return const(RNG.integers(0, 256, shape), "uint8", 0.02, 131)


case("conv-uint8", "CONV_2D", [u8(1, 7, 7, 3), uint8_kernel(4, 3, 3, 3), bias(4, scale=0.0008)],
     [u8(1, 7, 7, 4, scale=0.3)], "Conv2DOptions", padding=0, strideW=1, strideH=1)  # fmt: skip
case("depthwise-uint8", "DEPTHWISE_CONV_2D",
     [u8(1, 7, 7, 4), uint8_kernel(1, 3, 3, 4), bias(4, scale=0.0008)], [u8(1, 7, 7, 4, scale=0.3)],
     "DepthwiseConv2DOptions", padding=0, strideW=1, strideH=1, depthMultiplier=1)  # fmt: skip
case("dense", "FULLY_CONNECTED", [q8(3, 40), weights(16, 40), bias(16)], [q8(3, 16, scale=0.3)],
     "FullyConnectedOptions", fusedActivationFunction=1)  # fmt: skip
case("dense-keep", "FULLY_CONNECTED", [q8(2, 3, 8), weights(4, 8), None], [q8(2, 3, 4, scale=0.3)],
     "FullyConnectedOptions", keepNumDims=True)  # fmt: skip
case("dense-int16", "FULLY_CONNECTED", [q16(3, 20), weights(6, 20), bias(6, "int64", 0.000008)],
     [q16(3, 6, scale=0.002)], "FullyConnectedOptions")  # fmt: skip
case("dense-float", "FULLY_CONNECTED",
     [f32(3, 20), const(RNG.standard_normal((6, 20)), "float32"),
      const(RNG.standard_normal(6), "float32")], [f32(3, 6)], "FullyConnectedOptions",
     fusedActivationFunction=3)  # fmt: skip
case("dense-hybrid", "FULLY_CONNECTED", [f32(3, 20), weights(6, 20), None], [f32(3, 6)],
     "FullyConnectedOptions")  # fmt: skip

for form, make in (("int8", q8), ("float", f32)):
    wide = {"scale": 0.3} if form == "int8" else {}
    case(f"batch-matmul-{form}", "BATCH_MATMUL", [make(2, 3, 4, 5), make(3, 5, 6)],
         [make(2, 3, 4, 6, **wide)], "BatchMatMulOptions")  # fmt: skip
    case(f"batch-matmul-transposed-{form}", "BATCH_MATMUL", [make(2, 5, 4), make(2, 6, 5)],
         [make(2, 4, 6, **wide)], "BatchMatMulOptions", adjX=True, adjY=True)  # fmt: skip
for pad, size in ((0, (8, 10)), (1, (9, 11))):
    for stride in (2,):
        kernel = weights(4, 3, 3, 5, axis=0)
        case(f"transpose-conv-int8-{pad}", "TRANSPOSE_CONV",
             [const([1, *size, 4]), kernel, q8(1, 4, 5, 5),
              per_channel_bias(q8(1), kernel)], [q8(1, *size, 4, scale=0.2)],
             "TransposeConvOptions", padding=pad, strideW=stride, strideH=stride)  # fmt: skip
        case(f"transpose-conv-float-{pad}", "TRANSPOSE_CONV",
             [const([1, *size, 4]), const(RNG.standard_normal((4, 3, 3, 5)), "float32"),
              f32(1, 4, 5, 5)], [f32(1, *size, 4)], "TransposeConvOptions", padding=pad,
             strideW=stride, strideH=stride)  # fmt: skip

# -- pools -----------------------------------------------------------------------------------------

for kind, word in (("AVERAGE_POOL_2D", "average"), ("MAX_POOL_2D", "max")):
    for form, make in (("int8", q8), ("uint8", u8), ("int16", q16), ("float", f32)):
        case(f"{word}-pool-{form}", kind, [make(1, 7, 6, 5)], [make(1, 4, 3, 5)], "Pool2DOptions",
             padding=0, strideW=2, strideH=2, filterWidth=3, filterHeight=2)  # fmt: skip
    case(
        f"{word}-pool-relu",
        kind,
        [q8(1, 6, 6, 8)],
        [q8(1, 3, 3, 8)],
        "Pool2DOptions",
        padding=1,
        strideW=2,
        strideH=2,
        filterWidth=2,
        filterHeight=2,
        fusedActivationFunction=1,
    )

# -- elementwise -----------------------------------------------------------------------------------

for kind in ("ADD", "SUB", "MUL"):
    table, word = f"{kind.capitalize()}Options", kind.lower()
    one, other = q8(2, 5, 7), q8(2, 5, 7, scale=0.031, zero=-11)
    binary(kind, f"{word}-int8", one, other, q8(2, 5, 7, scale=0.09, zero=-5), table)
    binary(kind, f"{word}-relu6", q8(2, 5, 7), q8(7, scale=0.2), q8(2, 5, 7, scale=0.09), table,
           fusedActivationFunction=3)  # fmt: skip
    binary(kind, f"{word}-int16", q16(3, 9), q16(3, 9, scale=0.0003), q16(3, 9, scale=0.001), table,
           **({} if kind == "MUL" else {"potScaleInt16": False}))  # fmt: skip
    binary(
        kind, f"{word}-uint8", u8(3, 9), u8(3, 9, scale=0.02, zero=9), u8(3, 9, scale=0.07), table
    )
    binary(kind, f"{word}-float", f32(2, 3, 4), f32(4), f32(2, 3, 4), table)
    binary(kind, f"{word}-int32", T((3, 4), "int32"), T((3, 4), "int32"), T((3, 4), "int32"), table)
binary("DIV", "div-float", f32(2, 9), f32(2, 9), f32(2, 9), "DivOptions")
for kind in ("MAXIMUM", "MINIMUM"):
    binary(kind, f"{kind.lower()}-int8", q8(3, 5), q8(3, 5), q8(3, 5), "MaximumMinimumOptions")
    binary(kind, f"{kind.lower()}-float", f32(3, 5), f32(1, 5), f32(3, 5), "MaximumMinimumOptions")
binary("SQUARED_DIFFERENCE", "squared-difference-int8", q8(3, 9), q8(3, 9, scale=0.03),
       q8(3, 9, scale=0.5, zero=-128), "SquaredDifferenceOptions")  # fmt: skip
for kind in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    name = "".join(part.capitalize() for part in kind.split("_")) + "Options"
    binary(kind, f"{kind.lower()}-int8", q8(4, 50), q8(4, 50, scale=0.02), T((4, 50), "bool"), name)
    binary(kind, f"{kind.lower()}-int32", T((4, 50), "int32"), T((50,), "int32"),
           T((4, 50), "bool"), name)  # fmt: skip
for kind in ("FLOOR_DIV", "FLOOR_MOD"):
    name = "".join(part.capitalize() for part in kind.split("_")) + "Options"
    binary(kind, f"{kind.lower()}-float", f32(4, 9), f32(4, 9), f32(4, 9), name)
for kind in ("LOGICAL_AND", "LOGICAL_OR"):
    name = "".join(part.capitalize() for part in kind.split("_")) + "Options"
    flag = [T((4, 9), "bool") for _ in range(3)]
    binary(kind, kind.lower(), *flag, name)
case("add-n", "ADD_N", [f32(3, 4), f32(3, 4), f32(3, 4)], [f32(3, 4)], "AddNOptions")
case("select", "SELECT_V2", [T((3, 4), "bool"), q8(3, 4), q8(3, 4)], [q8(3, 4)], "SelectV2Options")

ACTIVATIONS = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
for kind, (scale, zero) in ACTIVATIONS.items():
    for number, source in enumerate((0.05, 0.3, 0.004)):
        unary(kind, f"{kind.lower()}-int8-{number}", q8(4, 300, scale=source, zero=-9),
              q8(4, 300, scale=scale, zero=zero))  # fmt: skip
    unary(kind, f"{kind.lower()}-uint8", u8(4, 300), u8(4, 300, scale=scale, zero=zero + 128))
    for number, source in enumerate((1 / 4096, 0.0002, 0.001)):
        unary(kind, f"{kind.lower()}-int16-{number}", q16(4, 900, scale=source),
              q16(4, 900, scale=1 / 32768))  # fmt: skip
    unary(kind, f"{kind.lower()}-float", f32(4, 30), f32(4, 30))
unary(
    "HARD_SWISH",
    "hard-swish-int8",
    q8(4, 300),
    q8(4, 300, scale=0.04, zero=-20),
    "HardSwishOptions",
)
unary(
    "HARD_SWISH",
    "hard-swish-wide",
    q8(4, 300, scale=0.5),
    q8(4, 300, scale=0.3),
    "HardSwishOptions",
)
unary("HARD_SWISH", "hard-swish-uint8", u8(4, 300), u8(4, 300), "HardSwishOptions")
unary("HARD_SWISH", "hard-swish-float", f32(4, 30), f32(4, 30), "HardSwishOptions")
for alpha in (0.1, 1.5):
    unary("LEAKY_RELU", f"leaky-relu-int8-{alpha}", q8(4, 300), q8(4, 300, scale=0.06, zero=-20),
          "LeakyReluOptions", alpha=alpha)  # fmt: skip
unary("LEAKY_RELU", "leaky-relu-int16", q16(4, 300), q16(4, 300, scale=0.0005), "LeakyReluOptions",
      alpha=0.1)  # fmt: skip
unary("LEAKY_RELU", "leaky-relu-float", f32(4, 30), f32(4, 30), "LeakyReluOptions", alpha=0.1)
binary(
    "PRELU",
    "prelu-int8",
    q8(1, 4, 5, 6),
    const(RNG.integers(-128, 128, (1, 1, 6)), "int8", 0.01, 4),
    q8(1, 4, 5, 6, scale=0.06, zero=-20),
)
binary("PRELU", "prelu-float", f32(1, 4, 5, 6), const(RNG.standard_normal((1, 1, 6)), "float32"),
       f32(1, 4, 5, 6))  # fmt: skip
for kind in ("RELU", "RELU6", "RELU_N1_TO_1"):
    unary(kind, f"{kind.lower()}-int8", q8(4, 300), q8(4, 300, scale=0.06, zero=-20))
    unary(kind, f"{kind.lower()}-same", q8(4, 300), q8(4, 300))
    unary(kind, f"{kind.lower()}-float", f32(4, 30), f32(4, 30))
unary("ELU", "elu-int8", q8(4, 300), q8(4, 300, scale=0.06, zero=-20))
unary("ELU", "elu-float", f32(4, 30), f32(4, 30))
unary("ABS", "abs-int8", q8(4, 300), q8(4, 300, scale=0.06, zero=-20), "AbsOptions")
unary("ABS", "abs-int16", q16(4, 300), q16(4, 300, scale=0.0005), "AbsOptions")
unary("ABS", "abs-float", f32(4, 30), f32(4, 30), "AbsOptions")
unary("RSQRT", "rsqrt-int8", q8(4, 300, zero=-128), q8(4, 300, scale=0.02, zero=-100))
unary("RSQRT", "rsqrt-int16", q16(4, 300, scale=3e-5), q16(4, 300, scale=0.001))
unary("RSQRT", "rsqrt-int16-saturating", q16(4, 300, scale=0.02), q16(4, 300, scale=5e-5))
unary("EXP", "exp-int8", q8(4, 300, scale=0.01), q8(4, 300, scale=0.02, zero=-128), "ExpOptions")
unary("EXP", "exp-int16", q16(4, 300, scale=1e-4), q16(4, 300, scale=1e-3), "ExpOptions")
unary("LOG", "log-int8", q8(4, 300, zero=-128), q8(4, 300, scale=0.05, zero=10))
for kind in ("CEIL", "COS", "FLOOR", "ROUND", "SIN", "EXP"):
    unary(kind, f"{kind.lower()}-float", f32(4, 30), f32(4, 30))
unary("NEG", "neg-float", f32(4, 30), f32(4, 30), "NegOptions")
unary("SQUARE", "square-float", f32(4, 30), f32(4, 30), "SquareOptions")
unary("LOGICAL_NOT", "logical-not", T((4, 30), "bool"), T((4, 30), "bool"))
for beta in (1.0, 0.5):
    unary("SOFTMAX", f"softmax-int8-{beta}", q8(6, 40), q8(6, 40, scale=1 / 256, zero=-128),
          "SoftmaxOptions", beta=beta)  # fmt: skip
unary("SOFTMAX", "softmax-int16-short-rows", q16(2000, 21, scale=7.6e-5),
      q16(2000, 21, scale=2**-15), "SoftmaxOptions", beta=1.0)  # fmt: skip
unary("SOFTMAX", "softmax-wide", q8(6, 12, scale=0.4), q8(6, 12, scale=1 / 256, zero=-128),
      "SoftmaxOptions", beta=1.0)  # fmt: skip
unary("SOFTMAX", "softmax-uint8", u8(6, 12), u8(6, 12, scale=1 / 256, zero=0), "SoftmaxOptions",
      beta=1.0)  # fmt: skip
unary("SOFTMAX", "softmax-int8-int16", q8(6, 40), T((6, 40), "int16", 1 / 65536, -32768),
      "SoftmaxOptions", beta=1.0)  # fmt: skip
unary(
    "SOFTMAX", "softmax-int16", q16(6, 40), q16(6, 40, scale=1 / 32768), "SoftmaxOptions", beta=1.0
)
unary("SOFTMAX", "softmax-float", f32(6, 40), f32(6, 40), "SoftmaxOptions", beta=1.0)
unary("LOG_SOFTMAX", "log-softmax-float", f32(6, 40), f32(6, 40), "LogSoftmaxOptions")
unary("L2_NORMALIZATION", "l2-normalization-float", f32(6, 40), f32(6, 40), "L2NormOptions")

unary(
    "L2_NORMALIZATION",
    "l2-normalization-int8",
    q8(6, 40),
    q8(6, 40, scale=1 / 128, zero=0),
    "L2NormOptions",
)
binary("DIV", "div-uint8", u8(4, 30), u8(4, 30, zero=0), u8(4, 30, zero=90), "DivOptions")

# -- between representations -----------------------------------------------------------------------

unary("QUANTIZE", "quantize-int8", f32(4, 300), q8(4, 300, scale=0.02), "QuantizeOptions")
unary("QUANTIZE", "quantize-uint8", f32(4, 300), u8(4, 300, scale=0.02), "QuantizeOptions")
unary("QUANTIZE", "quantize-int16", f32(4, 300), q16(4, 300), "QuantizeOptions")
unary(
    "QUANTIZE", "requantize-int8", q8(4, 300), q8(4, 300, scale=0.02, zero=-30), "QuantizeOptions"
)
unary("QUANTIZE", "requantize-int8-uint8", q8(4, 300), u8(4, 300), "QuantizeOptions")
unary("QUANTIZE", "requantize-int8-int16", q8(4, 300), q16(4, 300), "QuantizeOptions")
unary("QUANTIZE", "requantize-int16-int8", q16(4, 300), q8(4, 300), "QuantizeOptions")
for factor in (0.5, 1.0, 2.0, 300.7):
    wide = T((4, 300), "int32", 0.0004 / factor)
    unary("QUANTIZE", f"requantize-int16-int32-{factor}", q16(4, 300), wide, "QuantizeOptions")
unary("QUANTIZE", "requantize-int16-int16", q16(4, 300), q16(4, 300, scale=0.003))
unary("QUANTIZE", "requantize-int32-int8", T((4, 300), "int32", 0.03), q8(4, 300))
unary("QUANTIZE", "requantize-int32-int16", T((4, 300), "int32", 0.03), q16(4, 300))
unary("DEQUANTIZE", "dequantize-int8", q8(4, 300), f32(4, 300), "DequantizeOptions")
unary("DEQUANTIZE", "dequantize-int16", q16(4, 300), f32(4, 300), "DequantizeOptions")
unary("CAST", "cast", T((4, 30), "int32"), f32(4, 30), "CastOptions", inDataType=2, outDataType=0)

# -- reductions ------------------------------------------------------------------------------------

for keep in (True, False):
    shape = (2, 1, 1, 5) if keep else (2, 5)
    for kind in ("MEAN", "SUM"):
        word = f"{kind.lower()}-{'keep' if keep else 'drop'}"
        if kind == "MEAN":
            case(f"{word}-int8", kind, [q8(2, 6, 7, 5), const([1, 2])],
                 [q8(*shape, scale=0.07, zero=-8)], "ReducerOptions", keepDims=keep)  # fmt: skip
        case(f"{word}-float", kind, [f32(2, 6, 7, 5), const([1, 2])], [f32(*shape)],
             "ReducerOptions", keepDims=keep)  # fmt: skip
case("mean-int16", "MEAN", [q16(2, 6, 7, 5), const([1, 2])], [q16(2, 5, scale=0.0003)],
     "ReducerOptions", keepDims=False)  # fmt: skip
case("mean-last", "MEAN", [q8(3, 17), const([1])], [q8(3, scale=0.03)], "ReducerOptions")
case("reduce-max", "REDUCE_MAX", [q8(2, 6, 7), const([1])], [q8(2, 7)], "ReducerOptions")
case("reduce-min", "REDUCE_MIN", [q8(2, 6, 7), const([1])], [q8(2, 7)], "ReducerOptions")
for kind in ("ARG_MAX", "ARG_MIN"):
    table = "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"
    case(kind.lower(), kind, [q8(3, 40), const(1)], [T((3,), "int32")], table, outputType=2)
case("cumsum", "CUMSUM", [f32(3, 5), const(1)], [f32(3, 5)], "CumsumOptions", exclusive=True,
     reverse=True)  # fmt: skip

# -- moves -----------------------------------------------------------------------------------------

case("transpose", "TRANSPOSE", [q8(2, 3, 4), const([2, 0, 1])], [q8(4, 2, 3)], "TransposeOptions")
case(
    "concatenation",
    "CONCATENATION",
    [q8(2, 3), q8(2, 5)],
    [q8(2, 8)],
    "ConcatenationOptions",
    axis=1,
)
case("pack", "PACK", [q8(2, 3), q8(2, 3)], [q8(2, 2, 3)], "PackOptions", axis=1, valuesCount=2)
case("unpack", "UNPACK", [q8(2, 3)], [q8(2), q8(2), q8(2)], "UnpackOptions", axis=1, num=3)
case("split", "SPLIT", [const(1), q8(2, 6)], [q8(2, 3), q8(2, 3)], "SplitOptions", numSplits=2)
case("split-v", "SPLIT_V", [q8(2, 6), const([2, 4]), const(1)], [q8(2, 2), q8(2, 4)],
     "SplitVOptions", numSplits=2)  # fmt: skip
case("slice", "SLICE", [q8(4, 6), const([1, 2]), const([2, -1])], [q8(2, 4)], "SliceOptions")
case("strided-slice", "STRIDED_SLICE",
     [q8(5, 6), const([1, 5]), const([9, 0]), const([2, -2])], [q8(2, 3)], "StridedSliceOptions",
     endMask=1)  # fmt: skip
case("strided-slice-shrink", "STRIDED_SLICE",
     [q8(5, 6), const([-2, 0]), const([0, 4]), const([1, 1])], [q8(4)], "StridedSliceOptions",
     shrinkAxisMask=1)  # fmt: skip
case("pad", "PAD", [q8(1, 3, 4, 2), const([[0, 0], [1, 2], [0, 1], [0, 0]])], [q8(1, 6, 5, 2)],
     "PadOptions")  # fmt: skip
case(
    "pad-v2",
    "PADV2",
    [q8(3, 4), const([[0, 1], [1, 2]]), const([7], "int8", 0.05, 3)],
    [q8(4, 7)],
    "PadV2Options",
)
for mode in (0, 1):
    case(f"mirror-pad-{mode}", "MIRROR_PAD", [q8(4, 5), const([[2, 1], [1, 2]])], [q8(7, 8)],
         "MirrorPadOptions", mode=mode)  # fmt: skip
case("gather", "GATHER", [q8(5, 6), const([4, 0, 2])], [q8(3, 6)], "GatherOptions", axis=0)
case("gather-nd", "GATHER_ND", [q8(5, 6), const([[4, 0], [2, 5]])], [q8(2)], "GatherNdOptions")
case("tile", "TILE", [f32(2, 3), const([2, 2])], [f32(4, 6)], "TileOptions")
case(
    "broadcast-to",
    "BROADCAST_TO",
    [f32(1, 3), const([4, 3])],
    [f32(4, 3)],
    "BroadcastToOptions",
    version=2,
)
case("reverse", "REVERSE_V2", [f32(3, 4), const([1])], [f32(3, 4)], "ReverseV2Options")
case("space-to-depth", "SPACE_TO_DEPTH", [q8(1, 4, 6, 3)], [q8(1, 2, 3, 12)], "SpaceToDepthOptions",
     blockSize=2)  # fmt: skip
case("depth-to-space", "DEPTH_TO_SPACE", [q8(1, 2, 3, 12)], [q8(1, 4, 6, 3)], "DepthToSpaceOptions",
     blockSize=2)  # fmt: skip
case(
    "space-to-batch",
    "SPACE_TO_BATCH_ND",
    [q8(1, 3, 4, 2), const([2, 2]), const([[0, 1], [0, 0]])],
    [q8(4, 2, 2, 2)],
    "SpaceToBatchNDOptions",
)
case(
    "batch-to-space",
    "BATCH_TO_SPACE_ND",
    [q8(4, 2, 2, 2), const([2, 2]), const([[0, 1], [0, 0]])],
    [q8(1, 3, 4, 2)],
    "BatchToSpaceNDOptions",
)
case("fill", "FILL", [const([2, 3]), T((), "float32")], [f32(2, 3)], "FillOptions")
case("zeros-like", "ZEROS_LIKE", [f32(2, 3)], [f32(2, 3)], "ZerosLikeOptions")
for half, align in ((False, False), (True, False), (False, True)):
    word = "half" if half else "align" if align else "plain"
    for form, make in (("int8", q8), ("float", f32)):
        for kind, table in (
            ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
            ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
        ):
            for size in ((7, 9), (2, 3)):
                case(
                    f"{kind.lower()}-{word}-{form}-{size[0]}",
                    kind,
                    [make(1, 4, 5, 3), const(size)],
                    [make(1, *size, 3)],
                    table,
                    alignCorners=align,
                    halfPixelCenters=half,
                )


# Factors whose last bit differs between float32 and doubles, and enough data to see it.
LAST_BIT = q16(40, 500, scale=2**-15), q16(40, 500, scale=3.6063840525457636e-05)
binary("MUL", "mul-int16-last-bit", *LAST_BIT, q16(40, 500, scale=2.163840144930873e-05),
       "MulOptions")  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operator_equals_litert(name):
    args, options, tolerance = CASES[name]
    data = model(*args, **options)
    peer = Peer(data)
    # LiteRT's matrix products round once; see docs/quantization.md.
    executor = compiled(data, dense_rounding="single")
    rng = np.random.default_rng(5)
    for _ in range(3):
        inputs = peer.random_inputs(rng)
        if name.startswith("rsqrt-int16"):
            inputs = [v & 32767 for v in inputs]  # LiteRT takes no negative ones
        elif name.startswith(("rsqrt", "log-int")):
            inputs = [np.maximum(v, -127) for v in inputs]
        if name == "div-uint8":
            inputs[1] = np.maximum(inputs[1], 1)
            # Smaller dividends make LiteRT shift by more than 31, which C leaves undefined.
            inputs[0] = np.where(inputs[0] < 120, 20, 220).astype(np.uint8) + inputs[0] % 16
        for got, want in zip(outputs(executor, inputs), peer(inputs), strict=True):
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            if want.dtype == np.float32:
                np.testing.assert_allclose(got, want, rtol=tolerance or 1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(got, want)


def stateful(kind, inputs, results, options, intermediates=(), **fields):
    """Run three steps in both; ours takes its variables as inputs and gives them as outputs."""
    data = model(kind, inputs, results, options, intermediates, **fields)
    peer, executor = Peer(data), compiled(data, dense_rounding="single")
    peer.run_time.reset_all_variables()
    states = list(initial_state(data).values())
    rng = np.random.default_rng(3)
    for _ in range(3):
        (value,) = peer.random_inputs(rng)
        got, *states = outputs(executor, [value, *states])
        (want,) = peer([value])
        if want.dtype == np.float32:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, want)


def test_svdf_float():
    stateful(
        "SVDF",
        [f32(2, 6), const(RNG.standard_normal((8, 6)), "float32"),
         const(RNG.standard_normal((8, 5)), "float32"), const(RNG.standard_normal(4), "float32"),
         T((2, 40), variable=True)],
        [f32(2, 4)], "SVDFOptions", rank=2,
    )  # fmt: skip


def test_svdf_int8():
    time = const(RNG.integers(-9000, 9000, (8, 5)), "int16", 0.0001)
    stateful(
        "SVDF",
        [q8(2, 6), weights(8, 6), time, bias(4), T((2, 40), "int16", 0.002, 0, variable=True)],
        [q8(2, 4, scale=0.3)], "SVDFOptions", rank=2, fusedActivationFunction=1,
    )  # fmt: skip


def lstm_inputs(data, hidden, cell, matrix, bias_of_gate):
    """The 24 inputs of an LSTM of 6 inputs and 4 units."""
    weights_in = [matrix(4, 6) for _ in range(4)]
    weights_back = [matrix(4, 4) for _ in range(4)]
    biases = [bias_of_gate(4) for _ in range(4)]
    return [
        data, *weights_in, *weights_back, None, None, None, *biases, None, None, hidden, cell,
        None, None, None, None,
    ]  # fmt: skip


def test_reset_variables_hold_zero_points():
    """LiteRT and TensorFlow Lite Micro reset an int8 variable to its zero point, int16 to 0."""
    data = model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        lstm_inputs(
            q8(3, 2, 6, scale=0.02), T((2, 4), "int8", 1 / 128, -37, variable=True),
            T((2, 4), "int16", 2.0**-11, 0, variable=True), lambda *s: weights(*s, scale=0.008),
            lambda n: bias(n, scale=0.00016),
        ),
        [T((3, 2, 4), "int8", 1 / 128, -37)], "UnidirectionalSequenceLSTMOptions", timeMajor=True,
        fusedActivationFunction=4,
    )  # fmt: skip
    hidden, cell = initial_state(data).values()
    np.testing.assert_array_equal(hidden, np.full((2, 4), -37, np.int8))
    np.testing.assert_array_equal(cell, np.zeros((2, 4), np.int16))


@pytest.mark.parametrize("time_major", [False, True])
def test_lstm_float(time_major):
    shape = (3, 2) if time_major else (2, 3)
    stateful(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        lstm_inputs(
            f32(*shape, 6), T((2, 4), variable=True), T((2, 4), variable=True),
            lambda *s: const(RNG.standard_normal(s) * 0.5, "float32"),
            lambda n: const(RNG.standard_normal(n), "float32"),
        ),
        [f32(*shape, 4)], "UnidirectionalSequenceLSTMOptions", timeMajor=time_major,
        fusedActivationFunction=4,
    )  # fmt: skip


def test_lstm_int8():
    shape = (3, 2)
    gates = [T((), "int16", 2.0**-12, 0) for _ in range(4)] + [T((), "int8", 1 / 128, 0)]
    stateful(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        lstm_inputs(
            q8(*shape, 6, scale=0.02), T((2, 4), "int8", 1 / 128, 0, variable=True),
            T((2, 4), "int16", 2.0**-11, 0, variable=True), lambda *s: weights(*s, scale=0.008),
            lambda n: bias(n, scale=0.00016),
        ),
        [T((*shape, 4), "int8", 1 / 128, 0)], "UnidirectionalSequenceLSTMOptions", gates,
        timeMajor=True, fusedActivationFunction=4,
    )  # fmt: skip


def test_detection_post_process():
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
    packer = flexbuffers.Builder()
    with packer.Map():
        for name, value in {
            "max_detections": 5, "max_classes_per_detection": 1, "detections_per_class": 1,
            "num_classes": 3,
        }.items():  # fmt: skip
            packer.Key(name)
            packer.Int(value)
        for name, value in {
            "nms_score_threshold": 0.1, "nms_iou_threshold": 0.5, "y_scale": 10.0,
            "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
        }.items():  # fmt: skip
            packer.Key(name)
            packer.Float(value)
        packer.Key("use_regular_nms")
        packer.Bool(False)
    anchors = np.concatenate([RNG.uniform(0, 1, (30, 2)), RNG.uniform(0.3, 0.9, (30, 2))], 1)
    data = model(
        "TFLite_Detection_PostProcess",
        [f32(1, 30, 4), f32(1, 30, 4), const(anchors, "float32")],
        [f32(1, 5, 4), f32(1, 5), f32(1, 5), f32(1)],
        custom_options=bytes(packer.Finish()),
    )
    peer, executor = Peer(data), compiled(data)
    rng = np.random.default_rng(5)
    for _ in range(4):
        inputs = [
            rng.standard_normal((1, 30, 4)).astype(np.float32),
            rng.uniform(0, 1, (1, 30, 4)).astype(np.float32),
        ]
        for got, want in zip(outputs(executor, inputs), peer(inputs), strict=True):
            np.testing.assert_allclose(got, want.reshape(got.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["MUL", "PRELU"])
def test_factors_of_tensorflow_lite_micro_are_doubles(kind):
    """LiteRT forms them in float32; of 16-bit results that is seen now and then."""
    one, other, out = *LAST_BIT, q16(40, 500, scale=2.163840144930873e-05)
    scales = [np.float32(t.scale) for t in (one, other, out)]
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-32768, 32768, (40, 500)).astype(np.int16) for _ in range(2))
    product = x.astype(np.int32) * y

    def scaled(values, *parts, dtype):
        real = float(np.prod(np.array(parts, dtype)) / scales[2].astype(dtype))
        return rule.multiply_by_quantized_multiplier(values, *rule.quantize_multiplier(real))

    found = {}
    for dtype in (np.float64, np.float32):
        result = scaled(product, *scales[:2], dtype=dtype)
        if kind == "PRELU":
            result = np.where(x < 0, result, scaled(x.astype(np.int32), scales[0], dtype=dtype))
        found[dtype] = np.clip(result, -32768, 32767)
    assert (found[np.float64] != found[np.float32]).any()
    data = model(kind, [one, other], [out], "MulOptions" if kind == "MUL" else None)
    for rounding, dtype in (("double", np.float64), ("single", np.float32)):
        (got,) = outputs(compiled(data, dense_rounding=rounding), [x, y])
        np.testing.assert_array_equal(got, found[dtype])


@pytest.mark.parametrize(("scale", "out_scale"), [(3e-5, 1e-3), (0.02, 5e-5)])
def test_rsqrt_of_16_bits_as_tensorflow_lite_micro_computes_it(scale, out_scale):
    """By Newton's steps, a hundred times nearer than between the samples that LiteRT takes."""
    source, target = q16(4, 4096, scale=scale), q16(4, 4096, scale=out_scale)
    x = np.arange(0, 32768, 2, np.int16).reshape(4, 4096)
    (got,) = outputs(compiled(model("RSQRT", [source], [target])), [x])
    with np.errstate(divide="ignore"):
        real = 1 / np.sqrt(x * np.float64(np.float32(scale))) / np.float64(np.float32(out_scale))
    assert abs(got - np.minimum(real, 32767)).max() < 0.75
    assert got[0, 0] == 32767
