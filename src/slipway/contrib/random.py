"""Random tensors; see `slipway.te.library`."""

from slipway.te.library import normal, randint, uniform

__all__ = ["normal", "randint", "uniform"]
