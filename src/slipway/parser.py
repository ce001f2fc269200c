"""Reading Relay text, under its classic path; see `slipway.relay.text.parser`."""

from slipway.relay.text.parser import fromtext, parse, parse_expr

__all__ = ["fromtext", "parse", "parse_expr"]
