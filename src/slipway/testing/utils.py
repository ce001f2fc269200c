"""The names of `slipway.testing`, under the module that classic TVM has them in."""

from __future__ import annotations

from typing import Any

from slipway.lazy import load


def __getattr__(name: str) -> Any:
    return getattr(load("slipway.testing"), name)


def __dir__() -> list[str]:
    return dir(load("slipway.testing"))
