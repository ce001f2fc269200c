"""``relay.vision``: detection operators under their classic names."""

from slipway.relay.ops.image.detection import all_class_non_max_suppression
from slipway.relay.ops.image.regions import roi_align

__all__ = ["all_class_non_max_suppression", "roi_align"]
