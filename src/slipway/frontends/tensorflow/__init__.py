"""TensorFlow's frozen graphs, through tf2onnx: they become relay calls as ONNX models do."""
