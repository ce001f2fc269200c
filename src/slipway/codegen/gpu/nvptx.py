"""Kernels for NVIDIA's GPUs through LLVM: the walk of functions for processors, with threads.

Pointers are generic; LLVM finds out which of them point to memory of the device or of the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from math import prod

from slipway import dtypes
from slipway.codegen.gpu.kernel import AXES, DeviceKernel, axes_of
from slipway.codegen.llvm.function import FunctionEmitter, ModuleState
from slipway.codegen.llvm.machine import assembly_of
from slipway.codegen.llvm.module import emit_part
from slipway.codegen.llvm.types import llvm_type
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.instructions.warp_products import WARP_PRODUCTS, emit_llvm, llvm_declaration
from slipway.target import Target
from slipway.target.capability import Capability, capability_of

_REGISTERS = {"blockIdx": "ctaid", "threadIdx": "tid"}
_HALVES = 53  # the first sm_ that LLVM keeps float16 in registers for
_BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
_ATTRIBUTES = 'nounwind "no-builtins"'


def ptx_target(target: Target) -> Target:
    """Return the target of LLVM's code generator for a GPU's target."""
    arch = str(target.attrs.get("arch") or target.attrs.get("mcpu") or "sm_50")
    return Target(f"llvm -mtriple=nvptx64-nvidia-cuda -mcpu={arch}")


def ptx_text(ir: str, target: Target) -> str:
    """Return `nvptx_ir` as PTX, which the driver compiles for the device.

    Raises CodegenError for an architecture that LLVM does not know.
    """
    return assembly_of(ir, ptx_target(target), "the kernels of a GPU")


def nvptx_ir(kernels: Iterable[tuple[DeviceKernel, S.For]], target: Target) -> str:
    """Return LLVM IR of kernels, whose names, parameters and axes are those of their texts.

    Raises CodegenError for what a kernel cannot do.
    """
    state = ModuleState(_capability(target), strict=target.is_strict, attributes=_ATTRIBUTES)
    statics: list[str] = []
    for kernel, root in kernels:
        emitter = _Kernel(state, kernel.name, statics)
        emitter.emit(kernel, root)
    lines = [*statics, *state.functions, *_support(state.declarations), *state.loop_lines()]
    return "\n".join(lines) + "\n"


def _capability(target: Target) -> Capability:
    has = {"rounding": True, "rounding64": True, "fma": True, "fma64": True}
    version = re.match(r"sm_(\d+)", str(target.attrs.get("arch", "")))
    half = "convert" if version is not None and int(version[1]) >= _HALVES else "soft"
    found = capability_of(target)
    return replace(found, **has, half=half, in_c=False, shuffles=True)  # type: ignore[arg-type]


def _support(declarations: Iterable[str]) -> list[str]:
    """Return the declarations of LLVM's functions, and definitions of the others (codegen/glue).

    Raises CodegenError for a function that nobody defines.
    """
    text = emit_part("support", Target("llvm -mtriple=aarch64-linux-gnu"))  # of 64 bits
    lines: list[str] = []
    for declared in sorted(declarations):
        if "@llvm." in declared:
            lines.append(declared)
            continue
        name = re.findall(r"@([\w.]+)", declared)[0]
        found = re.search(rf"^define [^@\n]*@{re.escape(name)}\(.*?^}}\n", text, re.M | re.S)
        if found is None:
            raise CodegenError(f"a kernel cannot call {name}: no function on the GPU has that name")
        lines.append(found[0].replace("define weak hidden", "define internal"))
    return lines


class _Kernel(FunctionEmitter):
    """Emits one kernel: ``ptx_kernel void @name(pointers and scalars)``."""

    def __init__(self, module: ModuleState, name: str, statics: list[str]) -> None:
        super().__init__(module, name)
        self.statics = statics
        self.inside_parallel = True  # a parallel loop in a kernel is a thread's own

    def emit(self, kernel: DeviceKernel, root: S.For) -> None:
        """Append the kernel to the module."""
        loops, body = axes_of(root)
        params = list(kernel.params)
        text = self.parameters(params, noalias=True)
        self.widen_scalars(params)
        for tag, loop in loops.items():
            self._bind_axis(tag, loop)
        self.stmt(body)
        counts = [ops.as_int(extent) for extent in kernel.grid()[len(AXES) :]]
        known = [n for n in counts if n is not None]
        bounds = f' "nvvm.maxntid"="{prod(known)},1,1"' if len(known) == len(AXES) else ""
        self.module.functions.append(
            f"define ptx_kernel void @{self.name}({text}) {self.module.attributes}{bounds} "
            "{\nentry:\n" + "\n".join([*self.w.entry, *self.w.lines]) + "\n  ret void\n}\n"
        )
        self.module.declarations |= self.helpers

    def _bind_axis(self, tag: str, loop: S.For) -> None:
        kind, axis = tag.split(".")
        self.bounds.bind(loop.loop_var, loop.min, loop.extent)
        symbol = f"@llvm.nvvm.read.ptx.sreg.{_REGISTERS[kind]}.{axis}"
        self.helpers.add(f"declare i32 {symbol}()")
        extent = ops.as_int(loop.extent)
        within = f"range(i32 0, {extent}) " if extent is not None and extent > 0 else ""
        number = self.w.put(f"call {within}i32 {symbol}()")
        if dtypes.bits_of(loop.loop_var.dtype) == 64:
            number = self.w.put(f"zext i32 {number} to i64")
        self.bind_scalar(loop.loop_var, number)
        self.wide_values[id(loop.loop_var)] = self.wide(loop.loop_var)

    def _for(self, node: S.For) -> None:
        if node.kind == S.ForKind.THREAD:
            raise CodegenError(f"{self.name}: loop {node.loop_var.name} over threads is not mapped")
        super()._for(node)

    def _allocate(self, node: S.Allocate) -> None:
        buffer = node.buffer
        size = buffer.size_bytes()
        if size is None:
            raise CodegenError(
                f"{self.name}: the memory {buffer.name!r} of a thread or block has the shape "
                f"{list(buffer.shape)}, and it must be constant"
            )
        self.note_buffer(buffer)
        count = max(1, size // dtypes.bytes_of(buffer.dtype))
        kind = f"[{count} x {llvm_type(buffer.dtype, self.soft_half, True)}]"
        align = max(buffer.data_alignment, 16)
        name = self.w.name()
        if buffer.scope == "shared":
            symbol = f"@{self.name}.shared{len(self.statics)}"
            self.statics.append(
                f"{symbol} = internal addrspace(3) global {kind} undef, align {align}"
            )
            text = f"addrspacecast ptr addrspace(3) {symbol} to ptr"
        else:
            text = f"alloca {kind}, align {align}"
        self.w.entry.append(f"  {name} = {text}")
        self.pointers[id(buffer.data)] = name
        self.aligned[id(buffer.data)] = align
        self.stmt(node.body)

    def _assert(self, node: S.AssertStmt) -> None:
        self.stmt(node.body)  # a kernel has no way to report

    def _evaluate(self, value: E.PrimExpr) -> None:
        if isinstance(value, E.Call) and value.op in ("ret", "call_packed"):
            raise CodegenError(f"{self.name}: a kernel cannot {value.op}: {value}")
        super()._evaluate(value)

    def _call_storage_sync(self, node: E.Call) -> str:
        self.helpers.add(f"declare void @{_BARRIER}(i32)")
        self.w.do(f"call void @{_BARRIER}(i32 0)")
        return "0"

    def _call_warp_product(self, node: E.Call) -> str:
        pointers = [self.value(a) for a in node.args[1:]]
        entry = WARP_PRODUCTS[node.args[0].value]  # type: ignore[attr-defined]
        self.helpers.add(llvm_declaration(entry))
        emit_llvm(entry, pointers, self.w.put, self.w.do)
        return "0"

    def _keep_failure(self, kind: str, message: str) -> None:
        raise CodegenError(f"{self.name}: a kernel cannot raise {kind}: {message}")
