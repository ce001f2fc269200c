"""Loop passes under their classic path.

See `slipway.transform.loop.classic`, and `slipway.compiler.classic_thread_passes`.
"""

from __future__ import annotations

from typing import Any

from slipway.lazy import load

_MODULES = ("slipway.transform.loop.classic", "slipway.compiler.classic_thread_passes")


def __getattr__(name: str) -> Any:
    for home in map(load, _MODULES):
        if name in home.__all__:
            return getattr(home, name)
    from slipway.classic.names import missing

    raise AttributeError(missing("slipway.tir.transform", name, __dir__()))


def __dir__() -> list[str]:
    return sorted(name for home in map(load, _MODULES) for name in home.__all__)
