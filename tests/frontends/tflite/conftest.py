"""What the TFLite tests share: models of the shared folder, LiteRT as a peer."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def tflite_models(shared):
    """The folder of TFLite files."""
    folder = shared / "models" / "tflite"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    return folder
