"""Operators of the domain com.microsoft, which onnxruntime's optimiser and quantiser write."""
