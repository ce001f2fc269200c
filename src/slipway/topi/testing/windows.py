"""NumPy references of pools, blocks and the rarer convolutions: those of the operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from slipway.errors import InvalidShapeError
from slipway.relay import nn
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.topi.nn.windows import sides, spread
from slipway.topi.testing.by_operator import reference

if TYPE_CHECKING:
    from slipway.ir.expr import ShapeLike

Array: TypeAlias = np.ndarray[Any, Any]


def _edges(padding: ShapeLike, window: Sequence[int]) -> tuple[int, ...]:
    """Return the padding that a number, one a dimension, "SAME" or "VALID" stands for."""
    before, after = sides(padding, tuple(window))
    return (*before, *after)


def conv1d_ncw_python(
    a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike, dilation: ShapeLike
) -> Any:
    """Return the convolution of (N, C, W) with (O, C, KW)."""
    return group_conv1d_ncw_python(a_np, w_np, stride, padding, dilation, 1)


def group_conv1d_ncw_python(
    a_np: Array,
    w_np: Array,
    stride: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    groups: int,
) -> Any:
    """Return the convolution of (N, C, W) with (O, C / groups, KW)."""
    (wide,) = spread(dilation, 1, "dilation")
    edges = _edges(padding, [(w_np.shape[2] - 1) * wide + 1])
    return reference(nn.conv1d, a_np, w_np, strides=stride, padding=edges, dilation=dilation,
                     groups=groups)  # fmt: skip


def conv3d_ncdhw_python(
    a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike, groups: int = 1
) -> Any:
    """Return the convolution of (N, C, D, H, W) with (O, C / groups, KD, KH, KW)."""
    edges = _edges(padding, w_np.shape[2:])
    return reference(nn.conv3d, a_np, w_np, strides=stride, padding=edges, groups=groups)


def conv3d_ndhwc_python(
    a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike, groups: int = 1
) -> Any:
    """Return the convolution of (N, D, H, W, C) with (KD, KH, KW, C / groups, O)."""
    data, kernel = np.moveaxis(a_np, 4, 1), w_np.transpose(4, 3, 0, 1, 2)
    return np.moveaxis(conv3d_ncdhw_python(data, kernel, stride, padding, groups), 1, 4)


def _transposed(
    make: Callable[..., Any], a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike,
    beyond: ShapeLike, groups: int = 1,
) -> Any:  # fmt: skip
    edges = _edges(padding, w_np.shape[2:])
    more = tuple(spread(beyond, w_np.ndim - 2, "output_padding"))
    return reference(make, a_np, w_np, strides=stride, padding=edges, output_padding=more,
                     groups=groups)  # fmt: skip


def conv1d_transpose_ncw_python(
    a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike, output_padding: ShapeLike
) -> Any:
    """Return the transposed convolution of (N, C, W) with (C, O, KW)."""
    return _transposed(nn.conv1d_transpose, a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(
    a_np: Array,
    w_np: Array,
    stride: ShapeLike,
    padding: ShapeLike,
    output_padding: ShapeLike,
    groups: int = 1,
) -> Any:
    """Return the transposed convolution of (N, C, H, W) with (C, O / groups, KH, KW)."""
    return _transposed(nn.conv2d_transpose, a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(
    a_nhwc: Array,
    weight: Array,
    weight_format: str,
    stride: ShapeLike,
    padding: ShapeLike,
    output_padding: ShapeLike = (0, 0),
) -> Any:
    """Return the transposed convolution of (N, H, W, C) with a kernel in any order of HWIO."""
    if sorted(weight_format) != sorted("HWIO"):
        raise InvalidShapeError(f"weight_format is {weight_format!r}; it orders the letters HWIO")
    kernel = weight.transpose([weight_format.index(letter) for letter in "IOHW"])
    made = conv2d_transpose_nchw_python(
        a_nhwc.transpose(0, 3, 1, 2), kernel, stride, padding, output_padding
    )
    return made.transpose(0, 2, 3, 1)


def conv3d_transpose_ncdhw_python(
    a_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike, output_padding: ShapeLike
) -> Any:
    """Return the transposed convolution of (N, C, D, H, W) with (C, O, KD, KH, KW)."""
    return _transposed(nn.conv3d_transpose, a_np, w_np, stride, padding, output_padding)


def deformable_conv2d_nchw_python(
    a_np: Array, offset_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike,
    dilation: ShapeLike, deformable_groups: int, groups: int,
) -> Any:  # fmt: skip
    """Return the convolution of (N, C, H, W) at places moved by offsets."""
    return reference(
        nn.deformable_conv2d, a_np, offset_np, w_np, strides=stride, padding=padding,
        dilation=dilation, deformable_groups=deformable_groups, groups=groups,
    )  # fmt: skip


def deformable_conv2d_nhwc_python(
    a_np: Array, offset_np: Array, w_np: Array, stride: ShapeLike, padding: ShapeLike,
    dilation: ShapeLike, deformable_groups: int, groups: int,
) -> Any:  # fmt: skip
    """Return the convolution of (N, H, W, C) with (KH, KW, C, O) at places moved by offsets."""
    made = deformable_conv2d_nchw_python(
        a_np.transpose(0, 3, 1, 2), offset_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1),
        stride, padding, dilation, deformable_groups, groups,
    )  # fmt: skip
    return made.transpose(0, 2, 3, 1)


def _pool(kind: str, dimensions: int, adaptive: bool = False) -> Any:
    name = f"{'adaptive_' if adaptive else ''}{kind}_pool{dimensions}d"
    return getattr(nn, name)


def adaptive_pool(np_data: Array, out_size: ShapeLike, pool_type: str, layout: str) -> Any:
    """Return the mean ("avg") or maximum ("max") of windows that make `out_size` elements."""
    dimensions = len(layout) - 2
    sizes = tuple(spread(out_size, dimensions, "out_size"))
    return reference(_pool(pool_type, dimensions, adaptive=True), np_data, output_size=sizes,
                     layout=layout)  # fmt: skip


def poolnd_python(
    np_data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str | None = None,
) -> Any:
    """Return the mean ("avg") or maximum ("max") of windows of (N, C, W), (N, C, H, W), ...

    Where a window lies in the padding alone, both are 0.
    """
    count = len(kernel)
    order = [(layout or "NC" + SPATIAL[count]).index(axis) for axis in "NC" + SPATIAL[count]]
    data = np.transpose(np_data, order).astype(dtype)
    reach = [(k - 1) * step + 1 for k, step in zip(kernel, dilation, strict=True)]
    edges = list(zip(padding_before, padding_after, strict=True))
    shape = []
    for extent, need, step, (first, last) in zip(
        data.shape[2:], reach, strides, edges, strict=True
    ):
        room = extent + first + last - need
        shape.append((-(-room // step) if ceil_mode else room // step) + 1)
    more = [(first, last + max(0, (n - 1) * step + need - extent - first - last))
            for (first, last), n, step, need, extent
            in zip(edges, shape, strides, reach, data.shape[2:], strict=True)]  # fmt: skip
    padded = np.pad(data, [(0, 0), (0, 0), *more])
    inside = np.pad(np.ones(data.shape[2:], bool), more)
    counted = np.pad(np.pad(np.ones(data.shape[2:], bool), edges, constant_values=True),
                     [(0, m - e) for (_, m), (_, e) in zip(more, edges, strict=True)])  # fmt: skip
    made = np.zeros((*data.shape[:2], *shape), dtype)
    for at in np.ndindex(*shape):
        window = tuple(
            slice(i * step, i * step + need, wide)
            for i, step, need, wide in zip(at, strides, reach, dilation, strict=True)
        )
        valid = inside[window]
        values = padded[(slice(None), slice(None), *window)]
        if not valid.any():
            continue
        if pool_type == "max":
            made[(..., *at)] = values[..., valid].max(-1)
        else:
            number = (counted if count_include_pad else inside)[window].sum()
            made[(..., *at)] = values[..., valid].sum(-1) / number
    return np.transpose(made, np.argsort(order))


def pool_grad_nchw(
    a_np: Array, out_grad_np: Array, pool_size: Sequence[int], strides: Sequence[int],
    padding: Sequence[int], pool_type: str, ceil_mode: bool, count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Return the gradient of a pool with respect to its data (padding top, left, bottom, right).

    That of a maximum goes to its first place in a window.  `ceil_mode` shows in the shape of
    `out_grad_np` alone.
    """
    (kh, kw), (sh, sw), (top, left, bottom, right) = pool_size, strides, padding
    height, width = a_np.shape[2:]
    rows = max(height + top + bottom, (out_grad_np.shape[2] - 1) * sh + kh)
    columns = max(width + left + right, (out_grad_np.shape[3] - 1) * sw + kw)
    padded = np.full((*a_np.shape[:2], rows, columns), -np.inf, "float64")
    padded[:, :, top : top + height, left : left + width] = a_np
    made = np.zeros_like(padded)
    for y, x in np.ndindex(*out_grad_np.shape[2:]):
        part = (slice(None), slice(None), slice(y * sh, y * sh + kh), slice(x * sw, x * sw + kw))
        grad, window = out_grad_np[:, :, y, x], padded[part]
        if pool_type == "avg":
            below = (y * sh + kh, height + top + (bottom if count_include_pad else 0))
            beside = (x * sw + kw, width + left + (right if count_include_pad else 0))
            first = (0, 0) if count_include_pad else (top, left)
            number = (min(below) - max(y * sh, first[0])) * (min(beside) - max(x * sw, first[1]))
            made[part] += (grad / max(number, 1))[:, :, None, None]
        else:
            flat = window.reshape(*window.shape[:2], -1)
            hit = np.arange(flat.shape[2]) == flat.argmax(2)[..., None]
            made[part] += (hit * grad[..., None]).reshape(window.shape)
    return made[:, :, top : top + height, left : left + width].astype(a_np.dtype)


