"""``relay.qnn``: operators on quantised tensors."""

from slipway.relay.qnn import op, transform

__all__ = ["op", "transform"]
