"""Reading Relay text, under its classic path; see `slipway.relay.parser`."""

from slipway.relay.parser import parse, parse_expr

__all__ = ["fromtext", "parse", "parse_expr"]

fromtext = parse
