"""Files that cannot be loaded: each says what is wrong and what to do, and runs nothing."""

import importlib.util
import os
import struct

import pytest

from slipway.errors import ArtifactError, ExecutionError
from slipway.runtime import enabled, load_module
from slipway.runtime.artifact import read_tar
from slipway.runtime.artifact_writer import artifact_bytes, tar_bytes


@pytest.fixture
def members(kernels_library):
    return read_tar(artifact_bytes(kernels_library.read_bytes(), {"target": "llvm"}), "x.tar")


def refuse(path, content, words):
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=words):
        load_module(path)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="Write it with export_library"):
        load_module(tmp_path / "none.so")
    with pytest.raises(ArtifactError, match="is a folder"):
        load_module(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello", bytes(600)])
@pytest.mark.parametrize("suffix", ["so", "tar", "o", "a"])
def test_files_of_something_else(tmp_path, content, suffix):
    refuse(tmp_path / f"x.{suffix}", content, "again")


def test_member_is_missing(tmp_path, members):
    for name in members:
        rest = {key: value for key, value in members.items() if key != name}
        refuse(tmp_path / "x.tar", tar_bytes(rest), "incomplete")


def test_member_was_exchanged(tmp_path, members):
    members["metadata.json"] = members["metadata.json"].replace(b"llvm", b"mvll")
    refuse(tmp_path / "x.tar", tar_bytes(members), r"SHA-256 sum of its member metadata\.json")


def test_newer_format(tmp_path, kernels_library):
    content = artifact_bytes(kernels_library.read_bytes(), {"format_version": 7, "compiler": "S 9"})
    refuse(tmp_path / "x.tar", content, r"format version 7 \(written by S 9\).*reads version 1")
    content = kernels_library.read_bytes().replace(b'"format_version":1', b'"format_version":9')
    refuse(tmp_path / "x.so", content, "format version 9")


def test_library_cut_anywhere(tmp_path, kernels_library):
    content = kernels_library.read_bytes()
    for size in range(1, len(content), len(content) // 40):
        refuse(tmp_path / "x.so", content[:size], "damaged|not an ELF")


def test_library_of_thirty_two_bits(tmp_path, kernels_library):
    content = bytearray(kernels_library.read_bytes())
    content[18:20] = struct.pack("<H", 40)
    refuse(tmp_path / "x.so", content, r"compiled for arm.*this machine is")


def test_unloading_gives_the_file_back(kernels_library):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        load_module(kernels_library)["count"]()
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # noqa: PTH208


def test_enabled():
    assert enabled("rpc")
    assert enabled("llvm -mcpu=x") == (importlib.util.find_spec("llvmlite") is not None)
    assert not enabled("cuda")
    assert not enabled("nonsense")


def test_what_is_loaded_is_written_again_from_its_own_file(tmp_path, kernels_library, monkeypatch):
    (tmp_path / "there").mkdir()
    path = tmp_path / "there" / "lib.so"
    path.write_bytes(kernels_library.read_bytes())
    (tmp_path / "lib.so").write_bytes(b"another file of that name")
    monkeypatch.chdir(tmp_path)
    loaded = load_module(path)
    loaded.export_library("again.so")
    assert (tmp_path / "again.so").read_bytes() == path.read_bytes()
    path.unlink()
    with pytest.raises(ExecutionError, match=r"the file .*there/lib\.so that it was loaded from"):
        loaded.export_library("again.so")
