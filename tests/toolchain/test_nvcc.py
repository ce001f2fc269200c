"""CUDA C through the nvcc of a toolkit: a script in its place notes what it was asked for."""

import pytest

import slipway as tvm
from slipway.contrib import nvcc
from slipway.errors import ArgumentValueError, ToolchainError

NVCC = """#!/bin/sh
for last; do source=$last; done
grep -q BROKEN "$source" && { echo "error: BROKEN is undefined" >&2; exit 2; }
while [ "$1" != "-o" ]; do all="$all $1"; shift; done
{ echo "$all"; cat "$source"; } > "$2"
"""


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nvcc"
    program.write_text(NVCC)
    program.chmod(0o755)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    return tmp_path


def test_the_architecture_is_given_or_that_of_the_target(toolkit):
    made = nvcc.compile_cuda("__global__ void k() {}", arch="sm_80", options="-lineinfo")
    assert made == bytearray(b" --ptx -O3 -arch=sm_80 -lineinfo\n__global__ void k() {}")
    with tvm.target.Target("cuda -arch=sm_75"):
        cubin = nvcc.compile_cuda("k", target_format="cubin", path_target=toolkit / "k.cubin")
    assert cubin.startswith(b" --cubin -O3 -arch=sm_75\n")
    assert (toolkit / "k.cubin").read_bytes() == cubin
    several = ["-gencode", "arch=compute_70,code=sm_70"]
    assert b" -gencode arch=compute_70,code=sm_70\n" in nvcc.compile_cuda("k", arch=several)


def test_what_is_lacking_is_said(toolkit):
    with pytest.raises(ToolchainError, match="nvcc failed: error: BROKEN is undefined"):
        nvcc.compile_cuda("BROKEN", arch="sm_80")
    with pytest.raises(ArgumentValueError, match="needs an architecture"):
        nvcc.compile_cuda("k")
    with pytest.raises(ArgumentValueError, match="not 'elf'"):
        nvcc.compile_cuda("k", target_format="elf", arch="sm_80")
    (toolkit / "bin" / "nvcc").unlink()
    with pytest.raises(ToolchainError, match="nvcc cannot be run"):
        nvcc.compile_cuda("k", arch="sm_80")
