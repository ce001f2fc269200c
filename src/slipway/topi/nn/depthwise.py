"""Convolutions of each channel by itself, and their gradients (channels last)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import reduction as R
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.nn.padding import pad
from slipway.topi.nn.windows import sides, spread, windows
from slipway.topi.products import check_equal
from slipway.topi.utils import get_const_int, get_const_tuple

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, ShapeLike


def _depthwise(
    data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None,
    last: bool,
) -> Tensor:  # fmt: skip
    """Return channel ``c * multiplier + m``: that of `data` at c with the kernel at (c, m)."""
    what = "NHWC" if last else "NCHW"
    if data.ndim != 4 or kernel.ndim != 4:
        raise InvalidShapeError(f"depthwise_conv2d of {what} {data.shape} by {kernel.shape}")
    sy, sx = spread(stride, 2, "stride")
    dy, dx = spread(dilation, 2, "dilation")
    kh, kw = (get_const_int(n) for n in (kernel.shape[:2] if last else kernel.shape[2:]))
    channels, multiplier = kernel.shape[2:] if last else kernel.shape[:2]
    name = f"depthwise_conv2d of {what} {data.shape} by {kernel.shape}: channels"
    check_equal(name, data.shape[3 if last else 1], channels)
    (top, left), (bottom, right) = sides(padding, [(kh - 1) * dy + 1, (kw - 1) * dx + 1])
    before, after = ([0, top, left, 0], [0, bottom, right, 0])
    if not last:
        before, after = [0, 0, top, left], [0, 0, bottom, right]
    x = pad(data, before, after) if any(before + after) else data
    ry, rx = R.reduce_axis((0, kh), "ry"), R.reduce_axis((0, kw), "rx")
    high, wide = (x.shape[1], x.shape[2]) if last else (x.shape[2], x.shape[3])
    rows, columns = windows(high, (kh - 1) * dy + 1, sy), windows(wide, (kw - 1) * dx + 1, sx)
    made, dtype = ops.mul(channels, multiplier), out_dtype or data.dtype

    def element(n: PrimExpr, *rest: PrimExpr) -> Any:
        (y, z, o) = rest if last else (rest[1], rest[2], rest[0])
        c, m = ops.floordiv(o, multiplier), ops.floormod(o, multiplier)
        i, j = ops.add(ops.mul(y, sy), ry.var * dy), ops.add(ops.mul(z, sx), rx.var * dx)
        value = x(n, i, j, c) if last else x(n, c, i, j)
        weight = kernel(ry.var, rx.var, c, m) if last else kernel(c, m, ry.var, rx.var)
        return R.sum(ops.mul(ops.cast(value, dtype), ops.cast(weight, dtype)), axis=[ry, rx])

    shape = (x.shape[0], *((rows, columns, made) if last else (made, rows, columns)))
    tag = f"depthwise_conv2d_{'nhwc' if last else 'nchw'}"
    return compute(shape, element, "depthwise_conv2d", tag)  # type: ignore[no-any-return]


def depthwise_conv2d_nchw(
    data: Tensor, kernel: Tensor, stride: ShapeLike, padding: ShapeLike, dilation: ShapeLike = 1,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the convolution of each channel of (N, C, H, W), kernel (C, multiplier, KH, KW)."""
    return _depthwise(data, kernel, stride, padding, dilation, out_dtype, last=False)


def depthwise_conv2d_nhwc(
    data: Tensor, kernel: Tensor, stride: ShapeLike, padding: ShapeLike, dilation: ShapeLike = 1,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the convolution of each channel of (N, H, W, C), kernel (KH, KW, C, multiplier)."""
    return _depthwise(data, kernel, stride, padding, dilation, out_dtype, last=True)


def _check(what: str, given: Tensor, shape: ShapeLike) -> None:
    wanted = get_const_tuple(list(shape))  # type: ignore[arg-type]
    if get_const_tuple(given.shape) != wanted:
        raise InvalidShapeError(f"{what} has shape {given.shape}, not {wanted}")


def depthwise_conv2d_backward_input_nhwc(
    Filter: Tensor, Out_grad: Tensor, oshape: ShapeLike, ishape: ShapeLike, stride: ShapeLike,
    padding: ShapeLike,
) -> Tensor:  # fmt: skip
    """Return the gradient by the data, of shape `ishape`; `Out_grad` is that of the result."""
    _check("the gradient of the result", Out_grad, oshape)
    sizes: Any = ishape
    kh, kw, channels, multiplier = (get_const_int(n) for n in Filter.shape)
    sy, sx = spread(stride, 2, "stride")
    (top, left), _ = sides(padding, [kh, kw])
    _, rows, columns, _ = Out_grad.shape
    ry, rx = R.reduce_axis((0, kh), "ry"), R.reduce_axis((0, kw), "rx")
    m = R.reduce_axis((0, multiplier), "m")

    def element(n: PrimExpr, y: PrimExpr, x: PrimExpr, c: PrimExpr) -> Any:
        # The windows that read this element: those that begin at y + top - ry, if one begins there.
        high, wide = ops.sub(ops.add(y, top), ry.var), ops.sub(ops.add(x, left), rx.var)
        i, j = ops.floordiv(high, sy), ops.floordiv(wide, sx)
        is_read = R.all(
            ops.greater_equal(high, 0), ops.greater_equal(wide, 0),
            ops.equal(ops.floormod(high, sy), 0), ops.equal(ops.floormod(wide, sx), 0),
            ops.less(i, rows), ops.less(j, columns),
        )  # fmt: skip
        gradient = Out_grad(n, i, j, ops.add(ops.mul(c, multiplier), m.var))
        product = ops.mul(gradient, Filter(ry.var, rx.var, c, m.var))
        zero = const(0, Out_grad.dtype)
        return R.sum(ops.if_then_else(is_read, product, zero), axis=[ry, rx, m])

    shape = (*sizes[:3], channels)
    return compute(shape, element, "depthwise_conv2d_backward_input")  # type: ignore[no-any-return]


def depthwise_conv2d_backward_weight_nhwc(
    Input: Tensor, Out_grad: Tensor, oshape: ShapeLike, fshape: ShapeLike, stride: ShapeLike,
    padding: ShapeLike,
) -> Tensor:  # fmt: skip
    """Return the gradient by the kernel, of shape `fshape`; `Out_grad` is that of the result."""
    _check("the gradient of the result", Out_grad, oshape)
    sizes: Any = fshape
    kh, kw, _, multiplier = (get_const_int(n) for n in sizes)
    sy, sx = spread(stride, 2, "stride")
    (top, left), (bottom, right) = sides(padding, [kh, kw])
    x = pad(Input, [0, top, left, 0], [0, bottom, right, 0])
    batch, rows, columns, _ = Out_grad.shape
    n, i, j = (
        R.reduce_axis((0, extent), name) for extent, name in zip((batch, rows, columns), "nij",
                                                                 strict=True)
    )  # fmt: skip

    def element(y: PrimExpr, z: PrimExpr, c: PrimExpr, m: PrimExpr) -> Any:
        value = x(n.var, ops.add(ops.mul(i.var, sy), y), ops.add(ops.mul(j.var, sx), z), c)
        gradient = Out_grad(n.var, i.var, j.var, ops.add(ops.mul(c, multiplier), m))
        return R.sum(ops.mul(value, gradient), axis=[n, i, j])

    shape = tuple(sizes)
    return compute(shape, element, "depthwise_conv2d_backward_weight")  # type: ignore[no-any-return]
