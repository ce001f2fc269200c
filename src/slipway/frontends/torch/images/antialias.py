"""Resampling whose filter widens as it shrinks: one matrix per axis, computed from its sizes.

The sizes may be open: a matrix is written as arithmetic of positions, which is folded where they
are numbers.
"""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.product import product_of
from slipway.frontends.torch.converters import NodeView, cast, converter, like, number

# half the width of each filter, in steps of the longer of the two grids
REACH = {"_upsample_bilinear2d_aa": 1.0, "_upsample_bicubic2d_aa": 2.0}
SLOPE = -0.5  # of the cubic filter, as in PIL


@converter(*REACH)
def antialiased(node: NodeView) -> Any:
    """Torch's interpolation with antialias: rows, then columns."""
    x = node.input("input" if "input" in node.arguments else "self")
    given = node.arg("scale_factors")
    if given is None:
        given = [node.arguments.get("scales_h"), node.arguments.get("scales_w")]
    dtype = x.tensor_type.dtype
    x = cast(x, "float64" if dtype == "float64" else "float32")
    shape, size = x.tensor_type.shape, node.out.shape
    for axis in (3, 2):
        matrix = _weights(node, axis, shape[axis], size[axis], given[axis - 2])
        unit = _unit(matrix) if dtype == "uint8" else None
        if unit is not None:
            matrix = _rounded(relay.multiply(matrix, unit))
        matrix = cast(matrix, x.tensor_type.dtype)
        x = product_of(*((x, relay.transpose(matrix, (1, 0))) if axis == 3 else (matrix, x)))
        if unit is not None:
            x = relay.floor(relay.add(relay.divide(x, cast(unit, "float32")), like(0.5, x)))
            x = relay.clip(x, 0, 255)
    return cast(x, dtype)


def _unit(matrix: Any) -> Any:
    """Return the power of two that stands for 1 in weights of 16 bits; sums are exact."""
    largest = relay.max(matrix, (0, 1))
    bits = relay.log2(relay.divide(number(2**15 - 0.5, "float64"), largest))
    bits = relay.clip(relay.subtract(relay.ceil(bits), number(1, "float64")), 0, 22)
    return relay.power(number(2, "float64"), bits)


def _rounded(x: Any) -> Any:
    """Return the nearest integers, halves away from zero."""
    size = relay.floor(relay.add(relay.abs(x), like(0.5, x)))
    return relay.where(relay.less(x, like(0, x)), relay.negative(size), size)


def _weights(node: NodeView, axis: int, extent: Any, out: Any, factor: Any) -> Any:
    """Return what each element of an axis adds to each result: (out, extent)."""
    reach = REACH[node.kind]

    def size(value: Any) -> Any:
        return node.as_tensor(value, "float64")

    def positions(count: Any, shape: tuple[int, int]) -> Any:
        counted = relay.cast(relay.arange(0, count, 1, "int64"), "float64")
        return relay.reshape(counted, shape)

    half, one = number(0.5, "float64"), number(1, "float64")
    if node.arg("align_corners", False):
        above, below = relay.subtract(size(extent), one), relay.subtract(size(out), one)
        step = relay.divide(above, relay.maximum(below, one))
        step = relay.where(relay.greater(below, number(0, "float64")), step, like(0, step))
    elif factor:
        step = number(1 / float(factor), "float64")
    else:
        step = relay.divide(size(extent), size(out))
    width = relay.maximum(step, one)
    centre = relay.multiply(step, relay.add(positions(out, (-1, 1)), half))
    support = relay.multiply(width, number(reach, "float64"))
    element = positions(extent, (1, -1))
    # As in PIL, an element counts where its middle is rounded to within the support.
    first = relay.floor(relay.add(relay.subtract(centre, support), half))
    end = relay.floor(relay.add(relay.add(centre, support), half))
    inside = relay.logical_and(relay.greater_equal(element, first), relay.less(element, end))
    distance = relay.abs(relay.divide(relay.add(relay.subtract(element, centre), half), width))
    weight = _triangle(distance) if reach == 1 else _cubic(distance)
    weight = relay.where(inside, weight, like(0, weight))
    return relay.divide(weight, relay.sum(weight, (1,), True))


def _triangle(distance: Any) -> Any:
    return relay.maximum(relay.subtract(like(1, distance), distance), like(0, distance))


def _cubic(distance: Any) -> Any:
    """Keys' cubic kernel at distances from its middle."""

    def polynomial(*coefficients: float) -> Any:
        made: Any = like(coefficients[0], distance)
        for coefficient in coefficients[1:]:
            made = relay.add(relay.multiply(made, distance), like(coefficient, distance))
        return made

    inner = polynomial(SLOPE + 2, -(SLOPE + 3), 0, 1)
    outer = polynomial(SLOPE, -5 * SLOPE, 8 * SLOPE, -4 * SLOPE)
    outer = relay.where(relay.less(distance, like(2, distance)), outer, like(0, outer))
    return relay.where(relay.less(distance, like(1, distance)), inner, outer)
