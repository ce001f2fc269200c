"""``topi.image``: a facade; see `slipway.relay.as_topi.image`."""

from slipway.relay.as_topi.image import (
    affine_grid,
    crop_and_resize,
    dilation2d_nchw,
    dilation2d_nhwc,
    grid_sample,
    resize1d,
    resize2d,
    resize3d,
)
from slipway.topi.explained import explain_all

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d_nchw",
    "dilation2d_nhwc",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]

explain_all(globals(), __all__)
