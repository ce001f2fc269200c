"""Computations and schedules for Arm CPUs, under classic TVM's names: those of any CPU."""

from slipway.topi.by_processor import shared
from slipway.topi.generic import (
    schedule_injective,
    schedule_injective_from_existing,
    schedule_pool,
)

__all__ = ["schedule_injective", "schedule_injective_from_existing", "schedule_pool"]
__getattr__, __dir__ = shared(__name__, schedule_injective)
