"""``relay.vision``: detection operators under their classic names."""

from slipway.relay.ops.explained import explained
from slipway.relay.ops.image.detection import all_class_non_max_suppression
from slipway.relay.ops.image.region_samples import roi_align_adaptive
from slipway.relay.ops.image.regions import roi_align
from slipway.relay.ops.vision.counts import get_valid_counts, roi_pool, yolo_reorg
from slipway.relay.ops.vision.multibox import multibox_prior, multibox_transform_loc
from slipway.relay.ops.vision.proposals import proposal
from slipway.relay.ops.vision.suppression import non_max_suppression

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "multibox_prior",
    "multibox_transform_loc",
    "non_max_suppression",
    "proposal",
    "roi_align",
    "roi_align_adaptive",
    "roi_pool",
    "yolo_reorg",
]

globals().update({name: explained(globals()[name]) for name in __all__})
