"""Small ONNX graphs for the importer's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
