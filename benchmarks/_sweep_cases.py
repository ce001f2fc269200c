"""The list of `benchmarks.sweep`: every family of operators over odd sizes.

A family has a usual case, and each of its dimensions takes the values of `SIZES` in turn while the
others stay; a few random corners follow.  Names say the sizes: "conv/n1_c17_h28_w28_f64_k3".
"""

import random
from collections import Counter
from functools import partial

from benchmarks import _operator_models as m
from benchmarks import _sweep_models as s
from benchmarks._sweep_others import families as others

SIZES = (1, 3, 7, 13, 17, 33, 65, 127, 255, 1000)
HEAD_SIZES = (16, 20, 24, 32, 33, 36, 40, 48, 56, 64, 72, 80, 96, 112, 128)
LENGTHS = (1, 7, 17, 33, 65, 127, 128, 255, 512)
GROUP_SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 14, 16, 17, 24, 33)
# What one case may take: multiply-adds of products, elements of the rest.
MOST_PRODUCTS, MOST_ELEMENTS = 4e8, 4e6


def family(name, build, usual, axes, *, work=None, corners=0, most=MOST_PRODUCTS):
    """Return {case: builder}: `usual`, each axis in turn, and `corners` random combinations."""
    draws = random.Random(name)
    points = [usual, *(usual | {axis: v} for axis, values in axes.items() for v in values)]
    points += [usual | {a: draws.choice(v) for a, v in axes.items()} for _ in range(corners)]
    cases = {}
    for point in points:
        if work is None or work(**point) <= most:
            label = "_".join(f"{key}{value}" for key, value in point.items())
            cases[f"{name}/{label}"] = partial(build, **point)
    return cases


def conv_work(n, c, h, w, f, k, s=1, d=1, g=1):
    return n * f * c // g * k * k * h * w // s**2


IMAGE = {"n": 1, "c": 64, "h": 28, "w": 28, "f": 64, "k": 3, "s": 1, "d": 1}
IMAGE_AXES = {
    "n": (2, 3), "c": SIZES, "h": SIZES, "w": SIZES, "f": SIZES,
    "k": (1, 2, 4, 5, 7), "s": (2, 3), "d": (2, 3),
}  # fmt: skip


def convolutions(prefix, conv, depthwise, corners):
    """Return the families of convolutions, by the makers of one type."""
    small = IMAGE_AXES | {"c": SIZES[1:8], "f": SIZES[1:8], "h": SIZES[2:7], "w": SIZES[2:7]}
    cases = family(f"{prefix}conv", conv, IMAGE, IMAGE_AXES, work=conv_work)
    cases |= family(f"{prefix}conv", conv, IMAGE, small, work=conv_work, corners=corners)
    cases |= family(
        f"{prefix}pointwise", conv, IMAGE | {"k": 1}, {"c": SIZES, "f": SIZES, "s": (2, 3)},
        work=conv_work, corners=corners // 2,
    )  # fmt: skip
    cases |= family(
        f"{prefix}grouped", partial(s.grouped, conv),
        {"n": 1, "p": 32, "q": 32, "g": 4, "h": 28, "w": 28, "k": 3, "s": 1},
        {"p": GROUP_SIZES, "q": GROUP_SIZES, "g": (2, 3, 13, 32), "k": (1, 5), "s": (2,)},
        corners=corners // 2,
    )  # fmt: skip
    for p in GROUP_SIZES:
        cases[f"{prefix}grouped/both{p}"] = partial(
            s.grouped, conv, n=1, p=p, q=p, g=8, h=28, w=28, k=3, s=1
        )
    cases |= family(
        f"{prefix}depthwise", depthwise,
        {"n": 1, "c": 96, "h": 28, "w": 28, "k": 3, "s": 1, "d": 1},
        {"n": (2, 3), "c": SIZES, "h": SIZES[:9], "w": SIZES[:9], "k": (2, 5, 7)}
        | {"s": (2, 3), "d": (2, 3)},
        corners=corners,
    )  # fmt: skip
    return cases


def products():
    """Return dense layers, products of two inputs, attention."""
    usual = {"rows": 64, "depth": 256, "units": 256}
    axes = {"rows": SIZES, "depth": SIZES, "units": SIZES}
    cases = family("dense", m.dense, usual, axes, corners=12)
    cases |= family("int8_dense", m.dense_int8, usual, axes, corners=12)
    cases |= family("bfloat16_dense", m.dense, usual, axes, corners=6)
    usual = {"n": 4, "rows": 64, "depth": 64, "units": 64}
    axes = {"n": (1, 3), "rows": SIZES, "depth": SIZES, "units": SIZES}
    cases |= family("matmul", s.matmul, usual, axes, corners=12)
    cases |= family("matmul_transposed", s.matmul_transposed, usual, axes, corners=6)
    cases |= family("bfloat16_matmul", s.matmul, usual, axes, corners=6)
    usual = {"n": 1, "heads": 4, "length": 128, "size": 64}
    axes = {"n": (2,), "heads": (1, 3), "length": LENGTHS, "size": HEAD_SIZES}
    for name in ("attention", "attention_causal", "bfloat16_attention"):
        build = s.attention_causal if name.endswith("causal") else s.attention
        cases |= family(name, build, usual, axes, corners=8)
    usual = {"length": 128, "cache": 128, "size": 64, "heads": 4}
    cases |= family(
        "attention_step", s.attention_step, usual | {"length": 1},
        {"cache": LENGTHS, "size": HEAD_SIZES, "length": (2, 3, 7)}, corners=4,
    )  # fmt: skip
    return cases


