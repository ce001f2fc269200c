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


LISTINGS = """
import slipway
slipway.nd.array([1.0])
import tvm_ffi
kept = tvm_ffi.libinfo.im
try:
    kept.distribution("no-such-package")
except kept.PackageNotFoundError:
    print("not found")
import importlib.metadata as real
print(real.__spec__ is not None, kept.version("numpy") == real.version("numpy"))
print(real.distribution("apache-tvm-ffi").name)
print(issubclass(real.PackageNotFoundError, kept.PackageNotFoundError))
"""


def test_lists_of_packages_are_pythons_own_afterwards():
    done = subprocess.run(
        [sys.executable, "-c", LISTINGS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "not found\nTrue True\napache-tvm-ffi\nTrue\n"


def test_lists_of_packages_are_answered_while_tvm_ffi_is_imported():
    """As another thread sees them that imports the module at that time."""
    program = """
import sys
from slipway.runtime.libraries.native_library import _without_extras
with _without_extras():
    import importlib.metadata as seen
    print(type(seen).__name__, seen.version("numpy") != "")
    print(sys.modules["importlib.metadata"] is seen)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "_Metadata True\nFalse\n"
