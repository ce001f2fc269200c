"""NumPy references of what samples images, under classic names: those of the operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from slipway.relay import image, nn, vision
from slipway.topi.testing.by_operator import reference

if TYPE_CHECKING:
    from slipway.ir.expr import ShapeLike

Array: TypeAlias = np.ndarray[Any, Any]


def _scaled(data: Array, scale: Sequence[float], layout: str) -> tuple[int, ...]:
    axes = [n for n, letter in enumerate(layout) if letter in "DHW"]
    return tuple(round(data.shape[n] * s) for n, s in zip(axes, scale, strict=True))


def _resize(
    make: Callable[..., Any],
    data: Array,
    scale: Sequence[float],
    layout: str,
    method: str,
    mode: str,
) -> Any:
    return reference(
        make, data, size=_scaled(data, scale, layout), layout=layout, method=method,
        coordinate_transformation_mode=mode,
    )  # fmt: skip


def resize1d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Any:
    """Return rows `scale` times as long."""
    return _resize(image.resize1d, data, scale, layout, method, coordinate_transformation_mode)


def resize2d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Any:
    """Return images `scale` times as large."""
    return _resize(image.resize2d, data, scale, layout, method, coordinate_transformation_mode)


def resize3d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Any:
    """Return volumes `scale` times as large."""
    return _resize(image.resize3d, data, scale, layout, method, coordinate_transformation_mode)


def bilinear_resize_python(
    image_np: Array, out_size: Sequence[int], layout: str, align_corners: bool = True
) -> Any:
    """Return images of a size, by linear interpolation."""
    mode = "align_corners" if align_corners else "asymmetric"
    return reference(
        image.resize2d, image_np, size=tuple(out_size), layout=layout, method="linear",
        coordinate_transformation_mode=mode,
    )  # fmt: skip


def upsampling_python(data: Array, scale: Sequence[float], layout: str = "NCHW") -> Any:
    """Return images whose pixels are repeated."""
    return reference(nn.upsampling, data, scale_h=scale[0], scale_w=scale[1], layout=layout)


def crop_and_resize_python(
    image_np: Array,
    boxes: Array,
    box_indices: Array,
    crop_size: Sequence[int],
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
) -> Any:
    """Return the boxes of images, each at one size."""
    return reference(
        image.crop_and_resize, image_np, boxes, np.asarray(box_indices),
        crop_size=tuple(crop_size), layout=layout, method=method,
        extrapolation_value=extrapolation_value,
    )  # fmt: skip


def affine_grid_python(data: Array, target_shape: Sequence[int]) -> Any:
    """Return the grid of places of an affine map."""
    return reference(image.affine_grid, data, target_shape=tuple(target_shape))


def grid_sample_python(
    data: Array,
    grid: Array,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Any:
    """Return the data at the places of a grid."""
    return reference(
        image.grid_sample, data, grid, method=method, layout=layout, padding_mode=padding_mode,
        align_corners=align_corners,
    )  # fmt: skip


def grid_sample_nchw_python(data: Array, grid: Array, method: str = "bilinear") -> Any:
    """Return the data at the places of a grid."""
    return grid_sample_python(data, grid, method)


def reorg_python(a_np: Array, stride: int) -> Any:
    """Return the rearrangement of YOLO's reorg layer."""
    return reference(vision.yolo_reorg, a_np, stride=stride)


def _align(
    a_np: Array, rois_np: Array, size: ShapeLike, scale: float, ratio: int,
    mode: str | bytes | int, layout: str,
) -> Any:  # fmt: skip
    name = "avg" if mode in (b"avg", "avg", 0) else "max"
    return reference(
        vision.roi_align, a_np, rois_np, pooled_size=size, spatial_scale=scale,
        sample_ratio=ratio, mode=name, layout=layout,
    )  # fmt: skip


def roi_align_nchw_python(
    a_np: Array, rois_np: Array, pooled_size: ShapeLike, spatial_scale: float, sample_ratio: int,
    mode: str | bytes | int = b"avg",
) -> Any:  # fmt: skip
    """Return samples of regions of (N, C, H, W)."""
    return _align(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode, "NCHW")


def roi_align_nhwc_python(
    a_np: Array, rois_np: Array, pooled_size: ShapeLike, spatial_scale: float, sample_ratio: int,
    mode: str | bytes | int = b"avg",
) -> Any:  # fmt: skip
    """Return samples of regions of (N, H, W, C)."""
    return _align(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode, "NHWC")


def roi_pool_nchw_python(
    a_np: Array, rois_np: Array, pooled_size: ShapeLike, spatial_scale: float
) -> Any:
    """Return the largest elements of the parts of regions."""
    return reference(
        vision.roi_pool, a_np, rois_np, pooled_size=pooled_size, spatial_scale=spatial_scale
    )
