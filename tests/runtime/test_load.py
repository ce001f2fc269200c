"""Files that cannot be loaded: each says what is wrong and what to do, and runs nothing."""

import importlib.util
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from slipway import cpu, device, relay
from slipway.contrib import graph_executor
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
    assert not enabled("webgpu")
    assert not enabled("nonsense")


@pytest.mark.parametrize(
    ("name", "kind"), [("cl", "opencl"), ("opencl -device=mali", "opencl"), ("gpu", "cuda"),
                       ("vulkan", "vulkan"), ("metal", "metal"), ("hexagon", "hexagon")]
)  # fmt: skip
def test_a_kind_of_device_is_enabled_where_one_is(name, kind):
    assert enabled(name) == device(kind, 0).exist


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


WEIGHTS = 8 << 20  # bytes
LOADED = """
import sys
import slipway
from slipway.contrib import graph_executor

def peak():
    lines = open("/proc/self/status")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10

def load(path):
    graph_executor.GraphModule(slipway.runtime.load_module(path)["default"](slipway.cpu(0)))

small, large = sys.argv[1:]
load(small)  # with all that is imported for it
before = peak()
load(large)
print(peak() - before)
"""


@pytest.fixture(scope="module")
def large_model(tmp_path_factory):
    """Return an exported model of large weights and the weights."""
    weights = [np.random.default_rng(i).random((1024, 1024), "float32") for i in (0, 1)]
    x = relay.var("x", shape=(1, 1024))
    y = relay.nn.dense(relay.nn.dense(x, relay.const(weights[0])), relay.const(weights[1]))
    path = tmp_path_factory.mktemp("large") / "model.tar"
    relay.build(relay.Function([x], y), target="llvm").export_library(path)
    return path, weights


def test_weights_lie_in_memory_once_while_they_are_loaded(tmp_path, large_model):
    x = relay.var("x", shape=(4,))
    relay.build(relay.Function([x], x + x), target="llvm").export_library(tmp_path / "small.tar")
    command = [sys.executable, "-c", LOADED, tmp_path / "small.tar", large_model[0]]
    peaks = []  # the system's large pages add some MB now and then
    while len(peaks) < 5 and min(peaks, default=2 * WEIGHTS) >= 1.8 * WEIGHTS:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert WEIGHTS <= min(peaks) < 1.8 * WEIGHTS


def test_a_file_may_change_when_it_is_loaded(tmp_path, large_model):
    path, weights = tmp_path / "model.tar", large_model[1]
    content = large_model[0].read_bytes()
    path.write_bytes(content)
    loaded = load_module(path)
    with path.open("r+b") as file:  # the file itself, not another of its name
        file.truncate(0)
        file.write(bytes(len(content)))
    module = graph_executor.GraphModule(loaded["default"](cpu(0)))
    x = np.ones((1, 1024), "float32")
    module.run(x=x)
    wanted = x @ weights[0].T @ weights[1].T
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=1e-5)
