"""``topi.vision.ssd``: a facade; see `slipway.relay.as_topi.vision`."""

from slipway.relay.as_topi.vision import (
    multibox_detection,
    multibox_prior,
    multibox_transform_loc,
)

__all__ = ["multibox_detection", "multibox_prior", "multibox_transform_loc"]
