"""A relay graph written as an ONNX model: the graph, and what each operator becomes."""
