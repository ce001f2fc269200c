"""Khronos' optimiser; see `slipway.toolchain.spirv_opt`."""

from slipway.toolchain.spirv_opt import optimize

__all__ = ["optimize"]
