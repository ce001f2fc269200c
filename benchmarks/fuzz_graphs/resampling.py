"""Interpolation: resize and grid_sample, from their definitions in exact fractions or float64."""

from fractions import Fraction

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.values import need, result


def _source(mode, i, size, out):
    """The source coordinate of output position i, as a fraction."""
    scale = Fraction(out, size)
    if mode == "align_corners":
        return Fraction(i * (size - 1), out - 1) if out > 1 else Fraction(0)
    if mode == "asymmetric":
        return i / scale
    if mode == "pytorch_half_pixel" and out <= 1:
        return Fraction(0)
    return (i + Fraction(1, 2)) / scale - Fraction(1, 2)


def _nearest(x, rounding):
    half = Fraction(1, 2)
    low = x.numerator // x.denominator
    if rounding == "floor":
        return low
    if rounding == "ceil":
        return -(-x.numerator // x.denominator)
    up = x - low > half or (x - low == half and rounding == "round_prefer_ceil")
    return low + int(up)


def _cubic(distance, alpha):
    x = abs(float(distance))
    if x <= 1:
        return (alpha + 2) * x**3 - (alpha + 3) * x**2 + 1
    return alpha * x**3 - 5 * alpha * x**2 + 8 * alpha * x - 4 * alpha if x < 2 else 0.0


def _weights(attrs, size, out):
    """A matrix (out, size): what each output reads along one axis."""
    found = np.zeros((out, size))
    for i in range(out):
        x = _source(attrs["coordinate_transformation_mode"], i, size, out)
        low = x.numerator // x.denominator
        if attrs["method"] == "nearest_neighbor":
            taps = [(_nearest(x, attrs["rounding_method"]), 1.0)]
        elif attrs["method"] == "linear":
            taps = [(low, float(1 - (x - low))), (low + 1, float(x - low))]
        else:
            taps = [(low + t, _cubic(x - (low + t), -0.75)) for t in (-1, 0, 1, 2)]
        for position, weight in taps:
            found[i, min(max(position, 0), size - 1)] += weight
    return found


@rule("image.resize")
def _resize(attrs, x):
    need(x.real or attrs["method"] == "nearest_neighbor")
    exact, error = x.exact, x.error
    size = np.abs(exact.astype(np.float64))
    for axis, out in enumerate(attrs["size"]):
        if not out or out == x.shape[axis]:
            continue
        matrix = _weights(attrs, x.shape[axis], out)

        def along(array, m, axis=axis):
            return np.moveaxis(np.tensordot(m, array, (1, axis)), 0, axis)

        if not x.real:
            exact = np.take(exact, matrix.argmax(1), axis)
            error = np.take(error, matrix.argmax(1), axis)
            continue
        exact, error, size = (
            along(exact, matrix), along(error, np.abs(matrix)), along(size, np.abs(matrix))
        )  # fmt: skip
    # Coordinates are rounded to float32: they move a weight by some units of the coordinate.
    far = max(x.shape, default=1)
    ulps = 0.0 if attrs["method"] == "nearest_neighbor" else 16.0 + 8.0 * far
    top = np.max(size, initial=0.0) if ulps else size
    return result(exact, error, x.dtype, ulps, top + 0 * size)


@rule("image.grid_sample")
def _grid_sample(attrs, x, grid):
    need(x.real and grid.certain and attrs["padding_mode"] == "zeros")
    n, c, *size = x.shape
    count = len(size)
    where = []
    for a in range(count):  # the last coordinate of the grid is that of the first spatial axis
        g = grid.exact[..., count - 1 - a]
        extent = size[a]
        position = (
            (g + 1) / 2 * (extent - 1) if attrs["align_corners"] else ((g + 1) * extent - 1) / 2
        )
        where.append(position)
    out = grid.shape[1:-1]
    exact, error = np.zeros((n, c, *out)), np.zeros((n, c, *out))
    for b in range(n):
        for at in np.ndindex(*out):
            point = [w[(b, *at)] for w in where]
            for corner in np.ndindex(*(2,) * count):
                position, weight = [], 1.0
                for p, q in zip(point, corner, strict=True):
                    low = int(np.floor(p))
                    position.append(low + q)
                    weight *= (p - low) if q else 1 - (p - low)
                if all(0 <= p < e for p, e in zip(position, size, strict=True)):
                    exact[(b, slice(None), *at)] += weight * x.exact[(b, slice(None), *position)]
                    error[(b, slice(None), *at)] += weight * x.error[(b, slice(None), *position)]
    top = np.max(np.abs(x.exact), initial=0.0)
    return result(exact, error, x.dtype, 32.0 + 16.0 * max(size), top + 0 * exact)


@maker(2)
def resize(d):
    x = d.of_rank(d.pick([3, 4, 4, 5]))
    value = d.value(x)
    method = d.pick(["nearest_neighbor", "linear", "cubic"]) if value.real else "nearest_neighbor"
    mode = d.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    size = tuple(
        0 if a < 2 and d.chance(0.9) else d.pick([e, 2 * e, d.extent(33)])
        for a, e in enumerate(value.shape)
    )
    rounding = d.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    return d.call(
        "image.resize", x, size=size, method=method, coordinate_transformation_mode=mode,
        rounding_method=rounding,
    )  # fmt: skip


@maker(0.7)
def grid_sample(d):
    x = d.of_rank(4, real=True)
    value = d.value(x)
    out = (d.int(1, 5), d.int(1, 5))
    grid = d.leaf((value.shape[0], *out, 2), value.dtype, -1.2, 1.2)
    need(value.dtype == "float32" and value.shape[0] <= 3)
    return d.call(
        "image.grid_sample", x, grid, method="bilinear", padding_mode="zeros",
        align_corners=d.chance(0.5),
    )  # fmt: skip
