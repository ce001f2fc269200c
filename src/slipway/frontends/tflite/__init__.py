"""The TFLite importer: `importer.from_tflite`; one file of converters per family of operators."""
