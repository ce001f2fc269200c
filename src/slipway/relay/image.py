"""``relay.image``: image operators under their classic names."""

from slipway.relay.ops.image import resize, resize2d

__all__ = ["resize", "resize2d"]
