"""NumPy references of convolutions and of what is written in a line or two, under classic names.

Each is computed in float64 (integers in int64) and returned in the data's type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from slipway.errors import InvalidShapeError
from slipway.topi.nn.windows import sides, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import ShapeLike

Array: TypeAlias = np.ndarray[Any, Any]


def conv2d_nchw_python(
    a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike, groups: int = 1
) -> Any:
    """Return the convolution of (N, C, H, W) with (O, C / groups, KH, KW)."""
    inner, outputs = w_np.shape[1], w_np.shape[0] // groups
    if a_np.shape[1] != inner * groups or outputs * groups != w_np.shape[0]:
        raise InvalidShapeError(f"conv2d of {a_np.shape} by {w_np.shape} in {groups} groups")
    before, after = sides(padding, w_np.shape[2:])
    (sy, sx), wide = spread(stride, 2, "stride"), _wide(a_np)
    edges = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    padded, kernel = np.pad(a_np.astype(wide), edges), w_np.astype(wide)
    seen = np.lib.stride_tricks.sliding_window_view(padded, w_np.shape[2:], (2, 3))[
        :, :, ::sy, ::sx
    ]
    parts = [
        np.einsum(
            "nchwij,ocij->nohw",
            seen[:, g * inner : (g + 1) * inner],
            kernel[g * outputs : (g + 1) * outputs],
        )
        for g in range(groups)
    ]
    return np.concatenate(parts, 1).astype(a_np.dtype)


def conv2d_nhwc_python(
    a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike, groups: int = 1
) -> Any:
    """Return the convolution of (N, H, W, C) with (KH, KW, C / groups, O)."""
    data, kernel = a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1)
    return conv2d_nchw_python(data, kernel, stride, padding, groups).transpose(0, 2, 3, 1)


def conv2d_hwcn_python(a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike) -> Any:
    """Return the convolution of (H, W, C, N) with (KH, KW, C, O)."""
    data, kernel = a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1)
    return conv2d_nchw_python(data, kernel, stride, padding).transpose(2, 3, 1, 0)


def depthwise_conv2d_python_nchw(
    input_np: Array, filter_np: Array, stride: ShapeLike, padding: ShapeLike
) -> Any:
    """Return the convolution of each channel of (N, C, H, W) with (C, multiplier, KH, KW)."""
    channels, multiplier, *window = filter_np.shape
    kernel = filter_np.reshape(channels * multiplier, 1, *window)
    return conv2d_nchw_python(input_np, kernel, stride, padding, channels)


def depthwise_conv2d_python_nhwc(
    input_np: Array, filter_np: Array, stride: ShapeLike, padding: ShapeLike
) -> Any:
    """Return the convolution of each channel of (N, H, W, C) with (KH, KW, C, multiplier)."""
    data, kernel = input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1)
    return depthwise_conv2d_python_nchw(data, kernel, stride, padding).transpose(0, 2, 3, 1)


def dilate_python(
    input_np: Array,
    strides: Sequence[int],
    dilation_value: float = 0.0,
    out_dtype: str | None = None,
) -> Any:
    """Return the data with ``strides - 1`` elements `dilation_value` between two neighbours."""
    shape = [(n - 1) * s + 1 for n, s in zip(input_np.shape, strides, strict=True)]
    made = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    made[tuple(slice(None, None, s) for s in strides)] = input_np
    return made


def log_softmax_python(a_np: Array, axis: int = 1) -> Any:
    """Return the logarithm of the softmax along `axis`."""
    shifted = a_np.astype("float64") - a_np.max(axis, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))).astype(a_np.dtype)


def softmax_python(a_np: Array, axis: int = 1) -> Any:
    """Return the softmax along `axis`."""
    return np.exp(log_softmax_python(a_np.astype("float64"), axis)).astype(a_np.dtype)


def _wide(array: Any) -> str:
    return "float64" if array.dtype.kind == "f" else "int64"
