"""A full disk: the message names the file, and the folders that have no space left."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slipway.cli.app import app
from slipway.cli.exit_codes import FILE
from slipway.cli.main import describe
from slipway.toolchain.link import write_file

Usage = namedtuple("Usage", "total used free")
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def disks(tmp_path, monkeypatch):
    """Return the names of those folders (temporary, cache, work) that are full."""
    full = set()
    for name in ("temporary", "cache", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path / "work")

    def usage(path):
        return Usage(1 << 30, 0, 0 if Path(path).name in full else 1 << 30)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    return full


def test_the_folder_without_space_is_named(disks):
    disks.add("temporary")
    words = describe(FULL)
    assert words.startswith("No space left on device. Full is ")
    assert "temporary (TMPDIR)" in words
    assert "SLIPWAY_CACHE" not in words


def test_every_folder_without_space_is_named(disks):
    disks.update(("cache", "work"))
    words = describe(FULL)
    assert "cache (SLIPWAY_CACHE)" in words
    assert "work (the current folder)" in words


def test_nothing_is_said_of_folders_with_space(disks):
    assert describe(FULL) == "No space left on device"


def test_other_errors_look_at_no_folder(disks):
    disks.add("cache")
    assert (
        describe(PermissionError(errno.EACCES, "Permission denied", "f")) == "f: Permission denied"
    )


def test_an_output_that_finds_no_space_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    def no_space(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left") as raised:
        write_file(tmp_path / "model.tar", b"content")
    assert raised.value.filename == str(tmp_path / "model.tar")
    assert not list(tmp_path.iterdir())


def test_an_output_in_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_file(tmp_path / "nowhere" / "model.tar", b"content")


DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("run model.tar --outputs before", "before"),
        ("run model.tar --dump-tensors layers", "layers/000_"),
        ("compare model.tar model.tar -o before", "before"),
        ("profile model.tar --no-limits --trace before", "before"),
        ("compile {DIGITS} -o other.tar --dump-code relay", "other.tar"),
        ("runtime --amalgamation .", "slipway.h"),
    ],
)
def test_what_is_written_is_whole_or_as_it_was(tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["compile", str(DIGITS), "-o", "model.tar"], catch_exceptions=False)
    (tmp_path / "before").write_bytes(b"of the day before")

    def full(_handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as found:
        arguments = command.format(DIGITS=DIGITS).split()
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert name in describe(found.value)
    assert (tmp_path / "before").read_bytes() == b"of the day before"
    left = {file.name for file in tmp_path.rglob("*") if file.is_file()}
    assert left == {"model.tar", "before"}


def test_a_project_is_whole_or_not_there(tmp_path):
    from slipway.toolchain.tempdir import made_whole

    old = tmp_path / "old"
    (old / "kept").mkdir(parents=True)
    for folder, left in ((old / "kept", []), (tmp_path / "new" / "er", None), (old, ["kept"])):
        with pytest.raises(OSError, match="full"), made_whole(folder):
            (folder / "src").mkdir()
            (folder / "src" / "half").write_text("of it")
            raise OSError("full")
        shutil.rmtree(old / "src", ignore_errors=True)  # not its own folder: it is left to others
        found = [entry.name for entry in folder.iterdir()] if folder.exists() else None
        assert found == left
    assert not (tmp_path / "new").exists()


def test_compiled_python_that_was_cut_short_is_told(tmp_path):
    """Python leaves such a file where the disk is full, and reads it in every later run."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run_once():
        command = [sys.executable, "-m", "slipway", "run", "--help"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)

    assert run_once().returncode == 0
    for compiled in tmp_path.rglob("cli/run.*.pyc"):
        compiled.write_bytes(compiled.read_bytes()[:500])
    done = run_once()
    assert done.returncode == FILE
    assert "is cut short" in done.stderr
    assert "-delete" in done.stderr
