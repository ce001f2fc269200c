"""Builders (classic): where candidates are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from slipway.tuning.builders import Builder, local_builder


@dataclass(frozen=True)
class LocalBuilder:
    """Compiles candidates here: in `max_workers` processes, or in this one where that is None.

    A candidate takes `timeout_sec` seconds at most, in a process of its own.
    """

    max_workers: int | None = None
    timeout_sec: float = 30.0

    @cached_property
    def builder(self) -> Builder:
        """It as the engine's; its processes end with this object."""
        return local_builder(self.max_workers or 1, self.timeout_sec)


def create(kind: str = "local", max_workers: int | None = None) -> LocalBuilder:
    """Return a builder by its kind, of which there is one."""
    if kind != "local":
        raise ValueError(f"there is no builder {kind!r}; it is 'local'")
    return LocalBuilder(max_workers)
