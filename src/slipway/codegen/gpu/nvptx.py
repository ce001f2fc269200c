"""Kernels for NVIDIA's GPUs: PTX, by LLVM."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from slipway.codegen.gpu.kernel import DeviceKernel
from slipway.codegen.gpu.llvm_kernels import GpuMachine, kernels_ir
from slipway.codegen.llvm.machine import assembly_of
from slipway.errors import CodegenError
from slipway.ir import stmt as S
from slipway.target import Target
from slipway.target.capability import Capability, capability_of

_HALVES = 53  # the first sm_ that computes in float16
_BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
_NUMBERS = "llvm.nvvm.read.ptx.sreg."
DOTS_FROM = 61  # the first sm_ with dp4a
_DOTS = {
    f"dot4_{a}{b}": f"call i32 @llvm.nvvm.idp4a.{a}.{b}(i32 {{a}}, i32 {{b}}, i32 {{c}})"
    for a in "su" for b in "su"
}  # fmt: skip

# What GPUs before sm_70 do, but LLVM says it in later versions of PTX only.
# By words of the IR: the first sm_ that LLVM says it of by itself, and the version.
_FEATURES = {
    "activemask": (70, "+ptx62"),
    "shfl.sync": (70, "+ptx60"),
    "nvvm.mma.m": (80, "+ptx65"),
}
_LAST_LANE = 31


def _shuffle(
    op: str, mask: str, word: str, position: str, width: int,
    put: Callable[[str], str], declare: Callable[[str], None],
) -> str:  # fmt: skip
    """Emit ``shfl.sync``: the segment's mask, and the last lane that counts, are one number."""
    kind = {"warp_shuffle": "idx", "warp_shuffle_up": "up", "warp_shuffle_down": "down"}[op]
    name = f"llvm.nvvm.shfl.sync.{kind}.i32"
    declare(f"declare i32 @{name}(i32, i32, i32, i32)")
    segment = (_LAST_LANE + 1 - width) << 8 | (0 if kind == "up" else _LAST_LANE)
    return put(f"call i32 @{name}(i32 {mask}, i32 {word}, i32 {position}, i32 {segment})")


NVIDIA = GpuMachine(
    convention="ptx_kernel",
    numbers={"blockIdx": f"{_NUMBERS}ctaid", "threadIdx": f"{_NUMBERS}tid"},
    barrier=(f"call void @{_BARRIER}(i32 0)",),
    declared=(f"declare void @{_BARRIER}(i32)",),
    threads='"nvvm.maxntid"="{threads},1,1"',
    whole=16,
    one_block='"nvvm.minctasm"="1"',
    shuffle=_shuffle,
    active="llvm.nvvm.activemask",
    copies={
        "async_copy": "call void @llvm.nvvm.cp.async.{cache}.shared.global.{bytes}"
        "(ptr addrspace(3) {to}, ptr addrspace(1) {from_})",
        "async_commit": "call void @llvm.nvvm.cp.async.commit.group()",
        "async_wait": "call void @llvm.nvvm.cp.async.wait.group(i32 {groups})",
    },
)


def ptx_target(target: Target) -> Target:
    """Return the target of LLVM's code generator for a GPU's target."""
    arch = str(target.attrs.get("arch") or target.attrs.get("mcpu") or "sm_50")
    return Target(f"llvm -mtriple=nvptx64-nvidia-cuda -mcpu={arch}")


def ptx_text(ir: str, target: Target) -> str:
    """Return `nvptx_ir` as PTX, which the driver compiles for the device.

    Raises CodegenError for an architecture that LLVM does not know.
    """
    machine = ptx_target(target)
    version = version_of(target)
    needed = [
        feature for word, (first, feature) in _FEATURES.items() if word in ir and version < first
    ]
    if needed:
        machine = Target(f"{machine} -mattr={max(needed)}")
    return assembly_of(ir, machine, "the kernels of a GPU")


def nvptx_ir(kernels: Iterable[tuple[DeviceKernel, S.For]], target: Target) -> str:
    """Return LLVM IR of kernels, whose names, parameters and axes are those of their texts.

    Raises CodegenError for what a kernel cannot do.
    """
    version = version_of(target)
    machine = replace(NVIDIA, version=version, dots=_DOTS if version >= DOTS_FROM else {})
    return kernels_ir(kernels, machine, target, _capability(target))


def version_of(target: Target) -> int:
    """Return 80 of a CUDA target with ``-arch=sm_80``."""
    found = re.fullmatch(r"sm_(\d+)[a-z]?", str(target.attrs.get("arch", "")))
    return int(found[1]) if found is not None else 0


def _capability(target: Target) -> Capability:
    has = {"rounding": True, "rounding64": True, "fma": True, "fma64": True}
    found, half = capability_of(target), "soft"
    if version_of(target) >= _HALVES:
        half = "native" if found.half == "native" else "convert"
    elif found.half == "native":
        raise CodegenError(
            f"{target} has no arithmetic in float16: it came with sm_{_HALVES}. Leave "
            "-supports_float16 out, and float16 is stored in 16 bits and computed in float32"
        )
    return replace(found, **has, half=half, in_c=False, shuffles=True)  # type: ignore[arg-type]
