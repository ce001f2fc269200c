"""SPIR-V through `spirv-opt`, Khronos' optimiser."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from slipway.errors import ToolchainError
from slipway.toolchain.tempdir import scratch


def optimize(spv_bin: bytes | bytearray) -> bytearray:
    """Return what `spirv-opt -O` makes of a module; it is looked for in VULKAN_SDK first."""
    sdk = os.environ.get("VULKAN_SDK")
    program = shutil.which("spirv-opt", path=str(Path(sdk, "bin"))) if sdk else None
    program = program or shutil.which("spirv-opt")
    if program is None:
        raise ToolchainError(
            "there is no program `spirv-opt`: install SPIRV-Tools (apt-get install spirv-tools), "
            "or set VULKAN_SDK to where it is."
        )
    with scratch() as folder:
        source, target = Path(folder, "input.spv"), Path(folder, "output.spv")
        source.write_bytes(bytes(spv_bin))
        command = [program, "-O", str(source), "-o", str(target)]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            raise ToolchainError(f"spirv-opt refuses the module: {done.stderr.strip()}")
        return bytearray(target.read_bytes())
