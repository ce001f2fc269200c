"""``topi.random``: a facade; see `slipway.relay.as_topi.random`."""

from slipway.relay.as_topi.random import (
    multinomial,
    normal,
    threefry_generate,
    threefry_split,
    threefry_test_wrapping,
    uniform,
)

__all__ = [
    "multinomial",
    "normal",
    "threefry_generate",
    "threefry_split",
    "threefry_test_wrapping",
    "uniform",
]
