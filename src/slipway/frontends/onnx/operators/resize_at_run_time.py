"""Resampling by factors, or of a region, that are known when the model runs, to a stated shape.

Along each axis the weights are a matrix (out, extent) that is computed from the factor.  To the
nearest element it is a list of positions.  The formulas are those of `image.resize` and of
`resize_matrix`.  Batch and channels that keep their size are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.onnx.converters import NodeView
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

Shape = tuple[int, ...]
WIDE = "float64"


def _number(value: float) -> Any:
    return const(np.float64(value))


def _line(first: int, count: int) -> Any:
    take_table(count)
    return const(np.arange(first, first + count, dtype=np.float64))


def _entry(values: Expr, index: int) -> Any:
    return relay.cast(relay.reshape(relay.strided_slice(values, [index], [index + 1]), ()), WIDE)


def resized_at_run_time(node: NodeView, wanted: Shape) -> Any:
    """Return a Resize or Upsample to the shape `wanted`; None where that is not possible."""
    shape, x = node.type().shape, node.input(0)
    mode = node.attr("mode", "nearest").replace("bilinear", "linear")
    if len(wanted) != len(shape) or 0 in shape or mode not in ("nearest", "linear", "cubic"):
        return None
    if mode != "nearest" and not node.type().dtype.startswith("float"):
        return None
    old = node.kind == "Upsample" or node.opset < 11
    axes = [a % len(shape) for a in node.attr("axes") or range(len(shape))]
    coordinates = "asymmetric" if old else node.attr("coordinate_transformation_mode", "half_pixel")
    scales = _scales(node, shape, axes, 1 if old else 2)
    if scales is None:
        return None
    region = node.input(1) if coordinates == "tf_crop_and_resize" else None
    beyond: Any = None
    for index, (axis, scale) in enumerate(zip(axes, scales, strict=True)):
        extent, out = shape[axis], wanted[axis]
        if region is None and extent == out and axis < 2 < len(shape):
            continue
        if region is None:
            at = _coordinates(coordinates, scale, extent, out)
        else:
            start, end = _entry(region, index), _entry(region, index + len(axes))
            at = _of_region(start, end, extent, out)
            outside = relay.logical_or(
                relay.less(at, _number(0)), relay.greater(at, _number(extent - 1))
            )
            outside = relay.reshape(outside, [-1 if a == axis else 1 for a in range(len(shape))])
            beyond = outside if beyond is None else relay.logical_or(beyond, outside)
            at = relay.clip(at, 0.0, float(extent - 1))
        if mode == "nearest":
            # A factor is a float32: where the number that it was written as has a coordinate on an
            # element, its own lies beside it by less than a float32 tells.
            at = relay.cast(relay.cast(at, "float32"), WIDE)
            how = "floor" if old else node.attr("nearest_mode", "round_prefer_floor")
            position = relay.clip(_rounded(at, how), 0.0, float(extent - 1))
            x = relay.take(x, relay.cast(position, "int32"), axis)
        else:
            x = _applied(x, _matrix(node, mode, at, scale, extent, out), axis)
    if beyond is not None:
        fill = node.like(node.attr("extrapolation_value", 0.0))
        x = relay.where(beyond, fill, x)
    return x


def _scales(node: NodeView, shape: Shape, axes: list[int], at: int) -> list[Any] | None:
    """Return the factor of each axis as a float64 scalar."""
    given = node.optional(at)
    if given is not None and given.tensor_type.size:
        if given.tensor_type.size != len(axes):
            return None
        return [_entry(relay.reshape(given, (-1,)), i) for i in range(len(axes))]
    if not node.has(3) or node.type(3).size != len(axes):
        return None
    sizes = node.input(3)
    scales = [relay.divide(_entry(sizes, i), _number(shape[a])) for i, a in enumerate(axes)]
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        join = relay.minimum if policy == "not_larger" else relay.maximum
        one = scales[0]
        for scale in scales[1:]:
            one = join(one, scale)
        scales = [one] * len(axes)
    return scales


def _coordinates(how: str, scale: Any, extent: int, out: int) -> Any:
    """Return the source coordinate of every position of the output."""
    at = _line(0, out)
    length = relay.multiply(scale, _number(extent))
    half = relay.subtract(relay.divide(relay.add(at, _number(0.5)), scale), _number(0.5))
    several = relay.greater(length, _number(1))
    none = const(np.zeros(out))
    match how:
        case "align_corners":
            gaps = relay.where(several, relay.subtract(length, _number(1)), _number(1))
            corners = relay.divide(relay.multiply(at, _number(extent - 1)), gaps)
            return relay.where(several, corners, none)
        case "asymmetric":
            return relay.divide(at, scale)
        case "pytorch_half_pixel":
            return half if out > 1 else none
        case "half_pixel_symmetric":
            shrunk = relay.subtract(_number(1), relay.divide(_number(out), length))
            return relay.add(half, relay.multiply(_number(extent / 2), shrunk))
        case _:
            return half


def _of_region(start: Any, end: Any, extent: int, out: int) -> Any:
    """Return the coordinates of a region that runs from `start` to `end` of an axis."""
    if out == 1:
        middle = relay.multiply(relay.add(start, end), _number(0.5 * (extent - 1)))
        return relay.reshape(middle, (1,))
    step = relay.multiply(relay.subtract(end, start), _number((extent - 1) / (out - 1)))
    first = relay.multiply(start, _number(extent - 1))
    return relay.add(first, relay.multiply(_line(0, out), step))


def _rounded(x: Any, how: str) -> Any:
    match how:
        case "round_prefer_floor":
            return relay.ceil(relay.subtract(x, _number(0.5)))
        case "round_prefer_ceil":
            return relay.floor(relay.add(x, _number(0.5)))
        case "floor":
            return relay.floor(x)
        case _:
            return relay.ceil(x)


def _matrix(node: NodeView, mode: str, x: Any, scale: Any, extent: int, out: int) -> Any:
    """Return the weights (out, extent) for the source coordinates `x`.

    Positions beyond both ends are weighed, too: theirs go to the ends, or nowhere.  A filter that
    widens (antialias) reaches over so many as the smallest factor of this shape makes it.
    """
    reach, shrink = (1 if mode == "linear" else 2), _number(1)
    more = reach + 1
    if node.attr("antialias", 0):
        shrink = relay.minimum(scale, _number(1))
        more = int(np.ceil(reach * max(extent / out, 1.0))) + 1
    take_table(out, extent + 2 * more)
    positions = relay.reshape(_line(-more, extent + 2 * more), (1, -1))
    distance = relay.abs(
        relay.multiply(relay.subtract(positions, relay.reshape(x, (-1, 1))), shrink)
    )
    if mode == "linear":
        weight = relay.maximum(relay.subtract(_number(1), distance), _number(0))
    else:
        weight = _keys(distance, node.attr("cubic_coeff_a", -0.75))
    if node.attr("exclude_outside", 0):
        matrix = relay.strided_slice(weight, [more], [more + extent], axes=[1])
    else:
        ends = np.arange(-more, extent + more).clip(0, extent - 1)
        matrix = relay.nn.dense(weight, const(np.eye(extent)[:, ends]))
    return relay.divide(matrix, relay.sum(matrix, 1, keepdims=True))


def _keys(d: Any, a: float) -> Any:
    """Return Keys' cubic convolution kernel at the distances `d`."""

    def polynomial(*factors: float) -> Any:
        made: Any = _number(factors[0])
        for factor in factors[1:]:
            made = relay.add(relay.multiply(made, d), _number(factor))
        return made

    inner, outer = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    beyond = relay.where(relay.less(d, _number(2)), outer, _number(0))
    return relay.where(relay.less_equal(d, _number(1)), inner, beyond)


def _applied(data: Any, matrix: Any, axis: int) -> Any:
    """Multiply `data` along an axis by a matrix (out, extent)."""
    rank, dtype = data.tensor_type.rank, data.tensor_type.dtype
    order = [a for a in range(rank) if a != axis] + [axis]
    moved = relay.transpose(data, order)
    *lead, extent = moved.tensor_type.shape
    product = relay.nn.dense(relay.reshape(moved, (-1, extent)), relay.cast(matrix, dtype))
    back = [order.index(a) for a in range(rank)]
    return relay.transpose(relay.reshape(product, (*lead, matrix.tensor_type.shape[0])), back)
