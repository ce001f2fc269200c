"""Builders (classic): candidates are compiled by this process; there is nothing to set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalBuilder:
    """Compiles candidates here.

    `max_workers` and `timeout_sec` are classic TVM's: LLVM works in processes of its own anyway,
    as many as the machine has processors, and a compilation always ends.
    """

    max_workers: int | None = None
    timeout_sec: float = 30.0


def create(kind: str = "local") -> LocalBuilder:
    """Return a builder by its kind, of which there is one."""
    if kind != "local":
        raise ValueError(f"there is no builder {kind!r}; it is 'local'")
    return LocalBuilder()
