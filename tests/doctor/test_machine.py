"""The examination of this machine: what is missing is told, with what installs it."""

import shutil
import subprocess

import pytest

from slipway.doctor import machine
from slipway.doctor.finding import Finding, FindingState, all_well


def named(findings):
    return {finding.name: finding for finding in findings}


@pytest.fixture(scope="module")
def here():
    return named(machine.examine_machine())


def test_the_machine_that_runs_the_tests_is_well(here):
    assert all_well(here.values()), [f for f in here.values() if f.state is FindingState.WRONG]
    assert "NumPy" in here["kernel"].text
    assert here["llvm"].text.startswith("LLVM ")
    for name in ("python", "processor", "cores", "zig", "runtime", "cache", "onnx", "opencl"):
        assert name in here


def test_whatever_is_not_in_order_says_what_to_do(here):
    for finding in here.values():
        assert bool(finding.advice) == (finding.state is not FindingState.OK), finding


def test_a_missing_compiler_is_told(monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    monkeypatch.setattr(machine.zig, "find_zig", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = named(machine._compilers())
    assert {f.state for f in found.values()} == {FindingState.ABSENT}
    assert "slipway-ml[compile]" in found["llvm"].advice


def test_a_damaged_llvm_is_wrong(monkeypatch):
    broken = subprocess.CompletedProcess([], -11, "", "OSError: libLLVM.so: bad ELF")
    monkeypatch.setattr(machine, "_try", lambda command: broken)
    first = next(machine._compilers())
    assert (first.name, first.state) == ("llvm", FindingState.WRONG)
    assert "bad ELF" in first.text


def test_a_full_disk_is_wrong(monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    found = machine._disk("temporary files", tmp_path, "TMPDIR")
    assert found.state is FindingState.WRONG
    assert "TMPDIR" in found.advice


def test_a_cache_that_cannot_be_written_is_wrong(monkeypatch, tmp_path):
    folder = tmp_path / "slipway-cache-x"
    monkeypatch.setattr(machine.runtime_library, "cache_dir", lambda: folder)
    assert machine._cache().state is FindingState.WRONG


def test_an_old_python_is_wrong(monkeypatch):
    monkeypatch.setattr(machine, "OLDEST", (99, 0))
    assert machine._python() == Finding(
        "python", FindingState.WRONG, machine._python().text, "Slipway needs Python 99.0 or newer"
    )


def test_a_program_that_hangs_is_wrong(monkeypatch):
    monkeypatch.setattr(machine, "TRY_TIMEOUT_S", 0.1)
    with pytest.raises(OSError, match=r"no answer in 0\.1 s"):
        machine._first_line(["sleep", "60"])
