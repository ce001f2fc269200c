"""How many threads of a target's devices hand each other values without memory."""

from __future__ import annotations

import re

from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

# Of VkSubgroupFeatureFlagBits, as the target's supported_subgroup_operations has them.
SUBGROUP_SHUFFLE = 0x10
# Threads of a wavefront as LLVM compiles for AMD's GPUs, of RDNA and of others.
_RDNA, _WAVE, _NARROW_WAVE = re.compile(r"gfx1\d\d\d"), 64, 32
_CUDA_WARP = 32
_METAL_MOST = 32


def exchanging_threads(target: Target | None) -> int:
    """Return how many threads, those of a warp, exchange values by shuffles; 1: none do.

    OpenCL and WebGPU let nobody say, in every driver, how many threads a sub-group has, nor which
    they are: a kernel that took one number for granted would be wrong on another device.
    """
    if target is None:
        return 1
    size = int(target.attrs.get("thread_warp_size") or 1)
    match target.kind.name:
        case "cuda" | "nvptx":
            size = min(size, _CUDA_WARP)
        case "rocm":
            mcpu = str(target.attrs.get("mcpu") or "")
            size = min(size, _NARROW_WAVE if _RDNA.match(mcpu) else _WAVE)
        case "metal":
            size = min(size, _METAL_MOST)
        case "vulkan":
            operations = int(target.attrs.get("supported_subgroup_operations") or 0)
            size = size if operations & SUBGROUP_SHUFFLE else 1
        case _:
            size = 1
    return size if size > 1 and size & (size - 1) == 0 else 1


def is_processor(target: Target) -> bool:
    """Return whether a driver computes on the processor, by what the target says of it."""
    is_cpu = target.attrs.get("device_type") == "cpu"
    return is_cpu and target.kind.name in ("opencl", "vulkan", "webgpu")


def runs_in_lanes(target: Target) -> bool:
    """Return whether a device is a processor that runs a thread in each lane of its vectors."""
    return is_processor(target) and target.kind.name != "opencl"


def runs_in_turns(target: Target) -> bool:
    """Return whether it is one that runs a thread after the other, each with all its vectors."""
    return is_processor(target) and target.kind.name == "opencl"


def busy_threads(target: Target) -> int:
    """Return how many threads keep a device busy."""
    return ANY_GPU.processor_threads if is_processor(target) else ANY_GPU.busy_threads


def runs_in_step(target: Target) -> bool:
    """Return whether the target says that threads run in step, so that it has shared memory."""
    return int(target.attrs.get("thread_warp_size") or 1) > 1
