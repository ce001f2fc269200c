"""Files that are no plain ones: pipes, links, names and tools' words that are no text."""

import ast
import os
import subprocess
import sys
import threading
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slipway
from slipway.cli.app import app
from slipway.errors import FileError
from slipway.toolchain.link import write_file

SOURCES = Path(str(files("slipway")))
DIGITS = SOURCES / "models" / "digits" / "digits.onnx"
LATIN = b"caf\xe9"  # of a system whose names were not UTF-8


@pytest.mark.parametrize("command", [["check"], ["compile", "-o", "m.tar"], ["profile"]])
def test_a_model_in_a_pipe_is_told(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("p.onnx")
    error = CliRunner().invoke(app, [command[0], "p.onnx", *command[1:]]).exception
    assert isinstance(error, FileError)
    assert "cat p.onnx > model.onnx" in str(error)
    assert [path.name for path in tmp_path.iterdir()] == ["p.onnx"]


@pytest.mark.parametrize("kind", ["tflite", "pytorch"])
def test_what_is_read_from_stdin_is_told(kind):
    done = subprocess.run(
        [sys.executable, "-m", "slipway", "check", "/dev/stdin", "--model-format", kind],
        input=b"bytes", capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCES.parent)},
    )  # fmt: skip
    assert done.returncode == 11
    assert b"/dev/stdin is a pipe or a device" in done.stderr


def test_an_output_that_is_a_link_is_written_where_it_leads(tmp_path):
    (tmp_path / "disk").mkdir()
    for name in ("there.tar", "new.tar"):
        (tmp_path / name).symlink_to(f"disk/{name}")
    (tmp_path / "disk/there.tar").write_bytes(b"before")
    slipway.compile(DIGITS, quiet=True).save(tmp_path / "there.tar")
    for name in ("there.tar", "new.tar"):
        done = CliRunner().invoke(app, ["compile", str(DIGITS), "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "disk" / name).stat().st_size > 10_000
    (tmp_path / "far.tar").symlink_to("gone/m.tar")
    error = CliRunner().invoke(app, ["compile", str(DIGITS), "-o", str(tmp_path / "far.tar")])
    assert "there is no folder" in str(error.exception)


def test_a_link_that_leads_to_itself_is_replaced(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    write_file(tmp_path / "loop", b"x")
    assert (tmp_path / "loop").read_bytes() == b"x"


def test_a_pipe_gets_what_is_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file(tmp_path / "pipe", b"whole")
    reader.join(20)
    assert got == [b"whole"]


def test_a_project_in_a_folder_whose_name_is_no_text(tmp_path):
    from slipway.micro.board import find_board
    from slipway.micro.board_tools import missing_for

    if package := missing_for(find_board("mps2-an386")):
        pytest.skip(f"apt-get install {package}")
    folder = os.fsencode(tmp_path) + b"/" + LATIN
    Path(os.fsdecode(folder)).mkdir()
    for words in (["create", DIGITS, "p", "--board", "mps2-an386"], ["build", "p"]):
        done = subprocess.run(
            [sys.executable, "-m", "slipway", "micro", *map(str, words)], cwd=folder,
            capture_output=True, check=False,
            env={**os.environ, "PYTHONPATH": str(SOURCES.parent)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert Path(os.fsdecode(folder), "p/build/firmware.elf").is_file()


def test_a_bundle_names_what_is_no_text(tmp_path):
    name = os.fsdecode(LATIN) + ".onnx"
    (tmp_path / name).write_bytes(DIGITS.read_bytes()[:100])
    done = subprocess.run(
        [sys.executable, "-m", "slipway", "bundle", "-o", "b.zip", "--", "check", name],
        cwd=tmp_path, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCES.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert rb"caf\udce9.onnx" in archive.read("command.txt")


def test_words_of_tools_are_read_whatever_bytes_they_are():
    """A compiler repeats names of files, which are bytes."""
    faults = []
    for path in SOURCES.rglob("*.py"):
        text = path.read_text()
        if "text=True" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                named = {keyword.arg for keyword in node.keywords}
                if "text" in named and "errors" not in named and "check" in named:
                    faults.append(f"{path.relative_to(SOURCES)}:{node.lineno}")
    assert not faults
