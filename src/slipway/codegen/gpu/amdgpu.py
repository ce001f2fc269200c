"""Kernels for AMD's GPUs: a code object (``.hsaco``), by LLVM and its linker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from slipway.codegen.gpu.kernel import DeviceKernel
from slipway.codegen.gpu.llvm_kernels import GpuMachine, kernels_ir
from slipway.codegen.llvm.machine import CompiledText
from slipway.ir import stmt as S
from slipway.target import Target
from slipway.target.capability import Capability, capability_of
from slipway.toolchain.tempdir import scratch
from slipway.toolchain.zig import run_zig

_FENCE = 'fence syncscope("workgroup")'
_OBJECT = 500  # the version of the object's format: 5, which drivers of ROCm take from 5.7 on

_BYTES = 4  # of a lane's word, by whose bytes the instruction counts


def _shuffle(
    op: str, mask: str, word: str, position: str, width: int,
    put: Callable[[str], str], declare: Callable[[str], None],
) -> str:  # fmt: skip
    """Emit ``ds_bpermute_b32``, which reads the word of any lane of the wave."""
    declare("declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)")
    declare("declare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)")
    declare("declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)")
    low = put("call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)")
    lane = put(f"call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 {low})")
    inside = put(f"and i32 {lane}, {width - 1}")
    if op == "warp_shuffle":
        wanted = put(f"and i32 {position}, {width - 1}")
    else:
        wanted = put(f"{'add' if op == 'warp_shuffle_down' else 'sub'} i32 {inside}, {position}")
        is_there = put(f"icmp ult i32 {wanted}, {width}")
        wanted = put(f"select i1 {is_there}, i32 {wanted}, i32 {inside}")
    first = put(f"sub i32 {lane}, {inside}")
    at = put(f"mul i32 {put(f'add i32 {first}, {wanted}')}, {_BYTES}")
    return put(f"call i32 @llvm.amdgcn.ds.bpermute(i32 {at}, i32 {word})")


AMD = GpuMachine(
    convention="amdgpu_kernel",
    numbers={"blockIdx": "llvm.amdgcn.workgroup.id", "threadIdx": "llvm.amdgcn.workitem.id"},
    barrier=(f"{_FENCE} release", "call void @llvm.amdgcn.s.barrier()", f"{_FENCE} acquire"),
    declared=("declare void @llvm.amdgcn.s.barrier()",),
    threads='"amdgpu-flat-work-group-size"="{threads},{threads}"',
    private=5,
    shuffle=_shuffle,
    lines=(
        "!llvm.module.flags = !{!1000000}",
        f'!1000000 = !{{i32 1, !"amdhsa_code_object_version", i32 {_OBJECT}}}',
    ),
)


def amd_target(target: Target) -> Target:
    """Return the target of LLVM's code generator for a GPU's target."""
    return Target(f"llvm -mtriple=amdgcn-amd-amdhsa -mcpu={target.attrs.get('mcpu') or 'gfx900'}")


def amd_ir(kernels: Iterable[tuple[DeviceKernel, S.For]], target: Target) -> str:
    """Return LLVM IR of kernels, whose names, parameters and axes are those of their texts.

    Raises CodegenError for what a kernel cannot do.
    """
    machine = replace(AMD, dots=dots_of(target))
    return kernels_ir(kernels, machine, target, _capability(target))


def dots_of(target: Target) -> dict[str, str]:
    """Return the instructions for four products of bytes; there are none before gfx906."""
    cpu = str(target.attrs.get("mcpu") or "gfx900")
    if re.match(r"gfx1[12]", cpu):
        flags = {"s": "i1 true", "u": "i1 false"}
        return {
            f"dot4_{a}{b}": f"call i32 @llvm.amdgcn.sudot4({flags[a]}, i32 {{a}}, {flags[b]}, "
            "i32 {b}, i32 {c}, i1 false)"
            for a in "su" for b in "su"
        }  # fmt: skip
    if re.match(r"gfx(90[68a]|94|95|101[12]|103)", cpu):
        return {
            f"dot4_{a}{a}": f"call i32 @llvm.amdgcn.{a}dot4(i32 {{a}}, i32 {{b}}, i32 {{c}}, "
            "i1 false)"
            for a in "su"
        }
    return {}


def code_object(ir: str, target: Target) -> tuple[bytes, str]:
    """Return `amd_ir` as a linked code object, which the driver loads, and as assembly.

    Raises CodegenError for an architecture that LLVM does not know.
    """
    compiled = CompiledText(ir, amd_target(target), "the kernels of a GPU")
    with scratch("slipway-hsaco-") as name:
        source, made = Path(name) / "kernels.o", Path(name) / "kernels.hsaco"
        source.write_bytes(compiled.object_bytes)
        run_zig(["ld.lld", "-shared", "-o", str(made), str(source)], purpose="linking kernels")
        return made.read_bytes(), compiled.assembly()


def _capability(target: Target) -> Capability:
    has = {"rounding": True, "rounding64": True, "fma": True, "fma64": True}
    found = capability_of(target)
    half = "native" if found.half == "native" else "convert"
    return replace(found, **has, half=half, in_c=False, shuffles=True)  # type: ignore[arg-type]
