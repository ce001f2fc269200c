"""The names of `slipway.testing`, under the module that classic TVM has them in."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("slipway.testing"), name)


def __dir__() -> list[str]:
    return dir(importlib.import_module("slipway.testing"))