def correlation_nchw_python(
    data1: Array, data2: Array, kernel_size: int, max_displacement: int, stride1: int,
    stride2: int, padding: int, is_multiply: bool,
) -> Any:  # fmt: skip
    """Return how alike patches of two images are, for each displacement."""
    return reference(
        nn.correlation, data1, data2, kernel_size=kernel_size, max_displacement=max_displacement,
        stride1=stride1, stride2=stride2, padding=padding, is_multiply=is_multiply,
    )  # fmt: skip


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Any:
    """Return (N, C, H, W) with channels laid out as blocks of pixels."""
    return reference(nn.depth_to_space, data, block_size=block_size, mode=mode)


def space_to_depth_python(data: Array, block_size: int) -> Any:
    """Return (N, C, H, W) with blocks of pixels laid out as channels."""
    return reference(nn.space_to_depth, data, block_size=block_size)


def space_to_batch_nd_python(
    data: Array, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int],
    pad_value: float = 0,
) -> Any:  # fmt: skip
    """Return the padded data with blocks laid out along the batch."""
    paddings = list(map(list, zip(pad_before, pad_after, strict=True)))
    return reference(nn.space_to_batch_nd, data, block_shape=list(block_shape),
                     paddings=paddings, pad_value=pad_value)  # fmt: skip


def batch_to_space_nd_python(
    data: Array, block_shape: Sequence[int], crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> Any:  # fmt: skip
    """Return the data with parts of the batch laid out as blocks, cropped."""
    crops = list(map(list, zip(crop_begin_list, crop_end_list, strict=True)))
    return reference(nn.batch_to_space_nd, data, block_shape=list(block_shape), crops=crops)
