"""``topi.nn``: layers that graphs have, over te tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.relay import op_registry
from slipway.relay.as_topi.convolution import (
    as_many,
    conv1d_transpose_ncw,
    conv2d_NCHWc,
    conv2d_NCHWc_int8,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    deformable_conv2d_nchw,
    deformable_conv2d_nhwc,
    depthwise_conv2d_NCHWc,
    group_conv1d_ncw,
    group_conv1d_nwc,
    group_conv2d_transpose_nchw,
    over_nn,
)
from slipway.relay.ops.image import resize
from slipway.relay.ops.nn import loss, space, spread
from slipway.relay.over_tensors import over_tensors
from slipway.relay.qnn import simulated

if TYPE_CHECKING:
    from slipway.relay.expr import Extents
    from slipway.te.tensor import Tensor

__all__ = [
    "SQNN_CODE_TO_DTYPE", "SQNN_DTYPE_TO_CODE",
    "adaptive_pool3d", "batch_to_space_nd", "conv1d_transpose_ncw", "conv2d_NCHWc",
    "conv2d_NCHWc_int8", "conv2d_transpose_nchw", "conv3d_transpose_ncdhw", "correlation_nchw",
    "deformable_conv2d_nchw", "deformable_conv2d_nhwc", "depth_to_space",
    "depthwise_conv2d_NCHWc", "fast_softmax", "fifo_buffer",
    "group_conv1d_ncw", "group_conv1d_nwc", "group_conv2d_transpose_nchw", "layout_transform",
    "lrn", "mirror_pad", "nll_loss", "simulated_dequantize",
    "simulated_quantize", "space_to_batch_nd", "space_to_depth", "upsampling", "upsampling3d",
]  # fmt: skip

SQNN_DTYPE_TO_CODE = dict(simulated.CODES)
SQNN_CODE_TO_DTYPE = {code: name for name, code in simulated.CODES.items()}


def correlation_nchw(
    data1: Tensor, data2: Tensor, kernel_size: int, max_displacement: int, stride1: int,
    stride2: int, padding: Extents | str, is_multiply: bool,
) -> Any:  # fmt: skip
    """Return how alike patches of two images are, for each displacement."""
    return over_nn("correlation")(
        data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply
    )


def simulated_quantize(
    data: Tensor,
    out_dtype: Tensor | str,
    output_scale: Tensor,
    output_zero_point: Tensor,
    axis: int = -1,
) -> Any:
    """Return what data is quantised, as real numbers; SQNN_DTYPE_TO_CODE says what dtypes mean."""
    quantize = over_tensors(simulated.simulated_quantize)
    return quantize(data, output_scale, output_zero_point, axis, out_dtype)


def simulated_dequantize(
    data: Tensor,
    in_dtype: Tensor | str,
    input_scale: Tensor,
    input_zero_point: Tensor,
    axis: int = -1,
) -> Any:
    """Return (data - zero point) * scale, or the data where `in_dtype` says "disable"."""
    dequantize = over_tensors(simulated.simulated_dequantize)
    return dequantize(data, input_scale, input_zero_point, axis, in_dtype)


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Any:
    """Move blocks of pixels into channels."""
    return over_tensors(space.space_to_depth)(data, block_size, layout)


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Any:
    """Move channels into blocks of pixels."""
    return over_tensors(space.depth_to_space)(data, block_size, layout, mode)


def space_to_batch_nd(
    data: Tensor,
    block_shape: Extents,
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> Any:
    """Move blocks of the spatial axes, padded first, into the batch."""
    pads = list(zip(pad_before, pad_after, strict=True))
    return over_tensors(space.space_to_batch_nd)(data, block_shape, pads, pad_value)


def batch_to_space_nd(
    data: Tensor, block_shape: Extents, crop_begin_list: Any, crop_end_list: Any
) -> Any:
    """Move the batch into blocks of the spatial axes, and crop them."""
    crops = list(zip(crop_begin_list, crop_end_list, strict=True))
    return over_tensors(space.batch_to_space_nd)(data, block_shape, crops)


def mirror_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "SYMMETRIC",
) -> Any:
    """Pad with what is inside, mirrored at the edge ("SYMMETRIC" repeats it, "REFLECT" not)."""
    after = pad_before if pad_after is None else pad_after
    pads = list(zip(pad_before, after, strict=True))
    return over_tensors(spread.mirror_pad)(data, pads, mode)


def fifo_buffer(data: Tensor, buffer: Any, axis: int) -> Any:
    """Return `buffer` with `data` behind it and as much dropped in front."""
    return over_tensors(spread.fifo_buffer)(data, buffer, axis)


def fast_softmax(x: Tensor, axis: int = -1) -> Any:
    """Return the softmax (with the exponential of nn.softmax, which is vectors of arithmetic)."""
    return over_tensors(loss.fast_softmax)(x, axis)


def nll_loss(
    predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str, ignore_index: int
) -> Any:
    """Return the negative log likelihood of class numbers."""
    return over_tensors(loss.nll_loss)(predictions, targets, weights, reduction, ignore_index)


def lrn(
    data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75,
    bias: float = 2,
) -> Any:  # fmt: skip
    """Divide by the energy of neighbouring channels."""
    return over_nn("lrn")(data, size, axis, bias, alpha, beta)


def layout_transform(tensor: Any, current_layout: str, desired_layout: str) -> Any:
    """Return a tensor in another layout."""
    return over_tensors(op_registry.make("layout_transform"))(
        tensor, current_layout, desired_layout
    )


def upsampling(
    data: Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Extents | None = None,
) -> Any:
    """Enlarge images by factors, which say the size; `output_shape` is the same again."""
    return over_tensors(resize.upsampling)(data, scale_h, scale_w, layout, method, align_corners)


def upsampling3d(
    data: Tensor, scale_d: float, scale_h: float, scale_w: float, layout: str = "NCDHW",
    method: str = "nearest_neighbor", coordinate_transformation_mode: str = "half_pixel",
    output_shape: Extents | None = None,
) -> Any:  # fmt: skip
    """Enlarge volumes by factors, which say the size; `output_shape` is the same again."""
    return over_tensors(resize.upsampling3d)(
        data, scale_d, scale_h, scale_w, layout, method, coordinate_transformation_mode
    )


def adaptive_pool3d(
    data: Tensor, output_size: Extents, pool_type: str, layout: str = "NCDHW"
) -> Any:
    """Return `output_size` means ("avg") or maxima ("max") of a volume."""
    sizes = tuple(as_many(output_size, 3))
    return over_nn(f"adaptive_{pool_type}_pool3d")(data, sizes, layout=layout)
