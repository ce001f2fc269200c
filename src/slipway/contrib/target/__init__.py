"""Relay graphs in other systems' formats (classic TVM's ``contrib.target``): `onnx`."""

from slipway.lazy import offer

__getattr__, __dir__ = offer(__name__, {"onnx": "slipway.contrib.target.onnx"})
