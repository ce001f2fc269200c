"""What type checkers see of slipway.relay.frontend; written by tools/stubs.py."""

from slipway.frontends import inferred as common
from slipway.frontends.darknet import importer as darknet
from slipway.frontends.darknet.importer import from_darknet as from_darknet
from slipway.frontends.keras import importer as keras
from slipway.frontends.keras.importer import from_keras as from_keras
from slipway.frontends.mxnet import importer as mxnet
from slipway.frontends.mxnet.importer import from_mxnet as from_mxnet
from slipway.frontends.onnx import importer as onnx
from slipway.frontends.onnx.importer import from_onnx as from_onnx
from slipway.frontends.tensorflow import importer as tensorflow
from slipway.frontends.tensorflow import importer as tensorflow2
from slipway.frontends.tensorflow.importer import from_tensorflow as from_tensorflow
from slipway.frontends.tflite import importer as tflite
from slipway.frontends.tflite.importer import from_tflite as from_tflite
from slipway.frontends.torch import importer as pytorch
from slipway.frontends.torch.importer import from_pytorch as from_pytorch
from slipway.transform.graph import change_datatype as change_datatype
from slipway.transform.graph.change_datatype import ChangeDatatype as ChangeDatatype

__all__ = [
    "ChangeDatatype",
    "change_datatype",
    "common",
    "darknet",
    "from_darknet",
    "from_keras",
    "from_mxnet",
    "from_onnx",
    "from_pytorch",
    "from_tensorflow",
    "from_tflite",
    "keras",
    "mxnet",
    "onnx",
    "pytorch",
    "tensorflow",
    "tensorflow2",
    "tflite",
]
