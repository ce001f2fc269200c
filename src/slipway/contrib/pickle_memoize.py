"""``contrib.pickle_memoize``: a facade; see `slipway.testing.memoize`."""

from slipway.testing.memoize import memoize

__all__ = ["memoize"]
