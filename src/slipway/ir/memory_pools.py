"""Memories that a model may use: the classic pool classes that ``relay.build`` takes.

``WorkspaceMemoryPools([WorkspacePoolInfo("sram", [target], PoolInfoProperties(n_bytes))])``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.errors import ArgumentTypeError, ArgumentValueError


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

    def __post_init__(self) -> None:
        """Check the parts, which positions mix up with ease."""
        if self.pool_info_properties is None:
            object.__setattr__(self, "pool_info_properties", PoolInfoProperties())
        if not isinstance(self.pool_name, str) or not isinstance(
            self.pool_info_properties, PoolInfoProperties
        ):
            raise ArgumentTypeError(
                f"{type(self).__name__} takes a name, targets and PoolInfoProperties, not "
                f"{self.pool_name!r} and {self.pool_info_properties!r}"
            )

    @property
    def size_hint_bytes(self) -> int:
        """The size, or -1 when it is not limited."""
        return self.pool_info_properties.size_hint_bytes

    @property
    def clock_frequency_hz(self) -> int:
        """The clock, or -1 when it is not known."""
        return self.pool_info_properties.clock_frequency_hz

    @property
    def read_bandwidth_bytes_per_cycle(self) -> int:
        """Bytes read in a cycle, or -1 when it is not known."""
        return self.pool_info_properties.read_bandwidth_bytes_per_cycle

    @property
    def write_bandwidth_bytes_per_cycle(self) -> int:
        """Bytes written in a cycle, or -1 when it is not known."""
        return self.pool_info_properties.write_bandwidth_bytes_per_cycle

    @property
    def read_latency_cycles(self) -> int:
        """Cycles until a read gives its first byte."""
        return self.pool_info_properties.read_latency_cycles

    @property
    def write_latency_cycles(self) -> int:
        """Cycles until a write has taken its first byte."""
        return self.pool_info_properties.write_latency_cycles

    @property
    def target_burst_bytes(self) -> Any:
        """The bytes of a burst, by target."""
        return self.pool_info_properties.target_burst_bytes

    @property
    def size_bytes(self) -> int | None:
        """The size, or None when it is not limited."""
        hint = self.pool_info_properties.size_hint_bytes
        return hint if hint >= 0 else None


@dataclass(frozen=True)
class WorkspacePoolInfo(PoolInfo):
    """A memory for tensors; the first pool of a list is the preferred one."""


@dataclass(frozen=True, init=False)
class ConstantPoolInfo(PoolInfo):
    """A memory for constants; which lie where is planned, so that `constant_info_arr` is empty."""

    def __init__(
        self,
        pool_name: str,
        targets: Sequence[Any] = (),
        constant_info_arr: Sequence[object] | None = None,
        pool_info_properties: PoolInfoProperties | None = None,
    ) -> None:
        if isinstance(constant_info_arr, PoolInfoProperties):
            raise ArgumentTypeError(
                "ConstantPoolInfo takes a list of constants before the properties: write "
                "pool_info_properties=PoolInfoProperties(...)"
            )
        if constant_info_arr:
            raise ArgumentValueError(
                f"constants of the pool {pool_name!r} are placed by the compiler: give "
                "constant_info_arr as None or []"
            )
        super().__init__(pool_name, targets, pool_info_properties or PoolInfoProperties())


@dataclass(frozen=True)
class WorkspaceMemoryPools:
    """The memories that a model's tensors may lie in, the preferred one first."""

    pools: Sequence[PoolInfo] = ()


@dataclass(frozen=True)
class ConstantMemoryPools:
    """The memories that a model's constants may lie in."""

    pools: Sequence[PoolInfo] = ()
