"""Functions that differ by target, and what CUDA devices of a version can do."""

import pytest

import slipway as tvm
from slipway.contrib import nvcc
from slipway.errors import ArgumentValueError, TargetError


def test_the_first_key_of_the_target_decides():
    @tvm.target.generic_func
    def tile(n):
        return n

    @tile.register(["arm_cpu", "micro"])
    def _tile(n):
        return 4 * n

    tile.register("cpu", lambda n: 8 * n)
    assert tile(2) == 2
    with tvm.target.Target("llvm"):
        assert tile(2) == 16
    with tvm.target.Target("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu"):
        assert tile(2) == 8
    with pytest.raises(ArgumentValueError, match="'cpu' already"):
        tile.register("cpu", lambda n: n)
    tile.register("cpu", lambda n: -n, override=True)
    with tvm.target.Target("llvm"):
        assert tile(2) == -2


def test_a_function_by_name():
    generic = tvm.target.get_native_generic_func("tests.generic")
    with pytest.raises(TargetError, match="has no default"):
        generic()

    @tvm.target.override_native_generic_func("tests.generic")
    def default():
        return "any"

    assert (default(), generic()) == ("any", "any")


@pytest.mark.parametrize(
    ("version", "fp16", "int8", "matrix", "bf16"),
    [("5.2", 0, 0, 0, 0), ("5.3", 1, 0, 0, 0), ("6.0", 1, 0, 0, 0), ("6.1", 0, 1, 0, 0),
     ("6.2", 1, 1, 0, 0), ("7.0", 1, 1, 1, 0), ("8.6", 1, 1, 1, 1)],
)  # fmt: skip
def test_versions_of_cuda_devices(version, fp16, int8, matrix, bf16):
    have = (nvcc.have_fp16, nvcc.have_int8, nvcc.have_tensorcore, nvcc.have_bf16)
    assert [f(version) for f in have] == [bool(v) for v in (fp16, int8, matrix, bf16)]


def test_the_version_comes_from_the_target():
    assert nvcc.get_target_compute_version(tvm.target.Target("cuda -arch=sm_75")) == "7.5"
    assert not nvcc.have_tensorcore(target=tvm.target.Target("cuda"))
    with pytest.raises(TargetError, match="give the target an architecture"):
        nvcc.get_target_compute_version()
    with pytest.raises(TargetError, match="not of the form"):
        nvcc.parse_compute_version("seven")