def volumes():
    """Return convolutions of one and three dimensions, and transposed ones."""
    cases = family(
        "conv1d", s.conv1d, {"n": 1, "c": 64, "l": 500, "f": 64, "k": 3, "s": 1, "d": 1},
        {"c": SIZES, "l": SIZES, "f": SIZES, "k": (1, 2, 7, 16, 31), "s": (2, 3, 5), "d": (2, 8)},
        corners=8,
    )  # fmt: skip
    cases |= family(
        "conv3d", s.conv3d, {"n": 1, "c": 32, "t": 8, "h": 14, "f": 32, "k": 3, "s": 1},
        {"n": (2,), "c": SIZES[:7], "t": SIZES[:5], "h": SIZES[:6], "f": SIZES[:7]}
        | {"k": (1, 2), "s": (2,)},
        corners=6,
    )  # fmt: skip
    cases |= family(
        "deconv", s.deconv, {"n": 1, "c": 64, "h": 14, "f": 32, "k": 3, "s": 2, "g": 1},
        {"n": (2,), "c": SIZES[:9], "h": SIZES[:7], "f": SIZES[:9], "k": (2, 4, 5), "s": (1, 3)},
        corners=8,
    )  # fmt: skip
    usual = {"n": 1, "c": 64, "h": 14, "f": 1, "k": 4, "s": 2, "g": 64}
    axes = {"h": SIZES[:7], "k": (2, 3, 5), "s": (1, 3)}
    cases |= family("deconv_depthwise", s.deconv, usual, axes)
    for c in SIZES[1:9]:
        point = usual | {"c": c, "g": c}
        cases[f"deconv_depthwise/c{c}"] = partial(s.deconv, **point)
    for g in (2, 4, 13):
        point = usual | {"c": 4 * g, "g": g, "f": 5}
        cases[f"deconv_grouped/g{g}"] = partial(s.deconv, **point)
    return cases


def images():
    """Return pooling, resizing, padding and sampling of images."""
    usual = {"n": 1, "c": 64, "h": 28, "w": 28}
    axes = {"n": (3,), "c": SIZES[:9], "h": SIZES[:8], "w": SIZES[:9]}
    cases = {}
    for op in ("MaxPool", "AveragePool"):
        build = partial(s.pool, op)
        pools = axes | {"k": (2, 5), "s": (2, 3)}
        cases |= family(f"pool_{op.lower()}", build, usual | {"k": 3, "s": 1}, pools, corners=4)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        cases |= family(f"pool_{op.lower()}", partial(s.unary, op), usual, axes)
    for mode in ("nearest", "linear", "cubic"):
        sizes = axes | {"to": (7, 13, 33, 56, 57, 112)}
        cases |= family(f"resize_{mode}", partial(s.resize, mode), usual | {"to": 56}, sizes)
    for mode in ("constant", "reflect", "edge"):
        pads = axes | {"p": (2, 3, 5)}
        cases |= family(f"pad_{mode}", partial(s.pad, mode), usual | {"p": 1}, pads, corners=2)
    for mode in ("bilinear", "nearest"):
        sizes = axes | {"to": (7, 33)}
        cases |= family(
            f"grid_sample_{mode}", partial(s.grid_sample, mode), usual | {"to": 28}, sizes
        )
    cases |= family("norm_instance", partial(s.norm, "InstanceNormalization"), usual, axes)
    cases |= family("norm_batch", partial(s.norm, "BatchNormalization"), usual, axes)
    cases |= family("norm_group", s.group_norm, usual | {"g": 8}, axes | {"c": (8, 24, 104, 1000)})
    cases |= family("norm_lrn", partial(s.unary, "LRN", size=5), usual, axes)
    cases |= family("depth_to_space", s.depth_to_space, usual, axes | {"c": (4, 12, 52, 1000)})
    cases |= family("prelu", s.prelu, usual, axes)
    return cases


