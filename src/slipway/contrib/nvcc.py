"""What a CUDA device of some version can do, under classic names (a facade)."""

from slipway.target.cuda_versions import (
    find_cuda_path,
    get_target_compute_version,
    have_bf16,
    have_cudagraph,
    have_fp16,
    have_int8,
    have_tensorcore,
    parse_compute_version,
)
from slipway.toolchain.nvcc import compile_cuda

__all__ = [
    "compile_cuda",
    "find_cuda_path",
    "get_target_compute_version",
    "have_bf16",
    "have_cudagraph",
    "have_fp16",
    "have_int8",
    "have_tensorcore",
    "parse_compute_version",
]
