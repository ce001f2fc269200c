"""How many threads of a target's devices hand each other values without memory."""

from __future__ import annotations

import re

from slipway.target import Target

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


def runs_in_lanes(target: Target) -> bool:
    """Return whether a device is a processor that runs a thread in each lane of its vectors."""
    is_processor = target.attrs.get("device_type") == "cpu"
    return is_processor and target.kind.name in ("vulkan", "webgpu")


def runs_in_step(target: Target) -> bool:
    """Return whether the target says that threads run in step, so that it has shared memory."""
    return int(target.attrs.get("thread_warp_size") or 1) > 1
