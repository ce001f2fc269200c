"""The backend of processors: objects through LLVM, or portable C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from slipway.backends.backend import Backend, Language
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.micro.cores import is_microcontroller
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.source import FunctionSource
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.transform.manager import Pass

if TYPE_CHECKING:
    from slipway.relay.expr import Call

# By name: another kind of processor may have a backend of its own in a folder beside this one.
_KINDS = ("llvm", "c", "hexagon")


class CpuBackend(Backend):
    """Processors with vectors and caches, under an operating system or none."""

    name = "cpu"
    strategies = ("slipway.backends.cpu.schedules",)

    def serves(self, target: Target) -> bool:
        """Return whether `target` is a processor, and no microcontroller that C is written for."""
        return target.kind.name in _KINDS and not is_microcontroller(target)

    def graph_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes of `cpu.graph`."""
        from slipway.backends.cpu.graph import PASSES

        return PASSES

    def layout_lanes(self, target: Target, aot: bool = False) -> int:
        """Return the lanes of a vector, 4 at least; a program in C takes plain layouts."""
        lanes = vector_lanes(target, "float32")
        if aot and (not target.is_by_llvm or lanes == 1):
            return 0
        return max(lanes, 4)

    def fast_types(self, target: Target) -> Mapping[str, float]:
        """Return bfloat16 where there is an instruction for it that is a gain."""
        from slipway.backends.cpu.graph import fast_types

        return fast_types(target)

    def gains_in_parts(self, call: Call, products: int, target: Target) -> bool:
        """Return whether the unit for bfloat16 is faster by more than the parts are longer."""
        from slipway.backends.cpu.graph import gain_of_parts

        return gain_of_parts(call, products, target)

    def language(self, target: Target) -> Language:
        """Return "c" for targets of that kind, else "llvm"."""
        return "c" if target.kind.name == "c" else "llvm"

    def emit(
        self, functions: Mapping[str, PrimFunc], target: Target, entry: str, compiler: str
    ) -> CompiledModule:
        """Compile through LLVM, or write C."""
        if self.language(target) == "c":
            from slipway.backends.c_code import emit_c

            return emit_c(functions, target, entry, compiler)
        from slipway.codegen.llvm.backend import compile_llvm

        return compile_llvm(dict(functions), target, entry, compiler)

    def emit_kernels(
        self,
        sources: Sequence[FunctionSource],
        target: Target,
        entry: str,
        compiler: str,
        later: bool = False,
    ) -> CompiledModule:
        """Compile what the cache does not have; with `later` when the objects are asked for."""
        if self.language(target) == "c":
            from slipway.backends.c_code import emit_c_kernels

            return emit_c_kernels(sources, target, entry, compiler)
        from slipway.codegen.llvm.backend import compile_sources

        return compile_sources(sources, target, entry, compiler, later)


BACKEND = CpuBackend()