def matrices():
    """Return what works along an axis: softmax, norms, reductions, scans, sorting, moves."""
    usual, axes = {"a": 4, "b": 64, "c": 64}, {"a": (1, 3, 33), "b": SIZES, "c": SIZES}
    wide = {"work": lambda a, b, c, **_: a * b * c, "most": MOST_ELEMENTS}
    cases = {}
    for axis in (0, 1, 2):
        make = partial(partial, s.along)
        for op in ("Softmax", "LogSoftmax", "ArgMax"):
            cases |= family(f"{op.lower()}_axis{axis}", make(op, axis), usual, axes, **wide)
        for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceProd"):
            some = axes if op in ("ReduceSum", "ReduceMax") else {"c": SIZES}
            cases |= family(
                f"{op.lower()}_axis{axis}", partial(s.reduced, op, (axis,)), usual, some
            )
        cases |= family(f"cumsum_axis{axis}", partial(s.cumsum, axis), usual, axes, **wide)
        for op in ("Concat", "Split", "Slice", "Flip", "Tile", "Gather"):
            cases |= family(
                f"{op.lower()}_axis{axis}", partial(s.MOVES[op], axis), usual, axes, **wide
            )
        cases |= family(
            f"scatter_elements_axis{axis}", partial(s.scatter, axis), usual, axes, **wide
        )
        cases |= family(
            f"gather_elements_axis{axis}", partial(s.gather_elements, axis), usual, axes, **wide
        )
    cases |= family("reducesum_all", partial(s.reduced, "ReduceSum", (0, 1, 2)), usual, axes)
    cases |= family("reducemean_two", partial(s.reduced, "ReduceMean", (0, 2)), usual, axes)
    for order in ((0, 2, 1), (1, 0, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        name = "transpose_" + "".join(map(str, order))
        cases |= family(name, partial(s.transpose, order), usual, axes, **wide)
    cases |= family("norm_layer", s.layer_norm, usual, axes, **wide)
    cases |= family("norm_rms", s.rms_norm, usual, axes, **wide)
    cases |= family("scatter_nd_rows", s.scatter_rows, usual, axes, **wide)
    cases |= family("gather_nd", s.gather_nd, usual, axes, **wide)
    cases |= family("top_k", s.top_k, usual | {"k": 5}, axes | {"k": (1, 17, 50)}, **wide)
    cases |= family("embedding", s.embedding, {"n": 64, "c": 64}, {"n": SIZES, "c": SIZES})
    cases |= family("where", s.where, usual, axes, **wide)
    return cases


UNARY = (
    "Abs", "Acos", "Asin", "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor",
    "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Neg", "Relu", "Round", "Selu", "Sigmoid",
    "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh",
)  # fmt: skip
POSITIVE = ("Log", "Sqrt", "Reciprocal", "Acosh")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "Less", "Equal")


def elementwise():
    """Return arithmetic on each element, and broadcasts."""
    cases = {}
    for op in UNARY:
        cases |= family(
            f"unary_{op.lower()}", partial(s.flat, op), {"a": 100_000}, {"a": (33, 1000)}
        )
    cases |= family("unary_gelu", lambda g, a: m.gelu(g, (a,)), {"a": 100_000}, {"a": (33, 1000)})
    for op in POSITIVE:
        cases |= family(
            f"unary_{op.lower()}", partial(s.flat_positive, op), {"a": 100_000}, {"a": (33, 1000)}
        )
    for op in BINARY:
        cases |= family(
            f"binary_{op.lower()}", partial(s.binary, op), {"a": 100_000}, {"a": (33, 1000)}
        )
    usual, axes = {"a": 33, "b": 65, "c": 127}, {"b": SIZES, "c": SIZES}
    for stretched in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        name = "broadcast_" + "".join(map(str, stretched))
        cases |= family(name, partial(s.broadcast, stretched), usual, axes)
    return cases


def sequences():
    """Return recurrent layers."""
    cases = {}
    usual = {"steps": 20, "batch": 1, "size": 64, "hidden": 64}
    axes = {"steps": (1, 7, 100), "batch": (2, 3, 17), "size": SIZES[:9], "hidden": SIZES[:9]}
    for op in ("LSTM", "GRU", "RNN"):
        cases |= family(op.lower(), partial(s.recurrent, op), usual, axes, corners=4)
    return cases


def round_robin(cases):
    """Return the cases so that a sweep that is stopped early has seen every family."""
    seen = Counter()
    ranks = {}
    for name in cases:
        kind = name.split("/")[0]
        ranks[name] = seen[kind]
        seen[kind] += 1
    return {name: cases[name] for name in sorted(cases, key=ranks.get)}


CASES = round_robin({
    **convolutions("", s.conv, s.depthwise, 24),
    **convolutions("int8_", s.conv_int8, s.depthwise_int8, 12),
    **convolutions("bfloat16_", s.conv, s.depthwise, 6),
    **products(), **volumes(), **images(), **matrices(), **elementwise(), **sequences(),
    **others(family, SIZES),
})  # fmt: skip
