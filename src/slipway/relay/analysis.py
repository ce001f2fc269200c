"""``relay.analysis``: questions about graphs."""

from slipway.relay.visit import free_vars, post_order

__all__ = ["free_vars", "post_order"]
