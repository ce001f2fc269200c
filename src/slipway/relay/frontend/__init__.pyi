"""What type checkers see of slipway.relay.frontend; written by tools/stubs.py."""

from slipway.frontends import inferred as common
from slipway.frontends.onnx import importer as onnx
from slipway.frontends.onnx.importer import from_onnx as from_onnx
from slipway.frontends.tflite import importer as tflite
from slipway.frontends.tflite.importer import from_tflite as from_tflite
from slipway.frontends.torch import importer as pytorch
from slipway.frontends.torch.importer import from_pytorch as from_pytorch

__all__ = [
    "common",
    "from_onnx",
    "from_pytorch",
    "from_tflite",
    "onnx",
    "pytorch",
    "tflite",
]
