"""A full disk: the message names the file, and the folders that have no space left."""

import errno
import os
import shutil
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

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
