"""``relay.vision``: detection operators under their classic names."""

from slipway.relay.ops.regions import roi_align

__all__ = ["roi_align"]
