"""What this installation can do, asked by classic names."""

from __future__ import annotations

import importlib.util
import os
import shutil

from slipway.runtime.devices import Device, device, is_accelerator

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

GPUS = ("cuda", "rocm", "opencl", "vulkan", "metal")


def enabled(target: str) -> bool:
    """Return whether code for a kind of target, or a part of Slipway, can be used here.

    Names: "llvm", "c", "cpu", "rpc", "cuda", "opencl", "metal", "vulkan", "micro", ...
    A kind of device other than the CPU can be where this process finds the first of that kind.
    """
    name = target.split()[0] if target.split() else target
    needed = _NEEDS.get(name)
    if needed is None and is_accelerator(name):
        return device(name, 0).exist
    if needed is None:
        return name == "micro" and shutil.which("arm-none-eabi-gcc") is not None
    return all(_is_installed(package) for package in needed)


def tested_targets() -> list[str]:
    """Return the targets that $TVM_TEST_TARGETS names, divided by ";", or else all of them."""
    named = [one.strip() for one in os.environ.get("TVM_TEST_TARGETS", "").split(";")]
    return list(dict.fromkeys(one for one in named if one)) or ["llvm", *GPUS]


def enabled_targets() -> list[tuple[str, Device]]:
    """Return (target, device) of what can run in this process.

    They are the processor and each kind of GPU that is here, or those of them that
    $TVM_TEST_TARGETS names: "llvm;opencl -device=mali", say.
    """
    return [(name, device(name.split()[0], 0)) for name in tested_targets() if enabled(name)]


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False
