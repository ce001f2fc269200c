"""Products whose inner loops are a hardware intrinsic, and matrices for them."""

import numpy as np

from slipway import te


def product(entry, intrin):
    """An integer or bfloat16 matrix product whose inner loops are the intrinsic."""
    depth = entry.depth
    if entry.taps:
        return window(entry, intrin)

    def column(k):  # of a
        return depth - 1 - k % depth if entry.mirrored else k % depth

    rows, steps = max(entry.rows, 1), 3
    a = te.placeholder((2, steps, rows, depth), entry.a_dtype, name="A")
    b = te.placeholder((2, steps, entry.columns, depth), entry.b_dtype, name="B")
    k = te.reduce_axis((0, steps * depth), "k")
    c = te.compute(
        (2 * rows, 2 * entry.columns),
        lambda i, j: te.sum(
            te.cast(a[i // rows, k // depth, i % rows, column(k)], entry.c_dtype)
            * te.cast(
                b[j // entry.columns, k // depth, j % entry.columns, k % depth], entry.c_dtype
            ),
            axis=k,
        ),
        name="C",
    )
    packed = c
    if entry.rows:  # the instruction's result is contiguous: compute it in a tile, then copy
        s = te.create_schedule(c.op)
        packed = s.cache_write(c, "local")
        io, jo, _, _ = s[c].tile(*c.op.axis, entry.rows, entry.columns)
        s[packed].compute_at(s[c], jo)
    else:
        s = te.create_schedule(c.op)
    i, j = s[packed].op.axis
    io, ii = s[packed].split(i, rows)
    jo, ji = s[packed].split(j, entry.columns)
    ko, ki = s[packed].split(k, depth)
    s[packed].reorder(io, jo, ko, ii, ji, ki)
    s[packed].tensorize(ii if entry.rows else ji, intrin)
    return s, [a, b, c]


def window(entry, intrin):
    """Sums of taps, channel by channel."""
    steps, channels = 3, 2 * entry.columns
    a = te.placeholder((steps, entry.depth, channels), entry.a_dtype, name="A")
    b = te.placeholder((steps, channels, entry.depth), entry.b_dtype, name="B")
    step = te.reduce_axis((0, steps), "step")
    k = te.reduce_axis((0, entry.depth), "k")
    c = te.compute(
        (channels,),
        lambda i: te.sum(
            te.cast(a[step, k, i], entry.c_dtype) * te.cast(b[step, i, k], entry.c_dtype),
            axis=[step, k],
        ),
        name="C",
    )
    s = te.create_schedule(c.op)
    outer, lane = s[c].split(c.op.axis[0], entry.columns)
    s[c].reorder(outer, step, lane, k)
    s[c].tensorize(lane, intrin)
    return s, [a, b, c]


def operands(entry, args):
    """Random matrices for `product` and what they give."""
    rng = np.random.default_rng(0)
    shapes = [tuple(int(x) for x in t.shape) for t in args]
    a = rng.integers(0 if "u" in entry.a_dtype else -9, 10, shapes[0])
    b = rng.integers(0 if "u" in entry.b_dtype else -9, 10, shapes[1])
    if entry.taps:
        low, high = {"uint8": (0, 256), "int8": (-128, 128)}.get(entry.a_dtype, (-128, 256))
        low_b = -128 if entry.min_b is None else entry.min_b
        a, b = rng.integers(low, high, shapes[0]), rng.integers(low_b, 128, shapes[1])
        a[:, :, 0], b[:, 0] = low, low_b
        return a, b, np.einsum("ski,sik->i", a, b)
    left = a[..., ::-1] if entry.mirrored else a
    rows = left.transpose(0, 2, 1, 3).reshape(shapes[2][0], -1)
    columns = b.transpose(0, 2, 1, 3).reshape(shapes[2][1], -1)
    return a, b, rows @ columns.T
