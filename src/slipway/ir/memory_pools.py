"""Memories that a model may use: the classic pool classes that ``relay.build`` takes.

``WorkspaceMemoryPools([WorkspacePoolInfo("sram", [target], PoolInfoProperties(n_bytes))])``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PoolInfoProperties:
    """What is known of a memory; `size_hint_bytes` -1 means unlimited, the rest is informative."""

    size_hint_bytes: int = -1
    clock_frequency_hz: int = -1
    read_bandwidth_bytes_per_cycle: int = -1
    write_bandwidth_bytes_per_cycle: int = -1
    read_latency_cycles: int = 0
    write_latency_cycles: int = 0
    target_burst_bytes: Any = None


@dataclass(frozen=True)
class PoolInfo:
    """A memory: its name, the targets that reach it, its properties."""

    pool_name: str
    targets: Sequence[Any] = ()
    pool_info_properties: PoolInfoProperties = field(default_factory=PoolInfoProperties)

    @property
    def size_bytes(self) -> int | None:
        """The size, or None when it is not limited."""
        hint = self.pool_info_properties.size_hint_bytes
        return hint if hint >= 0 else None


@dataclass(frozen=True)
class WorkspacePoolInfo(PoolInfo):
    """A memory for tensors; the first pool of a list is the preferred one."""


@dataclass(frozen=True)
class ConstantPoolInfo(PoolInfo):
    """A memory for constants."""

    constant_info_arr: Sequence[Any] = ()


@dataclass(frozen=True)
class WorkspaceMemoryPools:
    """The memories that a model's tensors may lie in, the preferred one first."""

    pools: Sequence[PoolInfo] = ()


@dataclass(frozen=True)
class ConstantMemoryPools:
    """The memories that a model's constants may lie in."""

    pools: Sequence[PoolInfo] = ()
