"""``topi.image``: sampling of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.relay.ops.image import crop, resize, sample
from slipway.relay.over_tensors import over_tensors

if TYPE_CHECKING:
    from slipway.relay.expr import Extents
    from slipway.te.tensor import Tensor

__all__ = [
    "affine_grid", "crop_and_resize", "dilation2d_nchw", "dilation2d_nhwc", "grid_sample",
    "resize1d", "resize2d", "resize3d",
]  # fmt: skip


def _resized(
    function: Any, data: Any, roi: Any, size: Any, layout: str, method: str, mode: str,
    rounding: str, alpha: float, exclude: int, extrapolation: float, dtype: str | None,
    output_shape: Any,
) -> Any:  # fmt: skip
    for name, values in (("roi", roi), ("size", size), ("output_shape", output_shape)):
        if values is not None and (not isinstance(values, list | tuple) or isinstance(values, str)):
            raise InvalidShapeError(f"{name} is {values!r}; write a list of numbers")
    if output_shape is not None:
        spatial = [i for i, letter in enumerate(layout) if letter in "DHW"]
        if [int(output_shape[i]) for i in spatial] != [int(s) for s in size]:
            raise InvalidShapeError(f"a size of {size} and an output_shape of {output_shape}")
    kind = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}.get(method)
    return over_tensors(function)(
        data, tuple(int(s) for s in size), roi if roi is None or any(roi) else None, layout,
        kind or method, mode, rounding, alpha, exclude, extrapolation, dtype,
    )  # fmt: skip


def resize1d(
    data: Tensor, roi: Any, size: Extents, layout: str = "NCW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
    bicubic_alpha: float = -0.5, bicubic_exclude: int = 0, extrapolation_value: float = 0.0,
    out_dtype: str | None = None, output_shape: Extents | None = None,
) -> Any:  # fmt: skip
    """Resample the spatial axis of sequences."""
    return _resized(
        resize.resize1d, data, roi, size, layout, method, coordinate_transformation_mode,
        rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype,
        output_shape,
    )  # fmt: skip


def resize2d(
    data: Tensor, roi: Any, size: Extents, layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
    bicubic_alpha: float = -0.5, bicubic_exclude: int = 0, extrapolation_value: float = 0.0,
    out_dtype: str | None = None, output_shape: Extents | None = None,
) -> Any:  # fmt: skip
    """Resample the spatial axes of images."""
    return _resized(
        resize.resize2d, data, roi, size, layout, method, coordinate_transformation_mode,
        rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype,
        output_shape,
    )  # fmt: skip


def resize3d(
    data: Tensor, roi: Any, size: Extents, layout: str = "NCDHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
    bicubic_alpha: float = -0.5, bicubic_exclude: int = 0, extrapolation_value: float = 0.0,
    out_dtype: str | None = None, output_shape: Extents | None = None,
) -> Any:  # fmt: skip
    """Resample the spatial axes of volumes."""
    return _resized(
        resize.resize3d, data, roi, size, layout, method, coordinate_transformation_mode,
        rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype,
        output_shape,
    )  # fmt: skip


def crop_and_resize(
    data: Tensor, boxes: Tensor, box_indices: Any, crop_size: Any, layout: str = "NCHW",
    method: str = "bilinear", extrapolation_value: float | None = None,
    out_dtype: str | None = None,
) -> Any:  # fmt: skip
    """Cut boxes (normalised y1, x1, y2, x2) out of images, and resample each to one size."""
    return over_tensors(crop.crop_and_resize)(
        data, boxes, box_indices, crop_size, layout, method, extrapolation_value or 0, out_dtype
    )


def affine_grid(data: Tensor, target_shape: Extents) -> Any:
    """Return the grid (N, 2, H, W) of affine maps (N, 2, 3)."""
    return over_tensors(crop.affine_grid)(data, target_shape)


def grid_sample(
    data: Tensor, grid: Any, method: str = "bilinear", layout: str = "NCHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> Any:  # fmt: skip
    """Sample images where a grid says."""
    return over_tensors(sample.classic_grid_sample)(
        data, grid, method, layout, padding_mode, align_corners
    )


def dilation2d_nchw(
    input: Tensor, filter: Tensor, stride: Extents, padding: Extents, dilations: Extents,
    out_dtype: str | None = None,
) -> Any:  # fmt: skip
    """Return the largest sum of window and filter (C, KH, KW)."""
    return over_tensors(crop.dilation2d)(
        input, filter, stride, padding, dilations, "NCHW", "IHW", out_dtype or ""
    )


def dilation2d_nhwc(
    input: Tensor, filter: Tensor, stride: Extents, padding: Extents, dilations: Extents,
    out_dtype: str | None = None,
) -> Any:  # fmt: skip
    """Return the largest sum of window and filter (KH, KW, C)."""
    return over_tensors(crop.dilation2d)(
        input, filter, stride, padding, dilations, "NHWC", "HWI", out_dtype or ""
    )
