"""Compiled models as modules of PyTorch; see `slipway.deploy`."""

from slipway.deploy import pytorch_tvm
from slipway.deploy.pytorch_tvm import GraphModule, PyTorchTVMModule, compile
from slipway.deploy.pytorch_vm import TraceTvmModule, VMModule
from slipway.deploy.torch_module import as_torch, optimize_torch

__all__ = [
    "GraphModule", "PyTorchTVMModule", "TraceTvmModule", "VMModule", "as_torch", "compile",
    "optimize_torch", "pytorch_tvm",
]  # fmt: skip
