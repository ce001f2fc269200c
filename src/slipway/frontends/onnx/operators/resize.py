"""Resize and Upsample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.resize_matrix import antialiased, cropped
from slipway.relay.dims import Extent, is_open, scaled
from slipway.relay.expr import Expr
from slipway.relay.op_registry import const
from slipway.relay.ops.image.resize import ResizeAttrs

METHODS = {
    "nearest": "nearest_neighbor",
    "linear": "linear",
    "bilinear": "linear",
    "cubic": "cubic",
}


@converter("Upsample")
def upsample(node: NodeView) -> Any:
    """The operator before Resize: asymmetric coordinates, factors as attribute or input."""
    scales = node.attr("scales") if node.opset < 9 else node.constant(1, "the scales").reshape(-1)
    factors = [float(s) for s in scales]
    size = [scaled(d, f) for d, f in zip(node.type().shape, factors, strict=True)]
    method = node.choice("mode", "nearest", METHODS)
    x = _emptied(node.input(0), size)
    factors = [_decimal(f) for f in factors]
    return relay.image.resize(x, size, factors, method, "asymmetric", "floor")


def _emptied(x: Expr, size: Sequence[Extent]) -> Expr:
    """Return the data without the elements of an axis of which a factor leaves nothing."""
    for axis, extent in enumerate(size):
        if not is_open(extent) and extent == 0:
            x = relay.strided_slice(x, [0], [0], [1], [axis])
    return x


def _decimal(factor: float) -> float:
    """Return the number that a float32 factor was written as.

    Where a coordinate lies on an element (1.5 / 0.6 - 0.5), float32 arithmetic gives that element,
    and exact arithmetic with the float32 next to 0.6 the one before.
    """
    return float(str(np.float32(factor)))


def _in_float32(how: str, rounding: str, factor: float, extent: Any, out: Any) -> float | None:
    """Return a factor with which exact arithmetic finds the elements that float32 finds.

    A coordinate on an element, or halfway between two, may fall to either side of it there.  None
    where no factor does so for all of an axis.
    """
    if factor == 1 or is_open(extent) or is_open(out) or how not in _IN_FLOAT32:
        return factor
    take_table(out)
    wanted = _nearest(how, rounding, np.float32(factor), extent, out)
    for step in (0.0, 3e-8, -3e-8, 1e-7, -1e-7):
        tried = np.float64(factor) * (1 + step)
        if np.array_equal(_nearest(how, rounding, tried, extent, out), wanted):
            return float(tried)
    return None


_IN_FLOAT32 = ("asymmetric", "half_pixel", "pytorch_half_pixel")


def _nearest(how: str, rounding: str, factor: Any, extent: int, out: int) -> Any:
    """Return the elements that are nearest, by arithmetic of the factor's type."""
    number = type(factor)
    at, half = np.arange(out, dtype=number), number(0.5)
    if how == "asymmetric":
        x = at / factor
    elif how == "pytorch_half_pixel" and out <= 1:
        x = np.zeros(out, number)
    else:
        x = (at + half) / factor - half
    low = np.floor(x)  # and what lies above it is exact, where a sum would be rounded
    found = {
        "round_prefer_floor": low + (x - low > half),
        "round_prefer_ceil": low + (x - low >= half),
        "floor": low,
        "ceil": np.ceil(x),
    }
    return found[rounding].clip(0, extent - 1) if rounding in found else x


@converter("Resize")
def resize(node: NodeView) -> Any:
    """Resampling to a size or by factors."""
    return resized(node, None)


def resized(node: NodeView, stated: Sequence[int] | None) -> Any:
    """Return the result of a Resize; `stated` is its whole shape in the place of the sizes."""
    shape = node.type().shape
    mode = node.attr("mode", "nearest")
    if mode not in METHODS:
        raise node.unsupported(f"mode {mode!r}")
    if node.opset < 11:
        factors = [float(s) for s in node.constant(1, "the scales").reshape(-1)]
        _check_scales(node, factors, range(len(shape)))
        size = [scaled(d, f) for d, f in zip(shape, factors, strict=True)]
        factors = [_decimal(f) for f in factors]
        return _before_rounding_was_named(
            _emptied(node.input(0), size), size, factors, METHODS[mode]
        )
    coordinates = node.attr("coordinate_transformation_mode", "half_pixel")
    if coordinates not in (
        "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric",
        "tf_crop_and_resize",
    ):  # fmt: skip
        raise node.unsupported(f"coordinate_transformation_mode {coordinates!r}")
    axes = list(node.attr("axes", tuple(range(len(shape)))))
    if not all(-len(shape) <= a < len(shape) for a in axes):
        raise node.unsupported(f"its attribute 'axes' is {axes}, where its data has {len(shape)}")
    axes = [a % len(shape) for a in axes]
    crop = coordinates == "tf_crop_and_resize"
    starts, ends = _region(node, len(shape), axes) if crop else ([0.0] * len(shape),) * 2
    spans = [e - s for s, e in zip(starts, ends, strict=True)] if crop else [1.0] * len(shape)
    size, scales = _target(node, shape, axes, spans, stated)
    arguments = (
        METHODS[mode], coordinates, node.attr("nearest_mode", "round_prefer_floor"),
        node.attr("cubic_coeff_a", -0.75), bool(node.attr("exclude_outside", 0)),
    )  # fmt: skip
    x = node.input(0)
    x = _emptied(x, size)
    if mode == "nearest" and node.has(2) and not crop:
        for axis, (factor, extent, out) in enumerate(zip(scales, shape, size, strict=True)):
            found = _in_float32(coordinates, arguments[2], factor, extent, out)
            scales[axis] = 1.0 if found is None else found
            if found is None:
                read = _nearest(coordinates, arguments[2], np.float32(factor), extent, out)
                x = relay.take(x, const(read.astype("int32")), axis)
    attrs = ResizeAttrs(tuple(size), tuple(scales), *arguments)
    if crop:
        if any(map(is_open, (*shape, *size))):
            raise node.unsupported("a region of open sizes, whose filters are constants")
        return cropped(attrs, x, starts, ends, node.attr("extrapolation_value", 0.0))
    if node.attr("antialias", 0) and mode != "nearest" and (not scales or min(scales) < 1):
        if any(map(is_open, (*shape, *size))):
            raise node.unsupported("antialias with open sizes, whose filters are constants")
        return antialiased(attrs, x)
    return relay.image.resize(x, size, scales, *arguments)


