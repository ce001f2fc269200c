"""image.resize: resampling of spatial axes by nearest, linear or cubic interpolation.

One output position maps to one source coordinate, by `coordinate_transformation_mode` (the ONNX
names); the result weighs the source elements around it.  Axes are independent, so the weights
along one axis are a small constant matrix, which the reference multiplies by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir.node import node
from slipway.relay import op_registry
from slipway.relay.dims import is_open, scaled, size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import as_extents, need_number, need_rank, of_elements
from slipway.relay.ops.dyn import sizes_may_be_tensors, unknown_along
from slipway.relay.ops.tensor.tensors import number, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents

COORDINATES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric",
)  # fmt: skip
MOST_TIMES = 16  # larger enlargements of open sizes are computed from coordinates
ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@node
class ResizeAttrs(Attrs):
    """`size` per axis (0 keeps an axis); `scales` the exact factors where given."""

    size: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = "round_prefer_floor"
    cubic_alpha: float = -0.75
    cubic_exclude: bool = False


RESIZE = register_op(
    "image.resize", "data", attrs=ResizeAttrs, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    flops_per_element=8, doc="The tensor resampled along any axes.",
)  # fmt: skip


@RESIZE.type_relation
@of_elements
def _resize_type(attrs: ResizeAttrs, data: TensorType) -> TensorType:
    need_number("data", data)
    if len(attrs.size) != data.rank:
        raise BadArgument("size", f"{attrs.size} must have one entry per axis of {data}")
    if attrs.method not in ("nearest_neighbor", "linear", "cubic"):
        raise BadArgument("method", f"is {attrs.method!r}; use nearest_neighbor, linear or cubic")
    if attrs.coordinate_transformation_mode not in COORDINATES:
        known = ", ".join(COORDINATES)
        raise BadArgument(
            "coordinate_transformation_mode",
            f"is {attrs.coordinate_transformation_mode!r}; use one of {known}",
        )
    if attrs.rounding_method not in ROUNDING:
        raise BadArgument(
            "rounding_method", f"is {attrs.rounding_method!r}; use {', '.join(ROUNDING)}"
        )
    shape = tuple(s or d for s, d in zip(attrs.size, data.shape, strict=True))
    return TensorType(shape, data.dtype)


def _ratio(attrs: ResizeAttrs, axis: int, extent: int, out: int) -> tuple[float, float]:
    """Return what a position of the output is multiplied and divided by to be one of the source.

    Between two sizes both are whole numbers: where a coordinate lies on an element or in the middle
    of two, the quotient is exact, and its rounding is that of the formula.
    """
    return (1.0, attrs.scales[axis]) if attrs.scales else (extent, out)


def source_coordinates(attrs: ResizeAttrs, axis: int, extent: int, out: int) -> Any:
    """Return the source coordinate of every output position along `axis`."""
    times, over = _ratio(attrs, axis, extent, out)
    length = attrs.scales[axis] * extent if attrs.scales else out
    at = np.arange(out, dtype=np.float64)
    match attrs.coordinate_transformation_mode:
        case "align_corners":
            return at * (extent - 1) / (length - 1) if length > 1 else np.zeros(out)
        case "asymmetric":
            return at * times / over
        case "pytorch_half_pixel":
            return (at + 0.5) * times / over - 0.5 if out > 1 else np.zeros(out)
        case "half_pixel_symmetric":
            centre = extent / 2
            return centre * (1 - out / length) + (at + 0.5) * times / over - 0.5
        case _:
            return (at + 0.5) * times / over - 0.5


def rounded(x: np.ndarray[Any, Any], how: str) -> Any:
    """Return coordinates rounded to elements in one of the ways of ROUNDING."""
    match how:
        case "round_prefer_floor":
            return np.ceil(x - 0.5)
        case "round_prefer_ceil":
            return np.floor(x + 0.5)
        case "floor":
            return np.floor(x)
        case _:
            return np.ceil(x)


def keys_kernel(distance: np.ndarray[Any, Any], a: float) -> np.ndarray[Any, Any]:
    """Return Keys' cubic convolution kernel at signed distances, with parameter `a`."""
    d = np.abs(distance)
    inner = (a + 2) * d**3 - (a + 3) * d**2 + 1
    outer = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, inner, np.where(d < 2, outer, 0.0))


