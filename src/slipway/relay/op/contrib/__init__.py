"""``relay.op.contrib``: what external code generators tell of themselves."""

from slipway.relay.op.contrib.register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
