"""Sums of products: convolutions of all kinds, dense layers, matrix products, attention."""

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.values import UNIT, Value, add, linear, moved, multiply, need, result

LETTERS = {1: "W", 2: "HW", 3: "DHW"}
# Winograd's transforms cost digits relative to the largest pixels of the tile, not to the product
# at hand: six decimal bits more than the direct sum (docs/numerics.md).
WINOGRAD = 64.0


def convolution(x, w, strides, padding, dilation, groups, fill=0):
    """Direct convolution of arrays (N, C, spatial) and (O, C / groups, spatial)."""
    count = x.ndim - 2
    widths = [(padding[a], padding[a + count]) for a in range(count)]
    x = np.pad(x, [(0, 0), (0, 0), *widths], constant_values=fill)
    kernel = w.shape[2:]
    out = [
        (x.shape[a + 2] - (kernel[a] - 1) * dilation[a] - 1) // strides[a] + 1 for a in range(count)
    ]
    need(min(out) > 0 and x.shape[1] == w.shape[1] * groups and w.shape[0] % groups == 0)
    x = x.reshape(x.shape[0], groups, w.shape[1], *x.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    total = 0
    for tap in np.ndindex(*kernel):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilation, out, strides, strict=True)
        )
        total = total + np.einsum("ngc...,goc->ngo...", x[(..., *window)], w[(..., *tap)])
    return total.reshape(total.shape[0], w.shape[0] * w.shape[1], *out)


def _ordered(array, layout, wanted):
    return np.transpose(array, [layout.index(letter) for letter in wanted])


