"""The layers that are tuned: thirty that no schedule was fitted to, and small ones at random."""

import random

import numpy as np

from slipway import relay
from slipway.ir.function import IRModule
from slipway.tuning.task import extract_tasks

# name: (kind, data shape, weight shape, stride, groups, dtype); products have no stride
LAYERS = {
    "conv3x3_19_45": ("conv", (1, 19, 51, 51), (45, 19, 3, 3), 1, 1, "float32"),
    "conv3x3_37_37": ("conv", (1, 37, 29, 29), (37, 37, 3, 3), 1, 1, "float32"),
    "conv3x3_70_110_s2": ("conv", (1, 70, 39, 39), (110, 70, 3, 3), 2, 1, "float32"),
    "conv3x3_5_24": ("conv", (1, 5, 121, 121), (24, 5, 3, 3), 1, 1, "float32"),
    "conv5x5_21_33": ("conv", (1, 21, 27, 27), (33, 21, 5, 5), 1, 1, "float32"),
    "conv7x7_3_20_s4": ("conv", (1, 3, 161, 161), (20, 3, 7, 7), 4, 1, "float32"),
    "conv1x7_44": ("conv", (1, 44, 19, 19), (44, 44, 1, 7), 1, 1, "float32"),
    "conv3x3_260_260_7": ("conv", (1, 260, 7, 7), (260, 260, 3, 3), 1, 1, "float32"),
    "conv1x1_6_90": ("conv", (1, 6, 63, 63), (90, 6, 1, 1), 1, 1, "float32"),
    "conv1x1_90_6": ("conv", (1, 90, 63, 63), (6, 90, 1, 1), 1, 1, "float32"),
    "conv1x1_200_50_13": ("conv", (1, 200, 13, 13), (50, 200, 1, 1), 1, 1, "float32"),
    "conv1x1_11_11": ("conv", (1, 11, 101, 101), (11, 11, 1, 1), 1, 1, "float32"),
    "conv1x1_530_70_s2": ("conv", (1, 530, 15, 15), (70, 530, 1, 1), 2, 1, "float32"),
    "depthwise5x5_54": ("conv", (1, 54, 43, 43), (54, 1, 5, 5), 1, 54, "float32"),
    "depthwise5x5_110_s2": ("conv", (1, 110, 31, 31), (110, 1, 5, 5), 2, 110, "float32"),
    "depthwise3x3_23": ("conv", (1, 23, 97, 97), (23, 1, 3, 3), 1, 23, "float32"),
    "depthwise7x7_70": ("conv", (1, 70, 21, 21), (70, 1, 7, 7), 1, 70, "float32"),
    "grouped3x3_6x11": ("conv", (1, 66, 27, 27), (66, 11, 3, 3), 1, 6, "float32"),
    "grouped3x3_4x20": ("conv", (1, 80, 25, 25), (120, 20, 3, 3), 1, 4, "float32"),
    "grouped1x1_3x30": ("conv", (1, 90, 33, 33), (60, 30, 1, 1), 1, 3, "float32"),
    "dense_1_900_333": ("dense", (1, 900), (333, 900), 1, 1, "float32"),
    "dense_3_700_1001": ("dense", (3, 700), (1001, 700), 1, 1, "float32"),
    "dense_7_129_2050": ("dense", (7, 129), (2050, 129), 1, 1, "float32"),
    "dense_45_60_1100": ("dense", (45, 60), (1100, 60), 1, 1, "float32"),
    "dense_210_333_70": ("dense", (210, 333), (70, 333), 1, 1, "float32"),
    "dense_900_20_9": ("dense", (900, 20), (9, 20), 1, 1, "float32"),
    "matmul_5x61x43x77": ("batch_matmul", (5, 61, 43), (5, 77, 43), 1, 1, "float32"),
    "matmul_12x50x20x50": ("batch_matmul", (12, 50, 20), (12, 50, 20), 1, 1, "float32"),
    "int8_conv3x3_30_54": ("conv", (1, 30, 35, 35), (54, 30, 3, 3), 1, 1, "int8"),
    "int8_dense_20_300_150": ("dense", (20, 300), (150, 300), 1, 1, "int8"),
}


def module_of(layer):
    """Return a layer as a module of relay, and its weights."""
    kind, data_shape, weight_shape, stride, groups, dtype = layer
    data = relay.var("data", shape=data_shape, dtype=dtype)
    weight = relay.var("weight", shape=weight_shape, dtype=dtype)
    out = "int32" if dtype == "int8" else dtype
    if kind == "conv":
        body = relay.nn.conv2d(
            data,
            weight,
            strides=(stride, stride),
            padding=tuple(k // 2 for k in weight_shape[2:]),
            groups=groups,
            channels=weight_shape[0],
            kernel_size=weight_shape[2:],
            out_dtype=out,
        )
    elif kind == "dense":
        body = relay.nn.dense(data, weight, out_dtype=out)
    else:
        body = relay.nn.batch_matmul(data, weight, out_dtype=out)
    rng = np.random.default_rng(0)
    values = (
        rng.integers(-127, 128, weight_shape).astype("int8")
        if dtype == "int8"
        else rng.standard_normal(weight_shape).astype(dtype)
    )
    params = {} if kind == "batch_matmul" else {"weight": values}
    return IRModule.from_expr(relay.Function([data, weight], body)), params


def tasks_of(layer, target):
    """Return the kernels of a layer that can be computed in more than one way."""
    module, params = module_of(layer)
    return extract_tasks(module, target, params)


def small_layers(count=60, seed=5):
    """Return layers drawn at random, small enough for an emulator."""
    rng = random.Random(seed)
    return {f"small_{number}": _small_layer(rng) for number in range(count)}


def _small_layer(rng):
    kind = rng.choice(["conv3", "conv3", "conv1", "conv1", "conv1", "depthwise"] + ["dense"] * 2
                      + ["batch_matmul", "conv5"])  # fmt: skip
    side, stride = rng.choice([6, 7, 9, 10, 13, 14, 15, 17]), rng.choice([1, 1, 2])
    inner, outer = rng.choice([3, 5, 8, 12, 17, 24]), rng.choice([6, 8, 11, 16, 20, 24])
    if kind.startswith("conv"):
        taps = int(kind[4:])
        if taps == 1:
            inner, outer = rng.choice([inner, 32, 40, 50]), rng.choice([outer, 33, 48, 64])
        weight = (outer, inner, taps, taps)
        return "conv", (1, inner, side, side), weight, stride, 1, "float32"
    if kind == "depthwise":
        taps = rng.choice([3, 5])
        return (
            "conv", (1, 2 * inner, side, side), (2 * inner, 1, taps, taps), stride, 2 * inner,
            "float32",
        )  # fmt: skip
    if kind == "dense":
        depth = rng.choice([20, 50, 64, 100, 129, 200])
        rows, units = rng.choice([1, 2, 3, 7, 16, 30]), rng.choice([10, 33, 64, 90, 150])
        return "dense", (rows, depth), (units, depth), 1, 1, "float32"
    batch, depth = rng.choice([1, 2, 4]), rng.choice([16, 20, 33])
    left, right = (batch, rng.choice([9, 16, 30]), depth), (batch, rng.choice([11, 24, 40]), depth)
    return kind, left, right, 1, 1, "float32"
