"""Operators over two images or an image and a gradient: correlation, the gradients of pools."""

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.products import geometry
from benchmarks.fuzz_graphs.values import linear, need, result


def _taps(attrs, size, position):
    """Return the places that a window lies over, of them those inside, and how many it counts."""
    top, left, bottom, right = attrs["padding"]
    counted, inside = 0, []
    for tap in np.ndindex(*attrs["pool_size"]):
        y, x = (
            p * s - b + t
            for p, s, b, t in zip(position, attrs["strides"], (top, left), tap, strict=True)
        )
        real = 0 <= y < size[0] and 0 <= x < size[1]
        if real:
            inside.append((y, x))
        around = -top <= y < size[0] + bottom and -left <= x < size[1] + right
        counted += around if attrs.get("count_include_pad") else real
    return inside, max(counted, 1)


def _gradient(attrs, grad, x, average):
    """Add what each window hands back, window by window: to all of it, or to its first maximum."""
    need(average or x.certain)  # another element may be the largest where rounding says so
    last = attrs["layout"] == "NHWC"
    g, e, data = (np.moveaxis(a, -1, 1) if last else a for a in (grad.exact, grad.error, x.exact))
    made, errors, sizes = (np.zeros(data.shape) for _ in range(3))
    terms = 1
    for position in np.ndindex(*g.shape[2:]):
        inside, counted = _taps(attrs, data.shape[2:], position)
        need(bool(inside))
        terms = max(terms, counted)
        for n, c in np.ndindex(*data.shape[:2]):
            values = [data[(n, c, *at)] for at in inside]
            chosen = inside if average else [inside[int(np.argmax(values))]]
            for at in chosen:
                given = g[(n, c, *position)] / (counted if average else 1)
                made[(n, c, *at)] += given
                sizes[(n, c, *at)] += abs(given)
                errors[(n, c, *at)] += e[(n, c, *position)]
    found = [np.moveaxis(a, 1, -1) if last else a for a in (made, errors, sizes)]
    return result(found[0], found[1], x.dtype, terms + 6.0, found[2])


rule("nn.max_pool2d_grad")(lambda attrs, grad, x: _gradient(attrs, grad, x, False))
rule("nn.avg_pool2d_grad")(lambda attrs, grad, x: _gradient(attrs, grad, x, True))


@maker(0.7)
def pool_gradient(d):
    kind = d.pick(["max", "avg"])
    x = d.of_rank(4, real=True)
    if kind == "max" and not d.value(x).certain:
        x = d.leaf(d.value(x).shape, d.value(x).dtype, const=0.0)
    layout = d.pick(["NCHW", "NHWC"])
    shape = d.value(x).shape
    named = shape[2:] if layout == "NCHW" else shape[1:3]
    need(int(np.prod(shape)) <= 1200)
    window, strides, _, padding = geometry(d, named, 2)
    padding = tuple(min(p, window[a % 2] - 1) for a, p in enumerate(padding))
    attrs = {"pool_size": window, "strides": strides, "padding": padding, "layout": layout,
             "ceil_mode": d.chance(0.3)}  # fmt: skip
    if kind == "avg":
        attrs["count_include_pad"] = d.chance(0.5)
    pooled = d.call(f"nn.{kind}_pool2d", x, dilation=(1, 1), **attrs)
    grad = pooled if d.chance(0.3) else d.leaf(d.value(pooled).shape, d.value(x).dtype, const=0.2)
    return d.call(f"nn.{kind}_pool2d_grad", grad, x, **attrs)


@rule("nn.correlation")
def _correlation(attrs, one, other):
    """Patch against patch in plain loops, from the definition of FlowNet."""
    size, far, step = attrs["kernel_size"], attrs["max_displacement"], attrs["stride1"]
    top, left, bottom, right = attrs["padding"]
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    moves = range(-(far // attrs["stride2"]), far // attrs["stride2"] + 1)
    margin = far + size // 2
    rows, columns = (
        range(margin, n + pads - margin, step)
        for n, pads in zip(one.shape[2:], (top + bottom, left + right), strict=True)
    )
    need(bool(rows) and bool(columns))

    def every(a, b, both):
        a, b = np.pad(a, around), np.pad(b, around)
        made = np.zeros((len(a), len(moves) ** 2, len(rows), len(columns)))
        for q, (v, u) in enumerate((v, u) for v in moves for u in moves):
            for (i, y), (j, x) in ((r, c) for r in enumerate(rows) for c in enumerate(columns)):
                y0, x0 = y - size // 2, x - size // 2
                y1, x1 = y0 + v * attrs["stride2"], x0 + u * attrs["stride2"]
                first = a[:, :, y0 : y0 + size, x0 : x0 + size]
                second = b[:, :, y1 : y1 + size, x1 : x1 + size]
                made[:, q, i, j] = both(first, second).sum((1, 2, 3))
        return made / (size * size * a.shape[1])

    terms = size * size * one.shape[1]
    if attrs["is_multiply"]:
        return linear(lambda a, b: every(a, b, np.multiply), one.dtype, terms, one, other)
    exact = every(one.exact, other.exact, lambda a, b: np.abs(a - b))
    error = every(one.error, other.error, np.add)
    magnitude = every(np.abs(one.exact), np.abs(other.exact), np.add)
    return result(exact, error, one.dtype, terms + 4.0, magnitude)


@maker(0.5)
def correlation(d):
    one = d.of_rank(4, real=True)
    shape, dtype = d.value(one).shape, d.value(one).dtype
    need(int(np.prod(shape)) <= 1200 and min(shape) > 0)

    def fits(v):
        return v.shape == shape and v.dtype == dtype

    other = d.find(fits) if d.chance(0.4) else d.leaf(shape, dtype, const=0.2)
    size, far = d.pick([1, 1, 3]), d.int(0, 3)
    return d.call(
        "nn.correlation", one, other, kernel_size=size, max_displacement=far,
        stride1=d.int(1, 3), stride2=d.int(1, 2),
        padding=tuple(d.int(0, far + size) for _ in range(4)), is_multiply=d.chance(0.6),
    )  # fmt: skip
