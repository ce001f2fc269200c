"""The notebooks run from top to bottom, and hold the outputs of such a run."""

import importlib.util
import os
import shutil
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


def tool():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools/notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    if path.stem == "microcontroller":
        for program in ("arm-none-eabi-gcc", "qemu-system-arm"):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")
    found = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTHONPATH", found)  # of its kernel and the commands in it, wherever it is
    book = tool().run(path, tmp_path)
    texts = [out.get("text", "") for cell in book.cells for out in cell.get("outputs", ())]
    assert not [text for text in texts if "slipway: error" in text], texts


def test_there_are_six_with_their_outputs():
    assert len(NOTEBOOKS) >= 6
    for path in NOTEBOOKS:
        book = nbformat.read(path, as_version=4)
        assert any(cell.get("outputs") for cell in book.cells), (
            f"tools/notebooks.py --write: {path}"
        )
        assert book.cells[0].source.startswith("# ")
