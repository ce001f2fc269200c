import os
import subprocess
import sys
from pathlib import Path

USES = """
import sys
import slipway
slipway.nd.array([1.0])
print("torch" in sys.modules)
"""


def run_beside_torch(folder: Path, program: str) -> str:
    """Run a program for which a package `torch` is installed that says when it is imported."""
    package = folder / "torch"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("print('imported')\nTensor = type('Tensor', (), {})\n")
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def test_pytorch_is_not_imported_for_its_own_sake(tmp_path):
    assert run_beside_torch(tmp_path, USES) == "False\n"


def test_pytorch_can_be_imported_afterwards(tmp_path):
    assert run_beside_torch(tmp_path, USES + "import torch") == "False\nimported\n"