def _before_rounding_was_named(x: Any, size: list[int], factors: list[float], method: str) -> Any:
    """Resample as opset 10: the nearest element is the next one of axes that become shorter."""
    shorter = [f < 1 for f in factors]
    if method == "nearest_neighbor" and any(shorter):
        shape = x.tensor_type.shape
        kept = [n if s else d for n, d, s in zip(size, shape, shorter, strict=True)]
        scales = [f if s else 1.0 for f, s in zip(factors, shorter, strict=True)]
        x = relay.image.resize(x, kept, scales, method, "asymmetric", "ceil")
        factors = [1.0 if s else f for f, s in zip(factors, shorter, strict=True)]
    return relay.image.resize(x, size, factors, method, "asymmetric", "floor")


def _check_count(node: NodeView, what: str, given: Sequence[Any], axes: Sequence[int]) -> None:
    if len(given) != len(axes) or len(set(axes)) != len(axes):
        raise node.unsupported(f"{len(given)} {what} are given for the axes {list(axes)}")


def _check_scales(node: NodeView, factors: Sequence[float], axes: Sequence[int]) -> None:
    _check_count(node, "scales", factors, axes)
    if not all(0 < factor < np.inf for factor in factors):
        raise node.unsupported(f"its scales are {list(factors)}; each must be greater than 0")


def _region(node: NodeView, rank: int, axes: list[int]) -> tuple[list[float], list[float]]:
    """Return where the region starts and ends along each axis, as fractions of the input."""
    given = node.constant(1, "the region").reshape(-1)
    if len(given) != 2 * len(axes):
        raise node.unsupported(f"a region of {len(given)} numbers for {len(axes)} axes")
    starts, ends = [0.0] * rank, [1.0] * rank
    for position, axis in enumerate(axes):
        starts[axis], ends[axis] = float(given[position]), float(given[position + len(axes)])
    return starts, ends


def _target(
    node: NodeView,
    shape: tuple[int, ...],
    axes: list[int],
    spans: list[float],
    stated: Sequence[int] | None,
) -> tuple[list[int], list[float]]:
    """Return the result's size and the exact factors, one entry per axis."""
    size, scales = list(shape), [1.0] * len(shape)
    given = node.constant(2, "the scales").reshape(-1) if node.has(2) else np.zeros(0)
    if given.size:
        _check_scales(node, [float(factor) for factor in given], axes)
        if node.has(3) and node.constant(3, "the sizes").size:
            raise node.unsupported("it has both scales and sizes; leave one out")
        for axis, factor in zip(axes, given, strict=True):
            scales[axis] = _decimal(factor)
            size[axis] = scaled(shape[axis], spans[axis] * float(factor))
        return size, scales
    wanted = tuple(stated[a] for a in axes) if stated else node.ints(3, "the sizes")
    _check_count(node, "sizes", wanted, axes)
    if any(not is_open(extent) and extent < 1 for extent in wanted) and all(shape):
        raise node.unsupported(f"its sizes are {list(wanted)}; each must be 1 or more")
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if any(is_open(v) for axis, extent in zip(axes, wanted, strict=True)
           for v in (shape[axis], extent)):  # fmt: skip
        if policy != "stretch":
            raise node.unsupported(f"keep_aspect_ratio_policy {policy!r} with open sizes")
        for axis, extent in zip(axes, wanted, strict=True):
            size[axis] = extent
        return size, []
    if any(not shape[axis] and extent for axis, extent in zip(axes, wanted, strict=True)):
        raise node.unsupported(f"its sizes are {list(wanted)}, its data {shape} has no elements")
    if policy != "stretch":
        ratios = [w / shape[a] for a, w in zip(axes, wanted, strict=True) if shape[a]]
        ratio = (min if policy == "not_larger" else max)(ratios, default=1.0)
        wanted = tuple(int(np.floor(shape[a] * ratio + 0.5)) for a in axes)
    for axis, extent in zip(axes, wanted, strict=True):
        size[axis] = extent
        if shape[axis]:  # of an empty axis nothing is read
            scales[axis] = extent / shape[axis] if policy == "stretch" else ratio
    return size, scales
