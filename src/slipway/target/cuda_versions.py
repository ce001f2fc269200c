"""What CUDA devices of a compute version can do, and where a toolkit lies.

Versions and features are those of NVIDIA's CUDA C++ programming guide, "Arithmetic Instructions"
and "Tensor Cores"; no code is made for them here.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from slipway.errors import TargetError, ToolchainError
from slipway.target.target import Target


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """Return ("7.5" -> (7, 5))."""
    major, _, minor = compute_version.partition(".")
    try:
        return int(major), int(minor or "0")
    except ValueError:
        raise TargetError(f"compute version {compute_version!r} is not of the form '7.5'") from None


def get_target_compute_version(target: Target | str | None = None) -> str:
    """Return "7.5" for a target with ``-arch=sm_75``, the one of the context unless given."""
    chosen = Target.current() if target is None else Target(target)
    arch = "" if chosen is None else str(chosen.attrs.get("arch", ""))
    found = re.fullmatch(r"sm_(\d+)(\d)[a-z]?", arch)
    if found is None:
        raise TargetError(
            "the compute version of a CUDA device is not known: give the target an architecture, "
            "as Target('cuda -arch=sm_75')"
        )
    return f"{found[1]}.{found[2]}"


def have_fp16(compute_version: str) -> bool:
    """Return whether float16 is computed at full rate: 5.3, 6.0, and from 6.2 on (not 6.1)."""
    version = parse_compute_version(compute_version)
    return version in ((5, 3), (6, 0)) or version >= (6, 2)


def have_int8(compute_version: str) -> bool:
    """Return whether there are products of four int8 (dp4a): from 6.1 on."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_bf16(compute_version: str) -> bool:
    """Return whether bfloat16 is computed: from 8.0 on."""
    return parse_compute_version(compute_version) >= (8, 0)


def have_tensorcore(compute_version: str | None = None, target: Target | str | None = None) -> bool:
    """Return whether there are matrix units: from 7.0 on; False where nothing says a version."""
    if compute_version is None:
        try:
            compute_version = get_target_compute_version(target)
        except TargetError:
            return False
    return parse_compute_version(compute_version) >= (7, 0)


def have_cudagraph() -> bool:
    """Return False: graphs of CUDA are not used."""
    return False


def find_cuda_path() -> str:
    """Return the folder of the CUDA toolkit: CUDA_PATH, beside nvcc, or /usr/local/cuda."""
    named = os.environ.get("CUDA_PATH")
    nvcc = shutil.which("nvcc")
    folders = [named, Path(nvcc).parent.parent if nvcc else None, "/usr/local/cuda"]
    for folder in folders:
        if folder and Path(folder).is_dir():
            return str(folder)
    raise ToolchainError(
        "there is no CUDA toolkit: CUDA_PATH is not set, and no nvcc is on the path"
    )
