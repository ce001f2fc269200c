"""What `requantize` does where its call does not say: a setting of a stretch of code."""

from __future__ import annotations

import threading
from typing import Any

_PER_THREAD = threading.local()


class RequantizeConfig:
    """Rounding and compute_dtype for the calls of requantize inside of a ``with``."""

    def __init__(self, rounding: str | None = None, compute_dtype: str | None = None) -> None:
        self.rounding, self.compute_dtype = rounding, compute_dtype
        self._outer: list[RequantizeConfig] = []

    def __enter__(self) -> RequantizeConfig:
        self._outer.append(current_requantize_config())
        _PER_THREAD.config = self
        return self

    def __exit__(self, *what: Any) -> None:
        _PER_THREAD.config = self._outer.pop()


def requantize_config(**options: Any) -> RequantizeConfig:
    """Return a setting to use in a ``with``: `rounding` and `compute_dtype` of requantize."""
    return RequantizeConfig(**options)


def current_requantize_config() -> RequantizeConfig:
    """Return the innermost setting; outside of all, the rule of docs/quantization.md."""
    found = getattr(_PER_THREAD, "config", None)
    return found if found is not None else RequantizeConfig()
