"""Reading Relay text, under its classic path; see `slipway.relay.text.parser`."""

from typing import Any

from slipway.classic.placeholders import placeholder_of
from slipway.relay.text.parser import fromtext, parse, parse_expr

__all__ = ["fromtext", "parse", "parse_expr"]


def __getattr__(name: str) -> Any:
    advice = "expressions say the model's node that they come from (span), not a place in a text"
    return placeholder_of(__name__, name, advice)
