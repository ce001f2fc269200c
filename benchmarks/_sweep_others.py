"""Families of `benchmarks.sweep` for operators whose sizes are not all: orders, axes, modes, kinds.

Every order of four axes and some of five, reductions over each subset of axes, modes of resizing,
recurrent layers in both directions and with peepholes, forms of Einsum, quantised operators, and
what chooses or moves elements by indices.
"""

import random
from functools import partial
from itertools import combinations, permutations

import numpy as np
from onnx import TensorProto

from benchmarks import _operator_models as m
from benchmarks import _sweep_models as s

BOOL, I32, F32 = TensorProto.BOOL, TensorProto.INT32, TensorProto.FLOAT
FOUR, FIVE = (3, 17, 33, 28), (2, 5, 17, 9, 13)
RANDOM_ORDERS = 24


def _unary(op, shape, g, **attrs):
    return g(op, g.input(*shape), **attrs)


def _integers(op, kind, size, g):
    """Arithmetic on integers; the divisor is not zero."""
    x, y = (g.input(size, kind=kind) for _ in range(2))
    one = g.constant(np.array(1, "int32" if kind == I32 else "int64"))
    return g(op, x, g("Add", y, one))


def _einsum(equation, shapes, g):
    return g("Einsum", *(g.input(*shape) for shape in shapes), equation=equation)


def _matmul(left, right, g):
    return g("MatMul", g.input(*left), g.input(*right))


def _one_hot(axis, depth, g):
    where = s.indices(g, depth, 4, 65)
    values = g.constant(np.array([0, 1], "float32"))
    return g("OneHot", where, g.constant(np.int64(depth)), values, axis=axis)


def _scatter_nd(reduction, width, g):
    """Updates of single elements, of rows, or of matrices of (8, 33, 65)."""
    sizes = (8, 33, 65)[:width]
    where = g("Concat", *(s.indices(g, n, 24, 1) for n in sizes), axis=-1)
    updates = g.input(24, *(8, 33, 65)[width:])
    return g("ScatterND", g.input(8, 33, 65), where, updates, reduction=reduction)


def _gather_nd(batch, width, g):
    sizes = (4, 33, 17, 65)[batch : batch + width]
    lead = (4, 33, 17, 65)[:batch]
    where = g("Concat", *(s.indices(g, n, *lead, 7, 1) for n in sizes), axis=-1)
    return g("GatherND", g.input(4, 33, 17, 65), where, batch_dims=batch)


def _layer_norm(axis, g):
    shape = (4, 17, 33, 13)[axis:]
    return g(
        "LayerNormalization", g.input(4, 17, 33, 13), g.positive(*shape),
        g.weight(*shape, fan_in=10), axis=axis,
    )  # fmt: skip


def _recurrent(op, direction, peepholes, g):
    gates, ways = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if direction == "bidirectional" else 1
    steps, batch, size, hidden = 20, 3, 33, 48
    x = g.input(steps, batch, size)
    w = g.weight(ways, gates * hidden, size, fan_in=size)
    r = g.weight(ways, gates * hidden, hidden, fan_in=hidden)
    b = g.weight(ways, 2 * gates * hidden, fan_in=100)
    more = []
    if peepholes:
        state = g.constant(np.zeros((ways, batch, hidden), "float32"))
        more = ["", state, state, g.weight(ways, 3 * hidden, fan_in=100)]
    made = g(op, x, w, r, b, *more, outputs=2, hidden_size=hidden, direction=direction)
    return made[0]


def _resize(mode, transform, to, g):
    sizes = g.ints(1, 33, *to)
    return g(
        "Resize", g.input(1, 33, 28, 37), "", "", sizes, mode=mode,
        coordinate_transformation_mode=transform,
    )  # fmt: skip


def _reverse_sequence(g, a, b, c):
    lengths = g.constant(np.arange(a, dtype="int64") % b + 1)
    return g("ReverseSequence", g.input(a, b, c), lengths, batch_axis=0, time_axis=1)


def _trilu(upper, g, a, b, c):
    return g("Trilu", g.input(a, b, c), g.constant(np.int64(1)), upper=upper)


def _cumsum(axis, how, g):
    return g("CumSum", g.input(17, 33, 65), g.constant(np.int64(axis)), **how)


def _deconv(g_, n, c, h, f, k, s, d):
    """A transposed convolution whose taps are `d` pixels apart."""
    weight = g_.weight(c, f, k, k, fan_in=c * k)
    x = g_.input(n, c, h, h)
    return g_("ConvTranspose", x, weight, strides=[s] * 2, dilations=[d] * 2)


