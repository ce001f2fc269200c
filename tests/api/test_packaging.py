"""The wheel is pure Python and carries what devices and the demo need."""

import shutil
import subprocess
import sys
import zipfile

import pytest

from slipway.version import DISTRIBUTION


@pytest.fixture(scope="module")
def wheel_names(repository, tmp_path_factory):
    # A copy, because setuptools builds in the tree and would pack what an earlier build left there.
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    shutil.copytree(
        repository / "src",
        checkout / "src",
        ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, checkout / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(checkout)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    assert wheel.name.startswith(DISTRIBUTION.replace("-", "_") + "-")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


CARRIED = (
    ("slipway", {".py", ".pyi"}),
    ("slipway/crt", {".c", ".h"}),
    ("slipway/boards", {".c", ".h", ".toml"}),
    ("slipway/report", {".py", ".html", ".css", ".js"}),
    ("slipway/rust", {".rs", ".toml"}),
    ("slipway/models", {".onnx", ".npz"}),
)


@pytest.mark.parametrize(("folder", "suffixes"), CARRIED)
def test_wheel_carries_every_file(wheel_names, repository, folder, suffixes):
    source = repository / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / folder).rglob("*")
        if path.suffix in suffixes
    }
    assert wanted
    assert wanted <= wheel_names, sorted(wanted - wheel_names)


def test_wheel_carries_licence_and_types(wheel_names):
    assert any(name.endswith("licenses/LICENSE") for name in wheel_names)
    assert "slipway/py.typed" in wheel_names
    assert "slipway/models/digits/README.md" in wheel_names
