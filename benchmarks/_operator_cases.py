"""The list of `benchmarks.operators`: "class/name" to what builds the model."""

from functools import partial

import numpy as np
from onnx import TensorProto

from benchmarks import _operator_models as m

F16, F64 = TensorProto.FLOAT16, TensorProto.DOUBLE
IMAGE = (1, 64, 56, 56)
ROWS = (128, 768)


def _case(build, *args, **attrs):
    return lambda g: build(g, *args, **attrs)


_alone = partial(_case, m.alone)
_reduce = partial(_case, m.reduce)
_conv = partial(_case, m.conv)

CASES = {
    # Convolutions of images: usual, of odd sizes, dilated (DeepLab), grouped (ResNeXt, ShuffleNet).
    "conv/3x3": _conv(IMAGE, 64, 3),
    "conv/3x3_stride2": _conv(IMAGE, 128, 3, 2),
    "conv/5x5": _conv((1, 32, 28, 28), 64, 5),
    "conv/7x7_stride2_image": _conv((1, 3, 224, 224), 64, 7, 2),
    "conv/5x5_grey": _conv((1, 1, 28, 28), 32, 5),
    "conv/1x1": _conv((1, 256, 56, 56), 64, 1),
    "conv/1x1_stride2": _conv((1, 256, 56, 56), 512, 1, 2),
    "conv/1x7": _conv((1, 192, 17, 17), 192, (1, 7)),
    "conv/batch8": _conv((8, 128, 14, 14), 128, 3),
    "conv/odd_3_17": _conv((1, 3, 65, 65), 17, 3),
    "conv/odd_50_50": _conv((1, 50, 33, 33), 50, 3),
    "conv/odd_17_3": _conv((1, 17, 128, 128), 3, 3),
    "conv/tiny_image": _conv((1, 512, 4, 4), 512, 3),
    "conv/huge_image": _conv((1, 16, 512, 512), 16, 3),
    "conv/dilated2": _conv((1, 256, 28, 28), 256, 3, dilation=2),
    "conv/dilated12": _conv((1, 512, 33, 33), 256, 3, dilation=12),
    "conv/groups32_of_4": _conv((1, 128, 56, 56), 128, 3, groups=32),
    "conv/groups32_of_16": _conv((1, 512, 14, 14), 512, 3, groups=32),
    "conv/groups32_stride2": _conv((1, 256, 56, 56), 256, 3, 2, groups=32),
    "conv/groups32_bottleneck": _case(m.bottleneck, (1, 256, 56, 56), 128, 32),
    "conv/groups3_1x1": _conv((1, 240, 28, 28), 240, 1, groups=3),
    "conv/groups2_5x5": _conv((1, 96, 27, 27), 256, 5, groups=2),
    # Depthwise.
    "depthwise/3x3": _conv((1, 96, 56, 56), 96, 3, groups=96),
    "depthwise/3x3_stride2": _conv((1, 144, 56, 56), 144, 3, 2, groups=144),
    "depthwise/5x5": _conv((1, 240, 28, 28), 240, 5, groups=240),
    "depthwise/5x5_stride2": _conv((1, 240, 28, 28), 240, 5, 2, groups=240),
    "depthwise/7x7": _conv((1, 96, 56, 56), 96, 7, groups=96),
    "depthwise/dilated": _conv((1, 576, 28, 28), 576, 3, dilation=2, groups=576),
    "depthwise/odd_50": _conv((1, 50, 33, 33), 50, 3, groups=50),
    "depthwise/multiplier2": _conv((1, 32, 56, 56), 64, 3, groups=32),
    # Sound: one dimension, long kernels, strides, causal padding.
    "conv1d/3": _conv((1, 64, 1000), 64, 3),
    "conv1d/3_stride2": _conv((1, 512, 800), 512, 3, 2),
    "conv1d/10_stride5_wave": _conv((1, 1, 16000), 512, 10, 5, pad=[0, 0]),
    "conv1d/25": _conv((1, 32, 2048), 32, 25),
    "conv1d/causal_dilated8": _conv((1, 64, 4000), 64, 3, pad=[16, 0], dilation=8),
    "conv1d/depthwise31": _conv((1, 256, 500), 256, 31, groups=256),
    # Video and volumes.
    "conv3d/3x3x3_16": _conv((1, 16, 16, 56, 56), 16, 3),
    "conv3d/3x3x3_32_64_stride2": _conv((1, 32, 16, 28, 28), 64, 3, 2),
    "conv3d/3x3x3_64": _conv((1, 64, 8, 14, 14), 64, 3),
    "conv3d/3x3x3_image": _conv((1, 3, 8, 56, 56), 32, 3),
    "conv3d/1x1x1": _conv((1, 64, 8, 28, 28), 64, 1),
    "conv3d/depthwise": _conv((1, 54, 8, 28, 28), 54, 3, groups=54),
    # Transposed.
    "deconv/2x2": _case(m.deconv, (1, 256, 28, 28), 128, 2, 2),
    "deconv/4x4": _case(m.deconv, (1, 512, 8, 8), 256, 4, 2, pad=1),
    "deconv/3x3": _case(m.deconv, (1, 64, 28, 28), 32, 3, 2, pad=1, more=1),
    "deconv/1d_16": _case(m.deconv, (1, 256, 100), 128, 16, 8, pad=4),
    "deconv/3d_2x2x2": _case(m.deconv, (1, 64, 8, 14, 14), 32, 2, 2),
    # Products with constant weights.
    "dense/1x4096x4096": _case(m.dense, 1, 4096, 4096),
    "dense/1x1280x1000": _case(m.dense, 1, 1280, 1000),
    "dense/2x1024x1024": _case(m.dense, 2, 1024, 1024),
    "dense/8x768x3072": _case(m.dense, 8, 768, 3072),
    "dense/128x768x768": _case(m.dense, 128, 768, 768, transB=1),
    "dense/10000x64x64": _case(m.dense, 10000, 64, 64),
    "dense/4096x8x256": _case(m.dense, 4096, 8, 256),
    "dense/256x512x10": _case(m.dense, 256, 512, 10),
    "dense/100x333x77": _case(m.dense, 100, 333, 77),
    "dense/transposed_a": _case(m.dense, 256, 256, 256, transA=1),
    # Products of two inputs.
    "matmul/12x128x64x128": _case(m.product, (12, 128, 64), (12, 128, 64), transpose=True),
    "matmul/12x128x128x64": _case(m.product, (12, 128, 128), (12, 128, 64)),
    "matmul/512": _case(m.product, (512, 512), (512, 512)),
    "matmul/1024x4x4x4": _case(m.product, (1024, 4, 4), (1024, 4, 4)),
    "matmul/64x16x16x16": _case(m.product, (64, 16, 16), (64, 16, 16)),
    "matmul/row": _case(m.product, (8, 1, 512), (8, 512, 512)),
    "matmul/column": _case(m.product, (1024, 1024), (1024, 1)),
    "matmul/odd": _case(m.product, (4, 77, 33), (4, 33, 61)),
    # Pooling.
    "pool/max3x3_stride2": _case(m.pool, "MaxPool", (1, 64, 112, 112), 3, 2, 1),
    "pool/max2x2": _case(m.pool, "MaxPool", (1, 64, 112, 112), 2, 2),
    "pool/max5x5_stride1": _case(m.pool, "MaxPool", (1, 256, 20, 20), 5, 1, 2),
    "pool/max_ceil": _case(m.pool, "MaxPool", (1, 96, 55, 55), 3, 2, ceil_mode=1),
    "pool/avg3x3": _case(m.pool, "AveragePool", (1, 192, 28, 28), 3, 1, 1),
    "pool/avg2x2": _case(m.pool, "AveragePool", (1, 128, 56, 56), 2, 2),
    "pool/global_avg": _alone("GlobalAveragePool", (1, 2048, 7, 7)),
    "pool/max1d": _case(m.pool, "MaxPool", (1, 64, 4000), 4, 4),
    "pool/max3d": _case(m.pool, "MaxPool", (1, 32, 16, 28, 28), 2, 2),
    # Softmax and normalisations.
    "softmax/rows": _alone("Softmax", (128, 1000), axis=-1),
    "softmax/heads": _alone("Softmax", (1, 12, 128, 128), axis=-1),
    "softmax/huge_row": _alone("Softmax", (1, 50257), axis=-1),
    "softmax/channels": _alone("Softmax", (1, 21, 128, 128), axis=1),
    "softmax/middle": _alone("Softmax", (8, 100, 64), axis=1),
    "softmax/log": _alone("LogSoftmax", (128, 1000), axis=-1),
    "norm/layer": _case(m.norm, ROWS, "LayerNormalization", 768),
    "norm/layer_short": _case(m.norm, (1, 3136, 96), "LayerNormalization", 96),
    "norm/rms": _case(m.rms_norm, ROWS),
    "norm/instance": _case(m.norm, (1, 64, 128, 128), "InstanceNormalization", 64),
    "norm/group": _case(m.group_norm, (1, 128, 32, 32), 32),
    "norm/batch": _case(m.norm, IMAGE, "BatchNormalization", 64),
    "norm/lrn": _alone("LRN", (1, 96, 55, 55), size=5),
    # Reductions over each axis.
    "reduce/sum_axis0": _reduce("ReduceSum", (64, 32, 512), 0),
    "reduce/sum_axis1": _reduce("ReduceSum", (64, 32, 512), 1),
    "reduce/sum_last": _reduce("ReduceSum", (64, 32, 512), 2, keep=0),
    "reduce/mean_image": _reduce("ReduceMean", (1, 256, 56, 56), 2, 3),
    "reduce/mean_channels": _reduce("ReduceMean", (1, 256, 56, 56), 1),
    "reduce/max_last": _reduce("ReduceMax", (1000, 500), 1, keep=0),
    "reduce/sum_all": _reduce("ReduceSum", (64, 32, 512), 0, 1, 2, keep=0),
    "reduce/l2_last": _reduce("ReduceL2", (1000, 500), 1),
    "reduce/argmax_last": _alone("ArgMax", (128, 1000), axis=1),
    "reduce/argmax_channels": _alone("ArgMax", (1, 21, 128, 128), axis=1),
    # Resizing.
    "resize/nearest2": _case(
        m.resize, IMAGE, (112, 112), "nearest", "asymmetric", nearest_mode="floor"
    ),
    "resize/linear2": _case(m.resize, (1, 64, 28, 28), (56, 56), "linear"),
    "resize/linear_down": _case(m.resize, (1, 3, 480, 640), (224, 224), "linear"),
    "resize/linear_corners": _case(
        m.resize, (1, 21, 33, 33), (257, 257), "linear", "align_corners"
    ),
    "resize/cubic": _case(m.resize, (1, 3, 64, 64), (128, 128), "cubic"),
    # Data movement.
    "transpose/nchw_nhwc": _alone("Transpose", (1, 64, 112, 112), perm=[0, 2, 3, 1]),
    "transpose/nhwc_nchw": _alone("Transpose", (1, 112, 112, 64), perm=[0, 3, 1, 2]),
    "transpose/last_two": _alone("Transpose", (4, 512, 512), perm=[0, 2, 1]),
    "transpose/heads": _alone("Transpose", (1, 128, 12, 64), perm=[0, 2, 1, 3]),
    "transpose/image_in": _alone("Transpose", (1, 224, 224, 3), perm=[0, 3, 1, 2]),
    "transpose/reversed": _alone("Transpose", (64, 48, 80), perm=[2, 1, 0]),
    "move/concat_channels": lambda g: g("Concat", g.input(*IMAGE), g.input(*IMAGE), axis=1),
    "move/concat_last": lambda g: g("Concat", g.input(512, 96), g.input(512, 33), axis=1),
    "move/split_last": _case(m.split, (128, 2304), 3, 1),
    "move/slice_strided": _case(m.sliced, IMAGE, (0, 0), (56, 56), (2, 3), (2, 2)),
    "move/pad": _case(m.padded, IMAGE, (0, 0, 1, 1, 0, 0, 1, 1)),
    "move/pad_reflect": _case(m.padded, IMAGE, (0, 0, 3, 3, 0, 0, 3, 3), "reflect"),
    "move/gather_rows": _case(m.gather, (5000, 768), (1, 128)),
    "move/gather_columns": _case(m.gather, (1024, 256), (64,), axis=1),
    "move/depth_to_space": _alone("DepthToSpace", (1, 256, 32, 32), blocksize=2),
    "move/shuffle": _case(m.shuffle, (1, 240, 28, 28), 3),
    # Elementwise chains, broadcasts.
    "chain/gelu_erf": _case(m.gelu, (128, 3072)),
    "chain/gelu_tanh": _case(m.gelu_tanh, (128, 3072)),
    "chain/silu": _case(m.times, (1, 64, 112, 112), "Sigmoid"),
    "chain/hardswish": _alone("HardSwish", (1, 64, 112, 112)),
    "chain/exp": _alone("Exp", (128, 3072)),
    "chain/tanh": _alone("Tanh", (128, 3072)),
    "chain/sigmoid": _alone("Sigmoid", (128, 3072)),
    "chain/erf": _alone("Erf", (128, 3072)),
    "chain/softplus": _alone("Softplus", (128, 3072)),
    "chain/sin": _alone("Sin", (128, 3072)),
    "chain/log": _case(m.positive_alone, "Log", (128, 3072)),
    "chain/pow": lambda g: g("Pow", g("Abs", g.input(128, 3072)), g.scalar(1.7)),
    "chain/add": _case(m.with_other, "Add", (128, 3072), 128, 3072),
    "chain/bias_last": _case(m.with_other, "Add", (128, 3072), 3072),
    "chain/bias_channel": _case(m.with_other, "Add", (1, 64, 112, 112), 1, 64, 1, 1),
    "chain/scale_rows": _case(m.with_other, "Mul", (512, 768), 512, 1),
    "chain/outer": _case(m.with_other, "Mul", (512, 1), 1, 768),
    "chain/prelu": lambda g: g("PRelu", g.input(*IMAGE), g.weight(64, 1, 1)),
    # Sequences and sorting.
    "recurrent/lstm": _case(m.recurrent, "LSTM", 50, 1, 128, 128),
    "recurrent/lstm_batch16": _case(m.recurrent, "LSTM", 20, 16, 128, 256),
    "recurrent/gru_both": _case(m.recurrent, "GRU", 50, 1, 128, 128, bidirectional=True),
    "scan/cumsum_last": lambda g: g("CumSum", g.input(128, 1024), g.constant(np.int64(1))),
    "scan/cumsum_first": lambda g: g("CumSum", g.input(1024, 128), g.constant(np.int64(0))),
    "sort/top5": _case(m.top_k, (1, 1000), 5),
    "sort/top100": _case(m.top_k, (4, 8400), 100),
    # Other types.
    "types/dense_int8": _case(m.dense_int8, 128, 768, 768),
    "types/dense_int8_row": _case(m.dense_int8, 1, 1024, 1024),
    "types/matmul_f64": _case(m.typed, F64, "MatMul", (256, 256), (256, 256)),
    "types/matmul_f16": _case(m.typed, F16, "MatMul", (256, 256), (256, 256)),
}
