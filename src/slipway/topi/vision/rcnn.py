"""``topi.vision.rcnn``: a facade; see `slipway.relay.as_topi.vision`."""

from slipway.relay.as_topi.vision import proposal, roi_align_nchw, roi_align_nhwc, roi_pool_nchw

__all__ = ["proposal", "roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw"]
