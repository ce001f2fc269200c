"""``relay.image``: image operators under their classic names."""

from slipway.relay.ops.explained import explained
from slipway.relay.ops.image.crop import affine_grid, crop_and_resize, dilation2d
from slipway.relay.ops.image.resize import resize, resize1d, resize2d, resize3d
from slipway.relay.ops.image.sample import classic_grid_sample as grid_sample

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d",
    "grid_sample",
    "resize",
    "resize1d",
    "resize2d",
    "resize3d",
]

globals().update({name: explained(globals()[name]) for name in __all__})
