"""``relay.image``: image operators under their classic names."""

from slipway.relay.ops.image.resize import resize, resize2d
from slipway.relay.ops.image.sample import grid_sample

__all__ = ["grid_sample", "resize", "resize2d"]
