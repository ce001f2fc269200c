"""``topi.vision``: a facade; see `slipway.relay.as_topi.vision`."""

from slipway.relay.as_topi.vision import (
    all_class_non_max_suppression,
    get_valid_counts,
    non_max_suppression,
    proposal,
    reorg,
    roi_align_nchw,
    roi_align_nhwc,
    roi_pool_nchw,
)
from slipway.topi.explained import explain_all
from slipway.topi.vision import rcnn, ssd

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "non_max_suppression",
    "proposal",
    "rcnn",
    "reorg",
    "roi_align_nchw",
    "roi_align_nhwc",
    "roi_pool_nchw",
    "ssd",
]

explain_all(globals(), __all__)
