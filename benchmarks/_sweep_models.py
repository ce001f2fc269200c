"""Makers of the models of `benchmarks.sweep`: one operator each, sizes by name."""

import numpy as np

from benchmarks import _operator_models as m


def same(h, k, d=1):
    """The padding that keeps the size, as exporters write it: the odd element at the end."""
    total = d * (k - 1)
    return [total // 2] * h + [total - total // 2] * h


def conv(g, n, c, h, w, f, k, s=1, d=1, groups=1):
    return m.conv(
        g, (n, c, h, w), f, k, stride=s, dilation=d, pad=same(2, k, d), groups=groups
    )  # fmt: skip


def depthwise(g, n, c, h, w, k, s, d):
    return conv(g, n, c, h, w, c, k, s, d, groups=c)


def grouped(conv, g_, n, p, q, g, h, w, k, s):
    """`g` groups of `p` input and `q` output channels."""
    return conv(g_, n, p * g, h, w, q * g, k, s, groups=g)


def conv_int8(g, n, c, h, w, f, k, s=1, d=1, groups=1):
    """A convolution of quantised data by weights with a scale for each filter."""
    weight = g.constant(g.rng.integers(-127, 128, (f, c // groups, k, k)).astype("int8"))
    scales = g.constant(g.rng.uniform(0.005, 0.01, f).astype("float32"))
    zeros = g.constant(np.zeros(f, "int8"))
    wide = g("DequantizeLinear", weight, scales, zeros, axis=0)
    bias = g.constant(g.rng.integers(-1000, 1000, f).astype("int32"))
    bias = g("DequantizeLinear", bias, g.scalar(0.0003), g.constant(np.int32(0)))
    x = unsigned(g, g.input(n, c, h, w), 0.03)
    made = g(
        "Conv", x, wide, bias, strides=[s] * 2, pads=same(2, k, d), dilations=[d] * 2, group=groups
    )  # fmt: skip
    return unsigned(g, g("Relu", made), 0.3)


def unsigned(g, value, scale):
    """`value` rounded to uint8 and back."""
    zero, step = g.constant(np.uint8(128)), g.scalar(scale)
    return g("DequantizeLinear", g("QuantizeLinear", value, step, zero), step, zero)


def depthwise_int8(g, n, c, h, w, k, s, d):
    return conv_int8(g, n, c, h, w, c, k, s, d, groups=c)


def conv1d(g, n, c, l, f, k, s, d):  # noqa: E741
    return m.conv(g, (n, c, l), f, k, stride=s, dilation=d, pad=same(1, k, d))


def conv3d(g, n, c, t, h, f, k, s):
    return m.conv(g, (n, c, t, h, h), f, k, stride=s, pad=same(3, k))


def deconv(g_, n, c, h, f, k, s, g):
    """A transposed convolution of `f` filters a group, nothing cut off its output."""
    weight = g_.weight(c, f, k, k, fan_in=c // g * k)
    bias = g_.weight(f * g, fan_in=100)
    return g_(
        "ConvTranspose", g_.input(n, c, h, h), weight, bias, strides=[s] * 2, group=g
    )  # fmt: skip


def matmul(g, n, rows, depth, units):
    return m.product(g, (n, rows, depth), (n, depth, units))


def matmul_transposed(g, n, rows, depth, units):
    return m.product(g, (n, rows, depth), (n, units, depth), transpose=True)


def attention(g, n, heads, length, size, mask=None):
    """softmax(q k' / sqrt(size) + mask) v."""
    q, k, v = (g.input(n, heads, length, size) for _ in range(3))
    scores = g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g("Mul", scores, g.scalar(size**-0.5))
    if mask is not None:
        scores = g("Add", scores, g.constant(mask))
    return g("MatMul", g("Softmax", scores, axis=-1), v)


def attention_causal(g, n, heads, length, size):
    mask = np.triu(np.full((1, 1, length, length), -1e9, "float32"), 1)
    return attention(g, n, heads, length, size, mask)


def attention_step(g, length, cache, size, heads):
    """A few rows of queries against keys and values that were computed before."""
    q = g.input(1, heads, length, size)
    k, v = (g.input(1, heads, cache, size) for _ in range(2))
    scores = g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g("Mul", scores, g.scalar(size**-0.5))
    return g("MatMul", g("Softmax", scores, axis=-1), v)


def pool(op, g, n, c, h, w, k, s):
    more = {"count_include_pad": 1} if op == "AveragePool" else {}
    return g(
        op, g.input(n, c, h, w), kernel_shape=[k] * 2, strides=[s] * 2, pads=same(2, k), **more
    )  # fmt: skip


def unary(op, g, n, c, h, w, **attrs):
    return g(op, g.input(n, c, h, w), **attrs)


def resize(mode, g, n, c, h, w, to):
    how = {"nearest_mode": "floor"} if mode == "nearest" else {}
    return m.resize(g, (n, c, h, w), (to, to), mode, **how)


def pad(mode, g, n, c, h, w, p):
    """Padding of the image, no wider than reflection allows."""
    top, left = min(p, h - 1), min(p, w - 1)
    return m.padded(g, (n, c, h, w), (0, 0, top, left, 0, 0, top, left), mode)


def grid_sample(mode, g, n, c, h, w, to):
    grid = g("Tanh", g.input(n, to, to, 2))
    return g("GridSample", g.input(n, c, h, w), grid, mode=mode, padding_mode="zeros")


def norm(op, g, n, c, h, w):
    return m.norm(g, (n, c, h, w), op, c)


def group_norm(g_, n, c, h, w, g):
    return m.group_norm(g_, (n, c, h, w), g)


def depth_to_space(g, n, c, h, w):
    return g("DepthToSpace", g.input(n, c, h, w), blocksize=2)


def prelu(g, n, c, h, w):
    return g("PRelu", g.input(n, c, h, w), g.weight(c, 1, 1, fan_in=10))


def along(op, axis, g, a, b, c):
    return g(op, g.input(a, b, c), axis=axis)


def reduced(op, axes, g, a, b, c):
    return m.reduce(g, op, (a, b, c), *axes, keep=0)


def cumsum(axis, g, a, b, c):
    return g("CumSum", g.input(a, b, c), g.constant(np.int64(axis)))


def concat(axis, g, a, b, c):
    other = [a, b, c]
    other[axis] = max(1, other[axis] // 2)
    return g("Concat", g.input(a, b, c), g.input(*other), g.input(a, b, c), axis=axis)


def split(axis, g, a, b, c):
    whole = (a, b, c)[axis]
    sizes = [n for n in (whole // 3, whole - whole // 3) if n]
    parts = g("Split", g.input(a, b, c), g.ints(*sizes), outputs=len(sizes), axis=axis)
    return [g("Relu", part) for part in ([parts] if isinstance(parts, str) else parts)]


def slice_(axis, g, a, b, c):
    """The middle half."""
    whole = (a, b, c)[axis]
    start = whole // 4
    return m.sliced(g, (a, b, c), (start,), (start + max(1, whole // 2),), (axis,), (1,))


def flip(axis, g, a, b, c):
    return m.sliced(g, (a, b, c), (-1,), (-(2**31),), (axis,), (-1,))


def tile(axis, g, a, b, c):
    repeats = [1, 1, 1]
    repeats[axis] = 3
    return g("Tile", g.input(a, b, c), g.ints(*repeats))


def indices(g, size, *shape):
    """Input indices below `size`, however large the given numbers are."""
    return g("Mod", g.input(*shape, kind=m.I64), g.ints(size))


def gather(axis, g, a, b, c):
    whole = (a, b, c)[axis]
    return g("Gather", g.input(a, b, c), indices(g, whole, max(1, whole // 2)), axis=axis)


MOVES = {
    "Concat": concat, "Split": split, "Slice": slice_, "Flip": flip, "Tile": tile, "Gather": gather,
}  # fmt: skip


def scatter(axis, g, a, b, c):
    """Half as many updates as elements; what has the same index is added up."""
    sizes = [a, b, c]
    sizes[axis] = max(1, sizes[axis] // 2)
    where = indices(g, (a, b, c)[axis], *sizes)
    return g(
        "ScatterElements", g.input(a, b, c), where, g.input(*sizes), axis=axis, reduction="add"
    )  # fmt: skip


def gather_elements(axis, g, a, b, c):
    sizes = [a, b, c]
    sizes[axis] = max(1, sizes[axis] // 2)
    where = indices(g, (a, b, c)[axis], *sizes)
    return g("GatherElements", g.input(a, b, c), where, axis=axis)


def scatter_rows(g, a, b, c):
    """A few rows of a cache are written."""
    rows = max(1, b // 8)
    where = indices(g, b, rows, 1)
    return g("ScatterND", g.input(b, a * c), where, g.input(rows, a * c))


def gather_nd(g, a, b, c):
    where = indices(g, min(a, b), max(1, b // 2), 2)
    return g("GatherND", g.input(a, b, c), where)


def transpose(order, g, a, b, c):
    return g("Transpose", g.input(a, b, c), perm=order)


def layer_norm(g, a, b, c):
    return m.norm(g, (a, b, c), "LayerNormalization", c, axis=-1)


def rms_norm(g, a, b, c):
    return m.rms_norm(g, (a, b, c))


def top_k(g, a, b, c, k):
    return m.top_k(g, (a, b, c), min(k, c))


def embedding(g, n, c):
    return m.gather(g, (1000, c), (1, n))


def where(g, a, b, c):
    x = g.input(a, b, c)
    return g("Where", g("Greater", x, g.scalar(0)), x, g.input(a, 1, c))


def flat(op, g, a):
    return g(op, g.input(a))


def flat_positive(op, g, a):
    x = g("Abs", g.input(a))
    return g(op, g("Add", x, g.scalar(1.0)))


def binary(op, g, a):
    x, y = g.input(a), g.input(a)
    if op == "Pow":
        x = g("Abs", x)
    return g(op, x, y, **({"fmod": 1} if op == "Mod" else {}))


def broadcast(stretched, g, a, b, c):
    """A sum with a tensor that has one element in the `stretched` axes."""
    other = [1 if i in stretched else n for i, n in enumerate((a, b, c))]
    return g("Add", g.input(a, b, c), g.input(*other))


def recurrent(op, g, steps, batch, size, hidden):
    return m.recurrent(g, op, steps, batch, size, hidden)