def taps_of(
    attrs: ResizeAttrs, axis: int, extent: int, out: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return (positions, weights), each (out, taps): what the output reads along one axis."""
    x = source_coordinates(attrs, axis, extent, out)
    if attrs.method == "nearest_neighbor":
        position = rounded(x, attrs.rounding_method)[:, None]
        weights = np.ones((out, 1))
    elif attrs.method == "linear":
        low = np.floor(x)
        position = low[:, None] + np.arange(2)
        weights = np.stack([1 - (x - low), x - low], axis=1)
    else:
        low = np.floor(x)
        position = low[:, None] + np.arange(-1, 3)
        weights = keys_kernel(x[:, None] - position, attrs.cubic_alpha)
        if attrs.cubic_exclude:
            weights = np.where((position >= 0) & (position < extent), weights, 0.0)
            weights /= weights.sum(axis=1, keepdims=True)
    return position.clip(0, extent - 1).astype(np.int64), weights


def resized_axes(attrs: ResizeAttrs, shape: Any, out: Any) -> list[int]:
    """Return the axes along which elements are elsewhere than in the data."""
    return [
        a
        for a in range(len(shape))
        if attrs.size[a] and (shape[a] != out[a] or (attrs.scales and attrs.scales[a] != 1.0))
    ]


@RESIZE.reference
def _resize_reference(attrs: ResizeAttrs, data: Array) -> Any:
    out_shape = tuple(s or d for s, d in zip(attrs.size, data.shape, strict=True))
    result = data.astype(np.float64)
    for axis in resized_axes(attrs, data.shape, out_shape):
        position, weights = taps_of(attrs, axis, data.shape[axis], out_shape[axis])
        shape = [1] * data.ndim
        shape[axis] = -1
        result = np.sum(
            [
                result.take(position[:, t], axis=axis) * weights[:, t].reshape(shape)
                for t in range(position.shape[1])
            ],
            axis=0,
        )
    if data.dtype.kind in "iu":
        info = np.iinfo(data.dtype)
        result = np.rint(result).clip(info.min, info.max)
    return result.astype(data.dtype)


def _source(attrs: ResizeAttrs, axis: int, extent: int, out: int, i: PrimExpr, wide: str) -> Any:
    """The te source coordinate of output position `i`, as `source_coordinates` computes it.

    In float64 for the nearest neighbour, where a tie decides which element is read; in `wide`, the
    dtype of the sums, where a rounding error only moves a weight.
    """
    if is_open(extent) or is_open(out):
        return _open_source(attrs, axis, extent, out, i, wide)
    times, over = _ratio(attrs, axis, extent, out)
    length = attrs.scales[axis] * extent if attrs.scales else out
    dtype = "float64" if attrs.method == "nearest_neighbor" else wide
    at = i.astype(dtype)

    def number(value: float) -> Any:
        return te().const(value, dtype)

    def moved(position: Any) -> Any:
        return (position * number(times) if times != 1 else position) / number(over)

    match attrs.coordinate_transformation_mode:
        case "align_corners":
            return at * number(extent - 1) / number(length - 1) if length > 1 else number(0.0) * at
        case "asymmetric":
            return moved(at)
        case "pytorch_half_pixel" if out <= 1:
            return number(0.0) * at
        case "half_pixel_symmetric":
            shift = extent / 2 * (1 - out / length)
            return (number(shift) + moved(at + number(0.5))) - number(0.5)
        case _:
            return moved(at + number(0.5)) - number(0.5)


def _open_source(
    attrs: ResizeAttrs, axis: int, extent: Any, out: Any, i: PrimExpr, wide: str
) -> Any:
    """The same where sizes are open: what depends on them is computed when the model runs.

    A factor is a float32 in most files, and what it divides is rounded to one by who wrote them:
    elements on which two are equally near are then the same ones.
    """
    exact = attrs.method == "nearest_neighbor" and not attrs.scales
    dtype = "float64" if exact else wide

    def real(value: float) -> Any:
        return te().const(value, dtype)

    at, size = i.astype(dtype), number(extent, dtype)
    scale = real(attrs.scales[axis]) if attrs.scales else None
    length = number(out, dtype) if scale is None else scale * size

    def moved(position: Any) -> Any:
        return position * size / length if scale is None else position / scale

    def unless_one(coordinate: Any, extent: Any) -> Any:
        return te().select(extent > real(1.0), coordinate, real(0.0))

    half = real(0.5)
    match attrs.coordinate_transformation_mode:
        case "align_corners":
            steps = te().max(length - real(1.0), real(1.0))
            return unless_one(at * (size - real(1.0)) / steps, length)
        case "asymmetric":
            return moved(at)
        case "pytorch_half_pixel":
            return unless_one(moved(at + half) - half, number(out, dtype))
        case "half_pixel_symmetric":
            shift = size * half * (real(1.0) - number(out, dtype) / length)
            return (shift + moved(at + half)) - half
        case _:
            return moved(at + half) - half


def _whole_step(attrs: ResizeAttrs, axis: int, extent: int, out: int, i: PrimExpr) -> Any | None:
    """The nearest element to output position `i` as plain integer arithmetic, if it is that simple.

    i // n for an enlargement by n, i * n + c for a reduction.
    """
    if attrs.method != "nearest_neighbor":
        return None
    if is_open(extent) or is_open(out):
        return _open_whole_step(attrs, axis, extent, out, i)
    positions = taps_of(attrs, axis, extent, out)[0][:, 0]
    at = np.arange(out)
    if out % extent == 0 and (positions == at // (out // extent)).all():
        return te().floordiv(i, out // extent)
    if extent % out == 0 and (positions == at * (extent // out) + positions[0]).all():
        return i * (extent // out) + int(positions[0])
    return None


def _open_whole_step(
    attrs: ResizeAttrs, axis: int, extent: Any, out: Any, i: PrimExpr
) -> Any | None:
    """The same where sizes are open: a step of n elements is the same step at every size."""
    times = attrs.scales[axis] if attrs.scales else 0.0
    factor = int(times) if times > 1 and times == int(times) else _multiple(out, extent)
    if not factor or out is not extent * factor:
        return None
    for size in range(1, 6):
        positions = taps_of(attrs, axis, size, size * factor)[0][:, 0]
        if (positions != np.arange(size * factor) // factor).any():
            return None
    return te().floordiv(i, factor)


def _multiple(out: Any, extent: Any) -> int:
    """Return how many times an open size another is; 0 where it is no whole number."""
    return next((k for k in range(2, MOST_TIMES + 1) if out is extent * k), 0)


def _nearest(attrs: ResizeAttrs, at: PrimExpr) -> Any:
    """Return the element that is nearest to a coordinate."""
    half = te().const(0.5, at.dtype)
    match attrs.rounding_method:
        case "round_prefer_floor":
            position = te().ceil(at - half)
        case "round_prefer_ceil":
            low = te().floor(at)  # and what lies above it is exact, where a sum would be rounded
            position = low + te().select(
                at - low >= half, te().const(1, at.dtype), te().const(0, at.dtype)
            )
        case "floor":
            position = te().floor(at)
        case _:
            position = te().ceil(at)
    return position.astype("int32")


def nearest_position(attrs: ResizeAttrs, axis: int, extent: int, out: int, i: PrimExpr) -> Any:
    """Return the element that output `i` is, along one axis."""
    whole = _whole_step(attrs, axis, extent, out, i)
    if whole is not None:
        return whole
    at = _source(attrs, axis, extent, out, i, "float32")
    return te().min(te().max(_nearest(attrs, at), 0), extent - 1)


def steps_whole(attrs: ResizeAttrs, axis: int, extent: int, out: int) -> bool:
    """Return whether the elements that are nearest along an axis follow from whole numbers."""
    return _whole_step(attrs, axis, extent, out, te().const(0, "int32")) is not None


@RESIZE.compute
def _resize_compute(
    attrs: ResizeAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,), (out,) = inputs, out_types
    shape = [size_of(d) for d in x.shape]
    axes = resized_axes(attrs, shape, out.shape)
    wide = "float32" if out.dtype != "float64" else "float64"

    def one(value: float) -> Any:
        return te().const(value, wide)

    def reads(axis: int, i: PrimExpr) -> list[tuple[Any, Any]]:
        """(position, weight) pairs along one axis; a weight of None is one."""
        extent = shape[axis]
        last = number(extent, "int32") - 1
        whole = _whole_step(attrs, axis, extent, out.shape[axis], i)
        if whole is not None:
            return [(whole, None)]
        at = _source(attrs, axis, extent, out.shape[axis], i, wide)

        def inside(position: PrimExpr) -> Any:
            return te().min(te().max(position, 0), last)

        if attrs.method == "nearest_neighbor":
            return [(inside(_nearest(attrs, at)), None)]
        low = te().floor(at)
        base, fraction = low.astype("int32"), at - low
        if attrs.method == "linear":
            return [(inside(base), one(1) - fraction), (inside(base + 1), fraction)]
        a = attrs.cubic_alpha
        pairs = []
        for tap in (-1, 0, 1, 2):
            d = fraction - one(tap) if tap <= 0 else one(tap) - fraction
            if tap in (0, 1):
                weight = ((one(a + 2) * d - one(a + 3)) * d) * d + one(1)
            else:
                weight = ((one(a) * d - one(5 * a)) * d + one(8 * a)) * d - one(4 * a)
            if attrs.cubic_exclude:
                known = te().all(base + tap >= 0, base + tap <= last)
                weight = te().select(known, weight, one(0))
            pairs.append((inside(base + tap), weight))
        if attrs.cubic_exclude:
            total = pairs[0][1] + pairs[1][1] + pairs[2][1] + pairs[3][1]
            pairs = [(p, w / total) for p, w in pairs]
        return pairs

    def element(*i: PrimExpr) -> Any:
        terms: list[tuple[list[Any], Any]] = [(list(i), None)]
        for axis in axes:
            grown = []
            for index, weight in terms:
                for position, factor in reads(axis, i[axis]):
                    there = list(index)
                    there[axis] = position
                    both = (
                        factor if weight is None else weight if factor is None else weight * factor
                    )
                    grown.append((there, both))
            terms = grown
        value: Any = None
        for index, weight in terms:
            part = x(*index)
            if weight is not None:
                part = part.astype(wide) * weight
            value = part if value is None else value + part
        if dtypes.is_integral(out.dtype) and attrs.method != "nearest_neighbor":
            low, high = dtypes.int_range(out.dtype)
            value = te().min(te().max(te().nearbyint(value), float(low)), float(high))
        return value.astype(out.dtype)

    return [te().compute(out.shape, element, name="resize", tag="injective")]


def resize(
    data: ExprLike,
    size: Sequence[int],
    scales: Sequence[float] = (),
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.75,
    cubic_exclude: bool = False,
) -> Call:
    """Resample `data` to `size`, one entry per axis (0 keeps an axis)."""
    if rounding_method in ("", "round"):
        rounding_method = "round_prefer_floor"
    attrs = ResizeAttrs(
        tuple(s if is_open(s) else int(s) for s in size), tuple(float(s) for s in scales), method,
        coordinate_transformation_mode, rounding_method, float(cubic_alpha), bool(cubic_exclude),
    )  # fmt: skip
    return RESIZE(data, attrs=attrs)


RESIZE.make(resize)


def _classic(
    letters: str, data: Any, size: Any, roi: Any, layout: str, method: str, mode: str,
    rounding_method: str, cubic_alpha: float, cubic_exclude: int, extrapolation_value: float,
    out_dtype: str | None,
) -> Call:  # fmt: skip
    """Resample the axes `letters`; without a rounding the nearest element is the one before.

    Under align_corners it is the nearest one, halves upward.  In TVM 0.8 the layout stands where
    later releases have the region, and what is given by place behind it a place earlier.
    """
    if isinstance(roi, str):
        roi, usual, layout, by_place = None, f"NC{letters}", roi, layout
        if by_place != usual:
            if mode not in COORDINATES:
                rounding_method = mode
            mode, method = method if method in COORDINATES else mode, by_place
    if roi is not None and np.size(roi) and np.any(np.asarray(roi)):
        raise BadArgument("roi", f"is {roi}; cut the region out with strided_slice first")
    if extrapolation_value:
        raise BadArgument("extrapolation_value", "serves regions only, which are cut out before")
    if method == "nearest_neighbor":
        if not rounding_method:
            rounding_method = "round" if mode == "align_corners" else "floor"
        if rounding_method == "round":
            rounding_method = "round_prefer_ceil"
    given = as_expr(data)
    extents = dict(zip(letters, as_extents(size, len(letters), "size"), strict=True))
    made = resize(
        given, [extents.get(letter, 0) for letter in layout], (), method, mode, rounding_method,
        cubic_alpha, bool(cubic_exclude),
    )  # fmt: skip
    if out_dtype and out_dtype != made.tensor_type.dtype:
        return op_registry.make("cast")(made, out_dtype)  # type: ignore[no-any-return]
    return made


def resize1d(
    data: ExprLike,
    size: Extents,
    roi: Sequence[float] | None = None,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Resample the spatial axis of sequences (the classic operator and its defaults)."""
    return _classic(
        "W", data, size, roi, layout, method, coordinate_transformation_mode, rounding_method,
        cubic_alpha, cubic_exclude, extrapolation_value, out_dtype,
    )  # fmt: skip


def _resized_any(data: TensorType, layout: str | None, out_dtype: str | None) -> Type:
    axes = [(layout or "NCHW").index(letter) for letter in "HW"]
    return unknown_along(data, axes, out_dtype)


@sizes_may_be_tensors("size", "roi", result=_resized_any)
def resize2d(
    data: ExprLike,
    size: Extents,
    roi: Sequence[float] | None = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Resample the two spatial axes of images (the classic operator and its defaults)."""
    return _classic(
        "HW", data, size, roi, layout, method, coordinate_transformation_mode, rounding_method,
        cubic_alpha, cubic_exclude, extrapolation_value, out_dtype,
    )  # fmt: skip


def resize3d(
    data: ExprLike,
    size: Extents,
    roi: Sequence[float] | None = None,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Call:
    """Resample the three spatial axes of volumes (the classic operator and its defaults)."""
    return _classic(
        "DHW", data, size, roi, layout, method, coordinate_transformation_mode, rounding_method,
        cubic_alpha, cubic_exclude, extrapolation_value, out_dtype,
    )  # fmt: skip


def _extents_by_axis(layout: str, given: TensorType, letters: str) -> dict[str, Any]:
    if len(layout) != len(letters) or any(layout.count(axis) != 1 for axis in letters[2:]):
        raise BadArgument("layout", f"is {layout!r}, which is no order of the axes {letters!r}")
    need_rank("data", given, len(letters))
    return dict(zip(layout, given.shape, strict=True))


@sizes_may_be_tensors(
    "scale_h",
    "scale_w",
    result=lambda data, layout: unknown_along(data, [(layout or "NCHW").index(c) for c in "HW"]),
    needs_shapes=True,
)
def upsampling(
    data: ExprLike, scale_h: float = 1, scale_w: float = 1, layout: str = "NCHW",
    method: str = "nearest_neighbor", align_corners: bool = False,
) -> Call:  # fmt: skip
    """Enlarge images by factors (the classic nn.upsampling)."""
    given = as_expr(data)
    extents = _extents_by_axis(layout, given.tensor_type, "NCHW")
    size = (scaled(extents["H"], scale_h), scaled(extents["W"], scale_w))
    mode = "align_corners" if align_corners else "asymmetric" if "near" in method else "half_pixel"
    kind = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    return resize2d(given, size, None, layout, kind, mode, "floor" if "near" in method else "")


@sizes_may_be_tensors(
    "scale_d",
    "scale_h",
    "scale_w",
    result=lambda data, layout: unknown_along(data, [(layout or "NCDHW").index(c) for c in "DHW"]),
    needs_shapes=True,
)
def upsampling3d(
    data: ExprLike,
    scale_d: float = 1,
    scale_h: float = 1,
    scale_w: float = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Call:
    """Enlarge volumes by factors (the classic nn.upsampling3d)."""
    extents = _extents_by_axis(layout, as_expr(data).tensor_type, "NCDHW")
    factors = {"D": scale_d, "H": scale_h, "W": scale_w}
    size = [
        scaled(extent, factor) if is_open(extent) else round(extent * factor)
        for extent, factor in ((extents[letter], factor) for letter, factor in factors.items())
    ]
    kind = {"trilinear": "linear", "tricubic": "cubic"}.get(method, method)
    mode = "asymmetric" if kind == "nearest_neighbor" else coordinate_transformation_mode
    return resize3d(data, size, None, layout, kind, mode)


RESIZE.sample_case((1, 2, 4, 5), attrs=ResizeAttrs((0, 0, 8, 10)))
RESIZE.sample_case((1, 2, 4, 5), attrs=ResizeAttrs((0, 0, 7, 3), (), "cubic", "align_corners"))
RESIZE.sample_case(
    (1, 2, 4, 5), attrs=ResizeAttrs((0, 0, 6, 10), (), "nearest_neighbor", "asymmetric", "floor")
)
RESIZE.sample_case(
    (1, 2, 4, 5), attrs=ResizeAttrs((0, 0, 2, 3), (), "cubic", "half_pixel", "floor", -0.5, True)
)
