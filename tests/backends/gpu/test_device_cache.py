"""Kernels that drivers of OpenCL and Vulkan compiled, kept in files for the next process."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from watched import run_watched, watched_driver

SCRIPT = """
import numpy as np
import run_kernels, test_kernels
import slipway as tvm
device = tvm.device(KIND, 0)
function = run_kernels.built(*test_kernels.vector_add(100), run_kernels.Target(KIND, host='llvm'))
x, y = run_kernels.random(100), run_kernels.random(100, seed=1)
found = run_kernels.run(function, device, [x, y], (100,))
np.testing.assert_array_equal(found, x + y)
print("right")
"""


def run(folder, kind="opencl"):
    """Run a kernel in a process of its own; return the files that are kept then."""
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *sys.path])
    env = {**os.environ, "SLIPWAY_DEVICE_CACHE": str(folder), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", f"KIND = {kind!r}\n{SCRIPT}"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture(params=["opencl", "vulkan"])
def kind(request):
    """A kind of device that this machine has."""
    request.getfixturevalue("device" if request.param == "opencl" else request.param)
    return request.param


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A function from a kind of device to the file that a process left, which was run once."""
    made = {}

    def find(kind):
        if kind not in made:
            (made[kind],) = run(tmp_path_factory.mktemp("first") / "kept", kind)
        return made[kind]

    return find


@pytest.fixture
def kept(kind, first, tmp_path):
    """The test's own copy of the file that a process left, with its times and permissions."""
    return Path(shutil.copytree(first(kind).parent, tmp_path / "kept")) / first(kind).name


def test_a_second_process_reads_what_the_first_kept(kept, kind):
    before = kept.stat()
    assert kept.suffix == ".bin"
    assert before.st_mode & 0o777 == 0o600
    assert run(kept.parent, kind) == [kept]
    assert kept.stat().st_mtime_ns == before.st_mtime_ns  # it was not written again


def is_whole(kept):
    """Return whether a file begins with the digest of what follows."""
    return len(kept) > 32 and hashlib.sha256(kept[32:]).digest() == kept[:32]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "text"])
def test_a_damaged_file_is_ignored_and_written_again(kept, kind, damage):
    whole = kept.read_bytes()
    assert is_whole(whole)
    at = len(whole) // 2
    kept.write_bytes({
        "cut": whole[:at], "changed": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
        "empty": b"", "text": b"no program at all, but longer than a digest " * 4,
    }[damage])  # fmt: skip
    assert not is_whole(kept.read_bytes())
    assert run(kept.parent, kind) == [kept]
    # Of another size where PoCL has kept kernels of this program for other numbers of threads.
    assert is_whole(kept.read_bytes())
    before = kept.stat().st_mtime_ns
    run(kept.parent, kind)
    assert kept.stat().st_mtime_ns == before


def test_a_file_that_others_can_write_is_not_read(kept, kind):
    before = kept.stat().st_mtime_ns
    kept.chmod(0o666)
    assert run(kept.parent, kind) == [kept]
    assert kept.stat().st_mtime_ns != before
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_made_is_no_error(device, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    assert run(tmp_path / "file" / "below") == []


def test_nothing_is_kept_without_a_folder(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = {k: v for k, v in os.environ.items() if k != "SLIPWAY_DEVICE_CACHE"}
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    subprocess.run(
        [sys.executable, "-c", f"KIND = 'opencl'\n{SCRIPT}"],
        env={**env, "PYTHONPATH": path},
        check=True,
    )
    assert not list(tmp_path.iterdir())


def test_a_driver_is_asked_for_what_it_made_only_where_that_is_kept(kind, tmp_path, monkeypatch):
    """PoCL compiles every kernel once more for it, for any number of threads."""
    monkeypatch.delenv("SLIPWAY_DEVICE_CACHE", raising=False)
    environment = watched_driver(kind, tmp_path)
    name = {"opencl": "GetProgramInfo", "vulkan": "GetPipelineCacheData"}[kind]
    body = f"""
    x, out = (tvm.nd.array(np.ones(128, "float32"), device) for _ in range(2))
    built(3.0)(x, out)
    assert out.numpy()[0] == 3
    print(calls({name!r}))
    """
    assert run_watched(kind, environment, body).split() == ["0"]
    kept = {**environment, "SLIPWAY_DEVICE_CACHE": str(tmp_path / "kept")}
    assert run_watched(kind, kept, body).split() == ["2"]
