"""The domain ai.onnx.ml: what scikit-learn's models consist of."""