@rule("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _conv(attrs, x, w):
    count = len(attrs["strides"])
    letters = LETTERS[count]
    to, back = "NC" + letters, attrs["data_layout"]

    def direct(a, b):
        out = convolution(
            _ordered(a, back, to), _ordered(b, attrs["kernel_layout"], "OI" + letters),
            attrs["strides"], attrs["padding"], attrs["dilation"], attrs["groups"],
        )  # fmt: skip
        return _ordered(out, to, back)

    dtype = attrs.get("out_dtype") or x.dtype
    terms = w.exact.size // w.shape[attrs["kernel_layout"].index("O")]
    found = linear(direct, dtype, terms, x, w)
    kernel = [w.shape[attrs["kernel_layout"].index(letter)] for letter in letters]
    if dtype in UNIT and kernel == [3, 3] and set(attrs["strides"]) == {1} and attrs["groups"] == 1:
        found = Value(found.exact, found.error + _winograd_error(attrs, x, w, direct), dtype)
    return found


def _winograd_error(attrs, x, w, direct):
    """WINOGRAD roundings of sums whose pixels are all as large as the largest of a channel."""
    letters = attrs["data_layout"]
    axes = tuple(letters.index(letter) for letter in "HW")
    top = np.max(np.abs(x.exact), axis=axes, keepdims=True, initial=0.0) + np.zeros(x.shape)
    return WINOGRAD * UNIT[x.dtype] * np.max(direct(top, np.abs(w.exact)), initial=0.0)


@rule("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _conv_transpose(attrs, x, w):
    count = len(attrs["strides"])
    strides, dilation, groups = attrs["strides"], attrs["dilation"], attrs["groups"]
    padding, extra = attrs["padding"], attrs["output_padding"]

    def scatter(a, b):
        n, c, *size = a.shape
        kernel = b.shape[2:]
        full = [
            (size[k] - 1) * strides[k] + (kernel[k] - 1) * dilation[k] + 1 for k in range(count)
        ]
        out = np.zeros(
            (n, groups, b.shape[1], *(f + e for f, e in zip(full, extra, strict=True))), a.dtype
        )
        a = a.reshape(n, groups, c // groups, *size)
        b = b.reshape(groups, c // groups, *b.shape[1:])
        for tap in np.ndindex(*kernel):
            position = tuple(
                slice(t * d, t * d + (s - 1) * step + 1, step)
                for t, d, s, step in zip(tap, dilation, size, strides, strict=True)
            )
            out[(..., *position)] += np.einsum("ngc...,gco->ngo...", a, b[(..., *tap)])
        out = out.reshape(n, -1, *out.shape[3:])
        crop = tuple(
            slice(padding[k], full[k] - padding[k + count] + extra[k]) for k in range(count)
        )
        return out[(..., *crop)]

    need(all(0 <= e < s for e, s in zip(extra, strides, strict=True)))
    found = linear(scatter, x.dtype, w.exact.size // w.shape[1], x, w)
    need(min(found.shape) > 0)
    return found


@rule("nn.dense")
def _dense(attrs, x, w):
    dtype = attrs.get("out_dtype") or x.dtype
    return linear(lambda a, b: a @ b.T, dtype, w.shape[1], x, w)


def _product(attrs, a, b):
    def function(p, q):
        p = np.swapaxes(p, -1, -2) if attrs["transpose_a"] else p
        q = np.swapaxes(q, -1, -2) if attrs["transpose_b"] else q
        return p @ q

    depth = a.shape[-2 if attrs["transpose_a"] else -1]
    return linear(function, attrs.get("out_dtype") or a.dtype, depth, a, b)


rule("nn.matmul", "nn.batch_matmul")(_product)


def softmax(x: Value, axis: int) -> Value:
    """Softmax with its error: a score that moves by e moves the result by a factor exp(2e)."""
    wild = np.max(x.error, axis=axis, keepdims=True)
    need(bool((wild < 0.1).all()))
    top = np.max(x.exact, axis=axis, keepdims=True)
    exponentials = np.exp(x.exact - top)
    exact = exponentials / exponentials.sum(axis=axis, keepdims=True)
    distance = np.abs(x.exact - top) + 1
    slack = np.expm1(2 * wild) + UNIT[x.dtype] * (x.shape[axis] + 8 + 2 * distance)
    return result(exact, exact * slack, x.dtype, 4.0)


@rule("nn.attention", "nn.attention_bias")
def _attention(attrs, query, key, value, bias=None):
    order = [attrs["layout"].index(letter) for letter in "BNSH"]
    back = ["BNSH".index(letter) for letter in attrs["layout"]]
    q, k, v = (moved(t, lambda a: np.transpose(a, order)) for t in (query, key, value))
    scores = linear(lambda a, b: a @ np.swapaxes(b, -1, -2), q.dtype, q.shape[-1], q, k)
    scale = attrs["scale"] if attrs["scale"] is not None else q.shape[-1] ** -0.5
    scores = multiply(scores, Value(np.float64(scale), np.zeros(()), q.dtype))
    if bias is not None:
        scores = add(scores, bias)
    found = linear(lambda a, b: a @ b, q.dtype, k.shape[2], softmax(scores, -1), v)
    return moved(found, lambda a: np.transpose(a, back))


# -- makers ------------------------------------------------------------------------------------

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33)


def geometry(d, shape, spatial, most=4):
    """Window, strides, dilation and padding that leave something of every axis."""
    window, strides, dilation, before, after = [], [], [], [], []
    square = d.chance(0.4)
    for a in range(spatial):
        k = d.int(1, most)
        if square:
            k = min(3, most)
        step, hole, p, q = d.pick([1, 1, 2, 3]), d.pick([1, 1, 1, 2]), d.int(0, 2), d.int(0, 2)
        if square:
            step, hole, p, q = (strides or [step])[0], 1, 1, 1
        need(shape[a] + p + q >= (k - 1) * hole + 1)
        window.append(k)
        strides.append(step)
        dilation.append(hole)
        before.append(p)
        after.append(q)
    return tuple(window), tuple(strides), tuple(dilation), (*before, *after)


@maker(10)
def conv(d):
    spatial = d.pick([1, 2, 2, 2, 2, 3])
    letters = LETTERS[spatial]
    layout = d.pick(["NC" + letters, "NC" + letters, "NC" + letters, "N" + letters + "C"])
    if d.chance(0.4):
        extents = {
            "N": d.pick([1, 1, 2, 3]), "C": d.pick(CHANNELS),
            **{letter: d.extent((65, 31, 7)[spatial - 1]) for letter in letters},
        }  # fmt: skip
        need(int(np.prod(list(extents.values()))) <= 4 * d.most)
        x = d.leaf([extents[letter] for letter in layout], d.dtype(), -9, 9, const=0.0)
        if d.value(x).real:
            del d.nodes[-1], d.values[-1]
            x = d.leaf([extents[letter] for letter in layout], d.dtype(), const=0.0)
    else:
        x = d.of_rank(spatial + 2)
    value = d.value(x)
    named = dict(zip(layout, value.shape, strict=True))
    window, strides, dilation, padding = geometry(d, [named[n] for n in letters], spatial)
    divisors = [g for g in range(1, named["C"] + 1) if named["C"] % g == 0]
    groups = d.pick([1, 1, 1, named["C"], d.pick(divisors)])
    out = groups * d.pick([1, 1, 2, 3, 5, 8])
    if groups == 1:
        out = d.pick(CHANNELS)
    kernel_layout = (
        d.pick(["OI" + letters, letters + "IO"]) if layout[-1] == "C" else "OI" + letters
    )
    taps = {"O": out, "I": named["C"] // groups, **dict(zip(letters, window, strict=True))}
    work = out * (named["C"] // groups) * int(np.prod(window))
    need(work * int(np.prod([named[n] for n in letters])) <= 4_000_000 and work <= 40_000)
    w = d.weights([taps[letter] for letter in kernel_layout], value.dtype)
    dtype = "int32" if not value.real and d.chance(0.8) else ""
    y = d.call(
        f"nn.conv{spatial}d", x, w, strides=strides, padding=padding, dilation=dilation,
        groups=groups, channels=out, kernel_size=window, data_layout=layout,
        kernel_layout=kernel_layout, out_dtype=dtype,
    )  # fmt: skip
    return _epilogue(d, y, layout.index("C"), out)


def _epilogue(d, y, axis, channels):
    """What usually follows a layer: bias, batch norm, activation, residual."""
    value = d.value(y)
    if d.chance(0.4):
        y = d.call("nn.bias_add", y, d.weights((channels,), value.dtype), axis=axis)
    elif value.real and d.chance(0.3):
        four = [d.leaf((channels,), value.dtype, 0.5, 2.0, const=1.0) for _ in range(4)]
        y = d.call("nn.batch_norm", y, *four, axis=axis) - 2
    if d.chance(0.4):
        y = d.call("nn.relu", y)
    if d.chance(0.2):
        y = d.call("add", y, d.leaf(value.shape, value.dtype, const=0.1))
    return y


@maker(2.5)
def conv_transpose(d):
    spatial = d.pick([1, 2, 2, 3])
    x = d.of_rank(spatial + 2)
    value = d.value(x)
    window, strides, dilation, padding = geometry(
        d, [99] * spatial, spatial, 4 if spatial < 3 else 2
    )
    extra = tuple(d.int(0, s - 1) if d.chance(0.3) else 0 for s in strides)
    channels = value.shape[1]
    groups = d.pick([1, 1, d.pick([g for g in range(1, channels + 1) if channels % g == 0])])
    out = d.pick([1, 2, 3, 5, 8])
    need(out * channels * int(np.prod(window)) <= 20_000)
    w = d.weights((channels, out, *window), value.dtype)
    return d.call(
        f"nn.conv{spatial}d_transpose", x, w, strides=strides, padding=padding, dilation=dilation,
        groups=groups, output_padding=extra,
    )  # fmt: skip


@maker(5)
def dense(d):
    rank = d.pick([1, 2, 2, 2, 3])
    x = d.of_rank(rank)
    value = d.value(x)
    units = d.pick([1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 65])
    w = d.weights((units, value.shape[-1]), value.dtype)
    dtype = "int32" if not value.real and d.chance(0.8) else ""
    y = d.call("nn.dense", x, w, units=units, out_dtype=dtype)
    return _epilogue(d, y, rank - 1, units)


@maker(4)
def matmul(d):
    name = d.pick(["nn.matmul", "nn.batch_matmul"])
    x = d.of_rank(2 if name == "nn.matmul" else 3)
    value = d.value(x)
    one, other = d.chance(0.3), d.chance(0.5)
    depth = value.shape[-2 if one else -1]
    columns = d.pick([1, 2, 3, 5, 8, 16, 17, 33])
    tail = (columns, depth) if other else (depth, columns)
    batch = (d.pick([value.shape[0], 1]),) if name == "nn.batch_matmul" else ()
    y = d.weights((*batch, *tail), value.dtype) if d.chance(0.5) else d.leaf(
        (*batch, *tail), value.dtype, *((-9, 9) if not value.real else ()), const=0.0
    )  # fmt: skip
    return d.call(name, x, y, transpose_a=one, transpose_b=other)


@maker(1.5)
def attention(d):
    """The operator itself, or the products, softmax and transposes that a pass makes it of."""
    dtype = d.dtype()
    need(dtype in UNIT)
    b, n, s, t, h = (
        d.int(1, 2),
        d.int(1, 3),
        d.extent(33),
        d.extent(33),
        d.pick([1, 4, 5, 8, 16, 17]),
    )
    if d.chance(0.5):
        layout = d.pick(["BSNH", "BNSH"])
        named = {"B": b, "N": n, "S": s, "H": h}
        q = d.leaf([named[c] for c in layout], dtype, const=0.0)
        named["S"] = t
        k, v = (d.leaf([named[c] for c in layout], dtype, const=0.1) for _ in range(2))
        if d.chance(0.5):
            return d.call("nn.attention", q, k, v, scale=d.pick([None, 0.5]), layout=layout)
        mask = d.leaf((b, n, s, t), dtype)
        return d.call("nn.attention_bias", q, k, v, mask, scale=d.pick([None, 0.5]), layout=layout)
    q = d.leaf((b * n, s, h), dtype, const=0.0)
    k, v = (d.leaf((b * n, t, h), dtype, const=0.0) for _ in range(2))
    scores = d.call("nn.batch_matmul", q, k, transpose_a=False, transpose_b=True)
    scale = d.append_const(np.asarray(h**-0.5, dtype))
    weights = d.call("nn.softmax", d.call("multiply", scores, scale), axis=-1)
    out = d.call("nn.batch_matmul", weights, v, transpose_a=False, transpose_b=False)
    out = d.call("reshape", out, newshape=(b, n, s, h))
    return d.call("transpose", out, axes=(0, 2, 1, 3))
