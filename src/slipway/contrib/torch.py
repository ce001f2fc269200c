"""Compiled models as modules of PyTorch; see `slipway.deploy`."""

from slipway.deploy import pytorch_tvm
from slipway.deploy.pytorch_tvm import GraphModule, PyTorchTVMModule, compile
from slipway.deploy.torch_module import as_torch, optimize_torch

__all__ = [
    "GraphModule", "PyTorchTVMModule", "as_torch", "compile", "optimize_torch", "pytorch_tvm",
]  # fmt: skip
