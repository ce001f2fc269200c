"""``relay.transform``: graph passes under their classic names; see `slipway.compiler`."""

from __future__ import annotations

import importlib
import typing


def __getattr__(name: str) -> typing.Any:
    passes = importlib.import_module("slipway.compiler.classic_passes")
    if name not in passes.__all__:
        near = importlib.import_module("slipway.errors").did_you_mean(name, passes.__all__)
        raise AttributeError(f"module 'slipway.relay.transform' has no attribute {name!r}.{near}")
    return getattr(passes, name)


def __dir__() -> list[str]:
    return sorted(importlib.import_module("slipway.compiler.classic_passes").__all__)
