"""What `requantize` does where its call does not say: a setting of a stretch of code."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_CURRENT: ContextVar[RequantizeConfig | None] = ContextVar("requantize", default=None)


class RequantizeConfig:
    """Rounding and compute_dtype for the calls of requantize inside of a ``with``."""

    def __init__(self, rounding: str | None = None, compute_dtype: str | None = None) -> None:
        self.rounding, self.compute_dtype = rounding, compute_dtype
        self._outer: list[RequantizeConfig] = []

    def __enter__(self) -> RequantizeConfig:
        self._outer.append(current_requantize_config())
        _CURRENT.set(self)
        return self

    def __exit__(self, *what: Any) -> None:
        _CURRENT.set(self._outer.pop())


def requantize_config(**options: Any) -> RequantizeConfig:
    """Return a setting to use in a ``with``: `rounding` and `compute_dtype` of requantize."""
    return RequantizeConfig(**options)


def current_requantize_config() -> RequantizeConfig:
    """Return the innermost setting; outside of all, the rule of docs/quantization.md."""
    found = _CURRENT.get()
    return found if found is not None else RequantizeConfig()
