"""Relay graphs as ONNX models under the classic path; see `slipway.frontends.onnx.export`."""

from slipway.frontends.onnx.export import to_onnx

__all__ = ["to_onnx"]
