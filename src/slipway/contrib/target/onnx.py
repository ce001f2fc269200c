"""Relay graphs as ONNX models under the classic path; see `slipway.frontends.onnx.export.model`."""

from slipway.frontends.onnx.export.model import to_onnx

__all__ = ["to_onnx"]