def _fourier(inverse, one_sided, g, n, length):
    parts = 1 if one_sided else 2
    x = g.input(n, length, parts)
    return g("DFT", x, axis=1, inverse=inverse, onesided=one_sided)


def _stft(g, n, length, frame):
    window = g.constant(np.hanning(frame).astype("float32"))
    return g("STFT", g.input(n, length, 1), g.constant(np.int64(frame // 2)), window)


def _quantized(g, x, scale=0.03):
    return g("QuantizeLinear", x, g.scalar(scale), g.constant(np.uint8(128)))


def _qlinear_matmul(g, rows, depth, units):
    zero, step = g.constant(np.uint8(128)), g.scalar(0.03)
    weight = g.constant(g.rng.integers(0, 255, (depth, units)).astype("uint8"))
    x = _quantized(g, g.input(rows, depth))
    y = g("QLinearMatMul", x, step, zero, weight, g.scalar(0.01), zero, g.scalar(0.2), zero)
    return g("DequantizeLinear", y, g.scalar(0.2), zero)


def _matmul_integer(g, rows, depth, units):
    weight = g.constant(g.rng.integers(0, 255, (depth, units)).astype("uint8"))
    x, step, zero = g("DynamicQuantizeLinear", g.input(rows, depth), outputs=3)
    y = g("Cast", g("MatMulInteger", x, weight, zero, g.constant(np.uint8(128))), to=F32)
    return g("Mul", y, step)


def _qlinear_conv(g, n, c, h, f, k):
    zero, step = g.constant(np.uint8(128)), g.scalar(0.03)
    weight = g.constant(g.rng.integers(-127, 128, (f, c, k, k)).astype("int8"))
    x = _quantized(g, g.input(n, c, h, h))
    y = g(
        "QLinearConv", x, step, zero, weight, g.scalar(0.01), g.constant(np.int8(0)),
        g.scalar(0.3), zero, pads=[k // 2] * 4,
    )  # fmt: skip
    return g("DequantizeLinear", y, g.scalar(0.3), zero)


EINSUMS = {
    "bij_bjk_bik": ((4, 33, 65), (4, 65, 17)), "bhid_bhjd_bhij": ((2, 4, 33, 20), (2, 4, 65, 20)),
    "ij_j_i": ((127, 255), (255,)), "bi_bj_bij": ((4, 33), (4, 65)), "ii_i": ((127, 127),),
    "bijk_bkj": ((4, 17, 33, 13),), "bchw_co_bohw": ((1, 33, 28, 28), (33, 17)),
    "bthd_bshd_bhts": ((1, 65, 4, 32), (1, 65, 4, 32)),
}  # fmt: skip


def families(family, sizes):
    """Return {case: builder}; `family` makes those of several sizes."""
    cases = {}
    orders = list(permutations(range(5)))
    chosen = random.Random(0).sample(orders[1:], RANDOM_ORDERS)
    for shape, some in ((FOUR, list(permutations(range(4)))[1:]), (FIVE, chosen)):
        for order in some:
            name = "transpose_rank/" + "".join(map(str, order))
            cases[name] = partial(_unary, "Transpose", shape, perm=order)
    for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceLogSumExp"):
        for count in (1, 2, 3, 4):
            for axes in combinations(range(4), count):
                name = f"{op.lower()}_subset/" + "".join(map(str, axes))
                cases[name] = lambda g, op=op, axes=axes: m.reduce(g, op, FOUR, *axes, keep=0)
    for equation, shapes in EINSUMS.items():
        *left, right = equation.split("_")
        cases[f"einsum/{equation}"] = partial(_einsum, ",".join(left) + "->" + right, shapes)
    for left, right in (
        ((4, 1, 33, 65), (1, 3, 65, 17)), ((2, 4, 7, 33), (33, 127)), ((33, 65), (4, 65, 17)),
        ((4, 1, 64), (4, 64, 255)), ((65,), (4, 65, 33)), ((4, 33, 65), (65,)),
    ):  # fmt: skip
        name = "_".join("x".join(map(str, shape)) for shape in (left, right))
        cases[f"matmul_broadcast/{name}"] = partial(_matmul, left, right)
    for kind, name in ((I32, "int32"), (m.I64, "int64")):
        for op in ("Add", "Mul", "Div", "Mod"):
            cases[f"integers/{op.lower()}_{name}"] = partial(_integers, op, kind, 100_000)
    for axis in (0, 1, -1):
        cases[f"one_hot/axis{axis}"] = partial(_one_hot, axis, 127)
        for how in ({"exclusive": 1}, {"reverse": 1}):
            cases[f"cumsum_{next(iter(how))}/axis{axis}"] = partial(_cumsum, axis, how)
    for width in (1, 2, 3):
        for reduction in ("none", "add", "max"):
            cases[f"scatter_nd/{reduction}_width{width}"] = partial(_scatter_nd, reduction, width)
        cases[f"gather_nd_batch/width{width}"] = partial(_gather_nd, 1, width)
    cases |= {f"norm_layer_axis/{axis}": partial(_layer_norm, axis) for axis in (1, 2, 3)}
    for op in ("LSTM", "GRU", "RNN"):
        for direction in ("reverse", "bidirectional"):
            name = f"recurrent/{op.lower()}_{direction}"
            cases[name] = partial(_recurrent, op, direction, False)
    cases["recurrent/lstm_peepholes"] = partial(_recurrent, "LSTM", "forward", True)
    for mode in ("nearest", "linear", "cubic"):
        for transform in ("half_pixel", "align_corners", "asymmetric"):
            for to in ((56, 74), (13, 17)):
                name = f"resize_mode/{mode}_{transform}_{to[0]}"
                cases[name] = partial(_resize, mode, transform, to)
    usual, axes = {"a": 4, "b": 65, "c": 33}, {"b": sizes[:9], "c": sizes[:9]}
    cases |= family("reverse_sequence", _reverse_sequence, usual, axes)
    for upper in (0, 1):
        cases |= family(
            f"trilu_{'upper' if upper else 'lower'}", partial(_trilu, upper), usual, axes
        )
    for p in (1, 2):
        for axis in (0, 1, 2):
            name = f"norm_lp/p{p}_axis{axis}"
            cases[name] = partial(_unary, "LpNormalization", (17, 33, 65), p=p, axis=axis)
    for d in (2, 3):
        for stride in (1, 2):
            cases[f"deconv_dilated/s{stride}_d{d}"] = partial(
                _deconv, n=1, c=33, h=14, f=32, k=3, s=stride, d=d
            )
    for length in (16, 65, 127, 256, 1000):
        cases[f"fourier/real_{length}"] = partial(_fourier, 0, 1, n=4, length=length)
        cases[f"fourier/inverse_{length}"] = partial(_fourier, 1, 0, n=4, length=length)
    cases["fourier/stft"] = partial(_stft, n=2, length=4000, frame=256)
    usual = {"rows": 33, "depth": 65, "units": 127}
    axes = {"rows": (1, 7, 255), "depth": (13, 1000), "units": (7, 17, 255)}
    cases |= family("qlinear_matmul", _qlinear_matmul, usual, axes)
    cases |= family("matmul_integer", _matmul_integer, usual, axes)
    usual = {"n": 1, "c": 33, "h": 28, "f": 65, "k": 3}
    cases |= family("qlinear_conv", _qlinear_conv, usual, {"c": (3, 17), "f": (7, 64), "k": (1, 5)})
    image, line = (1, 33, 28, 37), (100_000,)
    for name, op, shape, attrs in (
        ("celu", "Celu", line, {}), ("thresholdedrelu", "ThresholdedRelu", line, {}),
        ("shrink", "Shrink", line, {}), ("hardmax", "Hardmax", (64, 127), {}),
        ("lppool", "LpPool", image,
        {"kernel_shape": [3, 3], "strides": [2, 2]}), ("globallppool", "GlobalLpPool", image, {}),
        ("space_to_depth", "SpaceToDepth", (1, 17, 28, 36), {"blocksize": 2}),
        ("maxpool_dilated", "MaxPool", image, {"kernel_shape": [3, 3], "dilations": [2, 2]}),
        ("averagepool_ceil", "AveragePool", image, {"kernel_shape": [3, 3], "strides": [2, 2],
         "ceil_mode": 1}), ("isnan", "IsNaN", line, {}), ("nonzero", "NonZero", (64, 127), {}),
        ("cast_int32", "Cast", line, {"to": I32}), ("cast_bool", "Cast", line, {"to": BOOL}),
        ("cast_int8", "Cast", line, {"to": TensorProto.INT8}),
        ("cast_float16", "Cast", line, {"to": TensorProto.FLOAT16}),
    ):  # fmt: skip
        cases[f"others/{name}"] = partial(_unary, op, shape, **attrs)
    return cases
