"""What `requantize` does where its call does not say: a setting of a stretch of code."""

from __future__ import annotations

from typing import Any

from slipway.entered import Entered

_ENTERED: Entered[RequantizeConfig] = Entered("settings of requantize")


class RequantizeConfig:
    """Rounding and compute_dtype for the calls of requantize inside of a ``with``."""

    def __init__(self, rounding: str | None = None, compute_dtype: str | None = None) -> None:
        self.rounding, self.compute_dtype = rounding, compute_dtype

    def __enter__(self) -> RequantizeConfig:
        _ENTERED.enter(self)
        return self

    def __exit__(self, *what: Any) -> None:
        _ENTERED.leave(self)


def requantize_config(**options: Any) -> RequantizeConfig:
    """Return a setting to use in a ``with``: `rounding` and `compute_dtype` of requantize."""
    return RequantizeConfig(**options)


def current_requantize_config() -> RequantizeConfig:
    """Return the innermost setting; outside of all, the rule of docs/quantization.md."""
    return _ENTERED.innermost() or RequantizeConfig()
