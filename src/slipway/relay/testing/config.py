"""``relay.testing.config`` of TVM 0.6: what tests run on."""

from slipway.relay.testing.tools import ctx_list

__all__ = ["ctx_list"]
