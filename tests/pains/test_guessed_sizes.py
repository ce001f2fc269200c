"""Pain 9: guessing the sizes of stack, heap and workspace."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slipway
from slipway.cli.app import app


def made(folder, *words):
    done = CliRunner().invoke(app, ["micro", "create", *map(str, words), str(folder)])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def digits():
    return Path(slipway.__file__).parent / "models" / "digits" / "digits.onnx"


def test_sizes_are_constants_of_the_header_and_nobody_passes_one(digits, tmp_path):
    project = made(tmp_path / "p", digits, "--board", "mps2-an386", "--module-name", "digits")
    (header,) = project.rglob("tvmgen_digits.h")
    text = header.read_text()
    assert int(re.search(r"TVMGEN_DIGITS_WORKSPACE_SIZE (\d+)", text)[1]) > 0
    sources = "\n".join(p.read_text() for p in project.rglob("*.c"))
    assert not re.search(r"\b(malloc|calloc|realloc|alloca)\s*\(", sources)


def test_stack_and_arena_are_what_was_computed_not_what_was_guessed(digits, tmp_path):
    """Both have a section of their own in the linked image, of the size that the compiler says."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("apt-get install gcc-arm-none-eabi")
    project = made(tmp_path / "p", digits, "--board", "mps2-an386", "--module-name", "digits")
    assert CliRunner().invoke(app, ["micro", "build", str(project)]).exit_code == 0
    table = CliRunner().invoke(app, ["size", str(project), "--json"])
    sizes = {}
    for piece in json.loads(table.stdout)["after"]:
        sizes[piece["kind"]] = sizes.get(piece["kind"], 0) + piece["size_bytes"]
    (header,) = project.rglob("tvmgen_digits.h")
    workspace = re.search(r"TVMGEN_DIGITS_WORKSPACE_SIZE (\d+)", header.read_text())[1]
    assert sizes["arena"] == int(workspace)
    assert 0 < sizes["stack"] < 4096  # of the call graph; a guess would have been 16384
    assert int(re.search(r"(\d+)", (project / "stack.mk").read_text())[1]) <= sizes["stack"]
