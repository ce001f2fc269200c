"""Small ONNX graphs for the importer's tests."""

import sys
from pathlib import Path

# Not this folder itself: where torch or tflite is not installed, others that try to import it would
# find the tests' folder of that name.
sys.path[:0] = [str(Path(__file__).parent / "helpers"), str(Path(__file__).parents[2])]
