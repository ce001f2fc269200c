"""Pain 10: versions of Zephyr, Arduino and SDKs change under a project."""

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slipway.cli.app import app

FREESTANDING = {"stdint.h", "stddef.h", "stdbool.h", "stdarg.h", "limits.h", "float.h"}
DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


BOARDS = {
    "cmake": "", "cmsis": "", "zephyr": "nucleo_l4r5zi", "arduino": "nano33ble",
    "platformio": "nucleo_l432kc", "espidf": "esp32c3",
}  # fmt: skip


@pytest.fixture(scope="module", params=BOARDS)
def project(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdk") / request.param
    words = ["micro", "create", str(DIGITS), str(folder), "--template", request.param]
    words += ["--target", "c", "--module-name", "digits"]
    words += ["--board", BOARDS[request.param]] if BOARDS[request.param] else []
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    return folder


def model_files(project):
    """The model's own files; the wrapper around them is its system's."""
    found = [
        p for s in ("*.c", "*.h") for p in project.rglob(s) if "tvmgen_digits" in p.read_text()
    ]
    return [p for p in found if not p.name.startswith("main")]


def test_the_model_includes_nothing_of_an_sdk(project):
    files_of_model = model_files(project)
    assert {p.suffix for p in files_of_model} == {".c", ".h"}
    found = set()
    for source in files_of_model:
        found |= set(re.findall(r"#include\s+[<\"]([^>\"]+)[>\"]", source.read_text()))
    ours = ("tvm/", "slipway/", "dlpack/", "tvmgen_")
    assert {name for name in found if not name.startswith(ours)} <= FREESTANDING


def test_any_c99_compiler_takes_it_without_the_sdk(project):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    headers = [p.parent for p in project.rglob("*.h")]
    roots = {up for folder in headers for up in (folder, *folder.parents) if project in up.parents}
    sources = [p for p in model_files(project) if p.suffix == ".c"]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fsyntax-only"]
    flags += [f"-I{folder}" for folder in sorted({*roots, project})]
    subprocess.run([compiler, *flags, *map(str, sources)], check=True, timeout=60)


def test_a_template_that_needs_a_board_of_its_own_says_so(tmp_path):
    words = ["micro", "create", str(DIGITS), str(tmp_path / "p"), "--template", "arduino"]
    done = CliRunner().invoke(app, words)
    assert "'board'" in str(done.exception)
    assert "mps2" not in str(done.exception)  # which nobody asked for
