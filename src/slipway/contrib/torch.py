"""Compiled models as modules of PyTorch; see `slipway.deploy.torch_module`."""

from slipway.deploy.torch_module import as_torch, optimize_torch

__all__ = ["as_torch", "optimize_torch"]
