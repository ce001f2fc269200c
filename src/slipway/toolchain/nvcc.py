"""CUDA C compiled by the nvcc of a CUDA toolkit (classic ``contrib.nvcc.compile_cuda``).

Kernels of models need none: the driver assembles PTX that is made here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import ArgumentValueError, ToolchainError
from slipway.target import Target
from slipway.target.cuda_versions import find_cuda_path
from slipway.toolchain.tempdir import scratch

_FORMATS = ("ptx", "cubin", "fatbin")


def compile_cuda(
    code: str,
    target_format: str = "ptx",
    arch: str | Sequence[str] | None = None,
    options: str | Sequence[str] | None = None,
    path_target: str | Path | None = None,
) -> bytearray:
    """Return what nvcc makes of CUDA C: "ptx", "cubin" or "fatbin".

    `arch` is "sm_75", or nvcc's options for several (``["-gencode", ...]``); without it that of the
    target in scope.  Raises ToolchainError where there is no nvcc, or with its words.
    """
    if target_format not in _FORMATS:
        raise ArgumentValueError(f"nvcc makes {', '.join(_FORMATS)}, not {target_format!r}")
    if arch is None:
        target = Target.current()
        arch = str(target.attrs.get("arch", "")) if target is not None else ""
        if not arch:
            raise ArgumentValueError(
                'compile_cuda needs an architecture: arch="sm_75", or a target in scope that has '
                "one, as Target('cuda -arch=sm_75')"
            )
    program = Path(find_cuda_path()) / "bin" / "nvcc"
    given = [options] if isinstance(options, str) else list(options or ())
    chosen = [f"-arch={arch}"] if isinstance(arch, str) else list(arch)
    with scratch() as folder:
        source = Path(folder) / "kernel.cu"
        made = Path(path_target or Path(folder) / f"kernel.{target_format}")
        source.write_text(code, encoding="utf-8")
        command = [str(program), f"--{target_format}", "-O3", *chosen, *given, "-o", str(made),
                   str(source)]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            raise ToolchainError(f"nvcc cannot be run: {error}") from error
        if done.returncode or not made.exists():
            raise ToolchainError(f"nvcc failed: {(done.stderr or done.stdout).strip()}")
        return bytearray(made.read_bytes())
