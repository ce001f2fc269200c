"""Layers of neural networks as tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.ir import ops
from slipway.te import math
from slipway.te import reduction as R
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.elementwise import divide, exp, subtract
from slipway.topi.products import matmul
from slipway.topi.reduction import max as max_over
from slipway.topi.reduction import sum as sum_over
from slipway.topi.transform import reshape

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, PrimExprLike


def relu(x: Tensor) -> Tensor:
    """Return the elements, 0 for negative ones."""
    zero = const(0, x.dtype)
    return compute(x.shape, lambda *i: ops.maximum(x(*i), zero), "relu")  # type: ignore[no-any-return]


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """Return the elements, negative ones multiplied by `alpha`."""

    def element(*i: Any) -> Any:
        value = x(*i)
        return ops.select(ops.greater(value, const(0, x.dtype)), value, value * alpha)

    return compute(x.shape, element, "leaky_relu")  # type: ignore[no-any-return]


def flatten(data: Tensor) -> Tensor:
    """Return (batch, rest) of a tensor with a leading batch dimension."""
    rest: Any = ops.const(1)
    for extent in data.shape[1:]:
        rest = ops.mul(rest, extent)
    return reshape(data, (data.shape[0], rest))


def pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None,
    pad_value: float = 0.0,
) -> Tensor:  # fmt: skip
    """Return `data` with so many elements `pad_value` before and after each dimension."""
    before, after = list(pad_before), list(pad_after if pad_after is not None else pad_before)
    shape = tuple(
        ops.add(ops.add(n, b), a) for n, b, a in zip(data.shape, before, after, strict=True)
    )

    def element(*i: Any) -> Any:
        tests, place = [], []
        for index, n, b, a in zip(i, data.shape, before, after, strict=True):
            place.append(ops.sub(index, b))
            tests += [ops.greater_equal(index, b)] if b else []
            tests += [ops.less(index, ops.add(n, b))] if a else []
        value = data(*place)
        fill = const(pad_value, data.dtype)
        return ops.if_then_else(ops.all_of(tests), value, fill) if tests else value

    return compute(shape, element, "pad")  # type: ignore[no-any-return]


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str = "") -> Tensor:
    """Return data (batch, in) times weight (out, in), plus bias (out)."""
    product = matmul(data, weight, transp_b=True, out_dtype=out_dtype)
    if bias is None:
        return product
    added = lambda i, j: product(i, j) + bias(j)  # noqa: E731
    return compute(product.shape, added, "dense")  # type: ignore[no-any-return]


def softmax(x: Tensor, axis: int = -1) -> Any:
    """Return exp(x) divided by its sum along `axis`, computed without overflow."""
    powers = exp(subtract(x, max_over(x, axis, keepdims=True)))
    return divide(powers, sum_over(powers, axis, keepdims=True))


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _padded(data: Tensor, padding: Any, value: float = 0.0) -> Tensor:
    """Pad height and width of NCHW: one number, (h, w), or (top, left, bottom, right)."""
    sides = (padding,) if isinstance(padding, int) else tuple(padding)
    top, left, bottom, right = sides * 4 if len(sides) == 1 else (sides * 2)[:4]
    return pad(data, (0, 0, top, left), (0, 0, bottom, right), value)


def _windows(extent: Tensor | PrimExprLike, window: int, stride: int) -> Any:
    return ops.add(ops.floordiv(ops.sub(extent, window), stride), 1)


def conv2d_nchw(
    data: Tensor, kernel: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    out_dtype: str = "",
) -> Tensor:  # fmt: skip
    """Return the convolution of data (N, C, H, W) with kernel (O, C, KH, KW)."""
    (sh, sw), (dh, dw) = _pair(stride), _pair(dilation)
    x = _padded(data, padding)
    channels, kh, kw = (ops.as_int(n) for n in kernel.shape[1:])
    if channels is None or kh is None or kw is None:
        raise ValueError(f"conv2d_nchw needs a kernel of constant shape, got {kernel.shape}")
    over = [R.reduce_axis((0, n), name) for n, name in ((channels, "rc"), (kh, "ry"), (kw, "rx"))]
    rc, ry, rx = (axis.var for axis in over)
    dtype = out_dtype or data.dtype
    shape = (
        x.shape[0],
        kernel.shape[0],
        _windows(x.shape[2], (kh - 1) * dh + 1, sh),
        _windows(x.shape[3], (kw - 1) * dw + 1, sw),
    )

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, z: PrimExpr) -> Any:
        value = x(n, rc, y * sh + ry * dh, z * sw + rx * dw)
        return R.sum(
            ops.mul(ops.cast(value, dtype), ops.cast(kernel(o, rc, ry, rx), dtype)), axis=over
        )

    return compute(shape, element, "conv2d_nchw")  # type: ignore[no-any-return]


def pool2d(
    data: Tensor, kernel: Any, stride: Any, padding: Any = 0, pool_type: str = "max"
) -> Tensor:
    """Return the largest ("max") or mean ("avg", padding counted) element of each window, NCHW."""
    (kh, kw), (sh, sw) = _pair(kernel), _pair(stride)
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type is 'max' or 'avg', not {pool_type!r}")
    lowest = ops.lowest(data.dtype).value  # type: ignore[attr-defined]
    x = _padded(data, padding, lowest if pool_type == "max" else 0.0)
    ry, rx = R.reduce_axis((0, kh), "ry"), R.reduce_axis((0, kw), "rx")
    shape = (*x.shape[:2], _windows(x.shape[2], kh, sh), _windows(x.shape[3], kw, sw))
    reducer = R.max if pool_type == "max" else R.sum

    def element(n: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr) -> Any:
        return reducer(x(n, c, y * sh + ry.var, z * sw + rx.var), axis=[ry, rx])

    found = compute(shape, element, "pool2d")
    if pool_type == "max":
        return found  # type: ignore[no-any-return]
    return divide(found, const(kh * kw, data.dtype))  # type: ignore[no-any-return]


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
    return compute(x.shape, lambda *i: math.sigmoid(x(*i)), "sigmoid")  # type: ignore[no-any-return]
