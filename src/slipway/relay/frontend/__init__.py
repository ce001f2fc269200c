"""``relay.frontend``: the importers under their classic names; see `slipway.frontends`."""

from slipway.lazy import offer

_HOMES = {
    "from_darknet": "slipway.frontends.darknet.importer:from_darknet",
    "from_keras": "slipway.frontends.keras.importer:from_keras",
    "from_mxnet": "slipway.frontends.mxnet.importer:from_mxnet",
    "from_onnx": "slipway.frontends.onnx.importer:from_onnx",
    "from_tflite": "slipway.frontends.tflite.importer:from_tflite",
    "from_tensorflow": "slipway.frontends.tensorflow.importer:from_tensorflow",
    "from_pytorch": "slipway.frontends.torch.importer:from_pytorch",
    "ChangeDatatype": "slipway.transform.graph.change_datatype:ChangeDatatype",
    # Modules of that name, which classic scripts import from.
    "change_datatype": "slipway.transform.graph.change_datatype",
    "common": "slipway.frontends.inferred",
    "darknet": "slipway.frontends.darknet.importer",
    "keras": "slipway.frontends.keras.importer",
    "mxnet": "slipway.frontends.mxnet.importer",
    "onnx": "slipway.frontends.onnx.importer",
    "pytorch": "slipway.frontends.torch.importer",
    "tensorflow": "slipway.frontends.tensorflow.importer",
    "tensorflow2": "slipway.frontends.tensorflow.importer",
    "tflite": "slipway.frontends.tflite.importer",
}
__getattr__, __dir__ = offer(__name__, _HOMES, explain=True)
