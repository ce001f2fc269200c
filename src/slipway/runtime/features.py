"""What this installation can do, asked by classic names."""

from __future__ import annotations

import importlib.util
import shutil

# Name -> packages that it needs; () is always there.
_NEEDS: dict[str, tuple[str, ...]] = {
    "cpu": (),
    "rpc": (),
    "c": (),
    "graph_executor": (),
    "llvm": ("llvmlite",),
    "ziglang": ("ziglang",),
    "onnx": ("onnx",),
    "tflite": ("ml_dtypes",),
}


def enabled(target: str) -> bool:
    """Return whether code for a kind of target, or a part of Slipway, can be used here.

    Names: "llvm", "c", "cpu", "rpc", "cuda", "opencl", "metal", "vulkan", "micro", ...
    Devices other than the CPU are reported as absent: this process cannot run code on them.
    """
    name = target.split()[0] if target.split() else target
    needed = _NEEDS.get(name)
    if needed is None:
        return name == "micro" and shutil.which("arm-none-eabi-gcc") is not None
    return all(_is_installed(package) for package in needed)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False
