"""Marks and the pytest plugin of classic tests, in a pytest of their own."""

import subprocess
import sys

import slipway
from slipway import testing
from slipway.testing import marks

TESTS = """
import itertools
from slipway import testing

size = testing.parameter(2, 3)
left, right = testing.parameters((1, 10), (2, 20))
calls = []


@testing.fixture(cache_return_value=True)
def table(size):
    calls.append(size)
    return [0] * size


def test_sizes(size, table):
    assert table == [0] * size
    table.append(1)  # a copy: the next test gets a clean one


def test_once(size, table):
    assert table == [0] * size and calls.count(size) == 1


def test_together(left, right):
    assert right == 10 * left


class TestClass:
    size = testing.parameter(5, 6)
    low, high = testing.parameters((1, 2), (3, 4))

    def test_own(self, size, low, high):
        assert size in (5, 6) and high == low + 1


def test_target(target, dev):
    assert (target, dev.type_name if hasattr(dev, "type_name") else "cpu") == ("llvm", "cpu")


@testing.parametrize_targets("llvm", "cuda")
def test_target_alone(target):
    assert target == "llvm"


@testing.uses_gpu
def test_without_a_gpu():
    pass


@testing.requires_nvcc_version(11)
def test_skipped():
    raise AssertionError
"""


def test_parameters_fixtures_and_targets(tmp_path, repository):
    (tmp_path / "test_it.py").write_text(TESTS)
    options = ["-p", "slipway.testing.plugin", "-p", "no:cacheprovider", "-q", "-rs"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", "/dev/null", str(tmp_path)],
        cwd=tmp_path, env={"PYTHONPATH": str(repository / "src"), "PATH": "/usr/bin:/bin",
                           "TVM_TEST_TARGETS": "llvm"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    # Sizes 2 + 2, pairs 2, in the class 2 x 2, targets 1 + 1 (and cuda left out), the gpu's 1.
    assert "13 passed, 2 skipped" in done.stdout, done.stdout + done.stderr


def names():
    return [name for name, _ in testing.enabled_targets()]


def test_targets_are_those_whose_device_is_here(monkeypatch):
    monkeypatch.delenv("TVM_TEST_TARGETS", raising=False)
    kinds = ("cuda", "rocm", "opencl", "vulkan", "metal")
    here = [kind for kind in kinds if slipway.device(kind, 0).exist]
    assert names() == ["llvm", *here]
    assert [testing.device_enabled(f"{kind} -device=any") for kind in kinds] == [
        kind in here for kind in kinds
    ]
    assert testing.requires_gpu.is_there() == bool(here)
    assert testing.requires_opencl.is_there() == ("opencl" in here)


def test_targets_of_the_environment_restrict_them(monkeypatch):
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm -mcpu=znver4; webgpu ;;llvm -mcpu=znver4")
    assert testing.enabled_targets() == [("llvm -mcpu=znver4", slipway.cpu(0))]
    assert testing.device_enabled(slipway.target.Target("llvm"))
    assert not testing.device_enabled("opencl")
    assert not testing.device_enabled("webgpu")  # named, and nothing runs it


def test_a_version_of_cuda_is_what_the_device_says(monkeypatch):
    class Device:
        compute_version = "7.5"

    wanted = testing.requires_cuda_compute_version
    monkeypatch.setattr(marks, "enabled", lambda name: False)
    assert not wanted(3).is_there()
    monkeypatch.setattr(marks, "enabled", lambda name: True)
    monkeypatch.setattr(marks, "device", lambda name, number: Device)
    assert wanted(7, 5).is_there()
    assert wanted(7).is_there()
    assert not wanted(8).is_there()
    assert not wanted(7, 6).is_there()
