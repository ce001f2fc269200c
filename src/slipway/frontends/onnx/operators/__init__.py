"""Converters of ONNX operators, one family a file; the table beside this folder lists them."""
