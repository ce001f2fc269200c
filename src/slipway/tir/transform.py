"""Loop passes under their classic path; see `slipway.transform.loop.classic`."""

from __future__ import annotations

from typing import Any

from slipway.lazy import load


def __getattr__(name: str) -> Any:
    module = load("slipway.transform.loop.classic")
    if name not in module.__all__:
        from slipway.classic.names import missing

        raise AttributeError(missing("slipway.tir.transform", name, module.__all__))
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(load("slipway.transform.loop.classic").__all__)
