"""image.crop_and_resize, dilation2d and affine_grid, and resizes along one and three axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Expr
from slipway.relay.op_registry import BadArgument, as_expr, const
from slipway.relay.ops.build import call, counted, known_ints, length, scalar, typed
from slipway.relay.ops.checks import as_extents, as_tuple, need_rank, pad_amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slipway.relay.expr import ExprLike, Extents


def crop_and_resize(
    data: ExprLike,
    boxes: ExprLike,
    box_indices: ExprLike,
    crop_size: Extents,
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float = 0,
    out_dtype: str | None = None,
) -> Any:
    """Cut boxes (y1, x1, y2, x2 in parts of the image) out, and resample each to `crop_size`.

    The corners of a crop are the corners of its box; one pixel lies at the middle.  What lies
    outside of the image is `extrapolation_value`.
    """
    (x, own), (box, kind), (which, _) = typed(data), typed(boxes), typed(box_indices)
    need_rank("data", own, 4)
    if kind.rank != 2 or kind.shape[1] != 4:
        raise BadArgument("boxes", f"must be (boxes, 4), got {kind}")
    if layout not in ("NCHW", "NHWC"):
        raise BadArgument("layout", f"is {layout!r}; use NCHW or NHWC")
    if method not in ("bilinear", "nearest_neighbor"):
        raise BadArgument("method", f"is {method!r}; use bilinear or nearest_neighbor")
    if layout == "NHWC":
        x = call("transpose", x, (0, 3, 1, 2))
    channels = x.tensor_type.shape[1]
    size = as_tuple(crop_size, 2, "crop_size")
    count = kind.shape[0]
    corners = [call("strided_slice", box, [i], [i + 1], axes=[1]) for i in range(4)]  # (boxes, 1)
    extents = [length(x, axis, "int32") for axis in (2, 3)]
    last = [call("cast", call("subtract", e, scalar(1, "int32")), kind.dtype) for e in extents]

    def positions(axis: int) -> Any:
        """Source coordinates along one axis, (boxes, size)."""
        low, high = corners[axis], corners[axis + 2]
        reach = last[axis]
        if size[axis] == 1:
            middle = call("multiply", call("add", low, high), scalar(0.5, kind.dtype))
            return call("multiply", middle, reach)
        step = np.arange(size[axis]) / (size[axis] - 1)
        along = call("multiply", call("subtract", high, low), const(step.astype(kind.dtype)))
        return call("multiply", call("add", low, along), reach)

    def view(value: Any, axis: int) -> Any:
        shape = (count, 1, size[0], 1) if axis == 0 else (count, 1, 1, size[1])
        return call("reshape", value, shape)

    coordinates = [view(positions(axis), axis) for axis in (0, 1)]
    inside = None
    for position, end in zip(coordinates, last, strict=True):
        within = call(
            "logical_and",
            call("greater_equal", position, scalar(0, kind.dtype)),
            call("less_equal", position, end),
        )
        inside = within if inside is None else call("logical_and", inside, within)
    image = call("reshape", call("cast", which, "int32"), (count, 1, 1, 1))
    channel = call("reshape", counted(channels, "int32"), (1, -1, 1, 1))
    line = call("add", call("multiply", image, length(x, 1, "int32")), channel)
    flat = call("reshape", x, (-1,))

    def read(y: Any, z: Any) -> Any:
        spot = line
        for position, extent, end in zip((y, z), extents, last, strict=True):
            index = call("minimum", call("maximum", position, scalar(0, kind.dtype)), end)
            spot = call("add", call("multiply", spot, extent), call("cast", index, "int32"))
        return call("take", flat, spot)

    if method == "nearest_neighbor":
        value = read(*(call("floor", call("add", p, scalar(0.5, kind.dtype))) for p in coordinates))
    else:
        value = _between_four(read, coordinates, kind.dtype, own.dtype)
    found = call("where", inside, value, scalar(extrapolation_value, own.dtype))
    if layout == "NHWC":
        found = call("transpose", found, (0, 2, 3, 1))
    return call("cast", found, out_dtype) if out_dtype else found


def _between_four(
    read: Callable[[Any, Any], Any], coordinates: Sequence[Any], kind: str, dtype: str
) -> Any:
    """Return the bilinear value between the four pixels around coordinates of dtype `kind`."""
    lows = [call("floor", p) for p in coordinates]
    fractions = [
        call("cast", call("subtract", p, low), dtype)
        for p, low in zip(coordinates, lows, strict=True)
    ]
    one = scalar(1, kind)
    lines = []
    for y in (lows[0], call("add", lows[0], one)):
        left, right = read(y, lows[1]), read(y, call("add", lows[1], one))
        lines.append(_between(left, right, fractions[1]))
    return _between(lines[0], lines[1], fractions[0])


def _between(low: Any, high: Any, fraction: Any) -> Any:
    return call("add", low, call("multiply", call("subtract", high, low), fraction))


def affine_grid(data: ExprLike, target_shape: ExprLike | None = None) -> Any:
    """Return the source coordinates (N, 2, H, W) of affine maps `data` (N, 2, 3), in [-1, 1]."""
    x, own = typed(data)
    if own.rank != 3 or own.shape[1:] != (2, 3):
        raise BadArgument("data", f"must be (N, 2, 3), got {own}")
    if target_shape is None:
        raise BadArgument("target_shape", "is missing: the size of the grid")
    size: Any = target_shape
    if isinstance(size, Expr):
        size = known_ints("target_shape", size)
    height, width = as_extents(size, 2, "target_shape")
    first, one = scalar(-1, own.dtype), scalar(1, own.dtype)
    terms = [
        call("reshape", call("strided_slice", x, [i], [i + 1], axes=[2]), (own.shape[0], 2, 1, 1))
        for i in range(3)
    ]
    made = terms[2]
    for term, extent, view in ((terms[0], width, (1, -1)), (terms[1], height, (-1, 1))):
        steps = counted(extent, own.dtype)
        last = call("maximum", call("subtract", length(steps, 0, own.dtype), one), one)
        line = call("add", call("divide", call("add", steps, steps), last), first)
        made = call("add", made, call("multiply", term, call("reshape", line, view)))
    return made


def dilation2d(
    data: ExprLike,
    weight: ExprLike,
    strides: Extents = (1, 1),
    padding: Extents = (0, 0),
    dilations: Extents = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: str = "",
) -> Any:
    """Return the maximum of data + weight over windows, channel by channel."""
    (x, own), (kernel, kind) = typed(data), typed(weight)
    need_rank("data", own, 4)
    need_rank("weight", kind, 3)
    layouts = {("NCHW", "IHW"), ("NHWC", "HWI")}
    if (data_layout, kernel_layout) not in layouts:
        both = f"is {data_layout!r} with {kernel_layout!r}"
        raise BadArgument("data_layout", f"{both}; use NCHW with IHW or NHWC with HWI")
    if data_layout == "NHWC":
        x = call("transpose", x, (0, 3, 1, 2))
        kernel = call("transpose", kernel, (2, 0, 1))
    step, apart = as_tuple(strides, 2, "strides"), as_tuple(dilations, 2, "dilations")
    top, left, bottom, right = pad_amounts(padding, 2)
    if any((top, left, bottom, right)):
        lowest = float(np.finfo(own.dtype).min) if own.dtype.startswith("float") else int(
            np.iinfo(own.dtype).min)  # fmt: skip
        x = call("nn.pad", x, [(0, 0), (0, 0), (top, bottom), (left, right)], lowest)
    _, channels, height, width = x.tensor_type.shape
    _, kh, kw = kernel.tensor_type.shape
    if height < (kh - 1) * apart[0] + 1 or width < (kw - 1) * apart[1] + 1:
        raise BadArgument("data", f"{own} is smaller than the window of {kind}")
    rows = (height - (kh - 1) * apart[0] - 1) // step[0] + 1
    columns = (width - (kw - 1) * apart[1] - 1) // step[1] + 1
    best: Any = None
    for i, j in np.ndindex(kh, kw):
        top, left = i * apart[0], j * apart[1]
        ends = [top + (rows - 1) * step[0] + 1, left + (columns - 1) * step[1] + 1]
        part = call("strided_slice", x, [top, left], ends, list(step), [2, 3])
        weight_ij = call("strided_slice", kernel, [i, j], [i + 1, j + 1], None, [1, 2])
        value = call("add", part, call("reshape", weight_ij, (1, channels, 1, 1)))
        best = value if best is None else call("maximum", best, value)
    if data_layout == "NHWC":
        best = call("transpose", best, (0, 2, 3, 1))
    return call("cast", as_expr(best), out_dtype) if out_dtype else best
