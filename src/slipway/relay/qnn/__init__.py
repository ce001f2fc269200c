"""``relay.qnn``: operators on quantised tensors."""

from slipway.relay.qnn import op

__all__ = ["op"]
