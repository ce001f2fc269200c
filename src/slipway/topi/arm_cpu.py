"""Schedules for Arm CPUs: those of `slipway.topi.generic`, under classic TVM's names."""

from slipway.topi.generic import *  # noqa: F403
from slipway.topi.generic import __all__ as __all__
