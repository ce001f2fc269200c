"""Post-training quantisation of ONNX models."""
