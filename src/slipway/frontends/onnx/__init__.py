"""The ONNX importer: `importer.from_onnx`; one file of converters per family of operators."""
