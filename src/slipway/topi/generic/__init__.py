"""Schedules for any CPU, under classic TVM's names."""

from slipway.topi.by_processor import shared
from slipway.topi.generic import nn
from slipway.topi.generic.nn import (
    default_schedule,
    schedule_injective,
    schedule_injective_from_existing,
    schedule_pool,
)

__all__ = [
    "default_schedule", "nn", "schedule_injective", "schedule_injective_from_existing",
    "schedule_pool",
]  # fmt: skip
__getattr__, __dir__ = shared(__name__, schedule_injective)
