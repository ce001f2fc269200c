"""The backend of microcontrollers: C for any compiler, small in memory, kernels by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slipway.backends.backend import Backend
from slipway.backends.c_code import emit_c, emit_c_kernels
from slipway.backends.micro.cores import is_microcontroller
from slipway.backends.micro.kernels.match import match_kernel
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.source import FunctionSource
from slipway.ir.function import PrimFunc
from slipway.relay.expr import Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.target import Target
from slipway.transform.graph.pipeline import MIDDLE, OPENING, WIDEN_PRODUCTS, ending
from slipway.transform.manager import Pass


def ends_quantized_layer(expr: Expr) -> bool:
    """Return whether `expr` gives a layer's int8 result, or a value too long to compute twice.

    Kernels that end there keep tensors in memory at one byte an element; what a wider kernel would
    hand on in int32 does not fit into a microcontroller.
    """
    return is_call_of(expr, "qnn.reciprocal") or (
        is_call_of(expr, "cast")
        and expr.attrs.dtype == "int8"  # type: ignore[attr-defined]
        and is_call_of(expr.args[0], "clip")  # type: ignore[attr-defined]
    )


PASSES: tuple[Pass, ...] = (*OPENING, WIDEN_PRODUCTS, *MIDDLE, *ending(ends_quantized_layer))


class MicroBackend(Backend):
    """Cores without operating system, programmed in C."""

    name = "micro"
    strategies = ("slipway.backends.micro.schedules", "slipway.backends.cpu.schedules")

    def serves(self, target: Target) -> bool:
        """Return whether `target` is C for bare metal."""
        return is_microcontroller(target)

    def graph_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes for every target; kernels end where a layer's bytes are."""
        return PASSES

    def emit(
        self, functions: Mapping[str, PrimFunc], target: Target, entry: str, compiler: str
    ) -> CompiledModule:
        """Write C."""
        return emit_c(functions, target, entry, compiler)

    def emit_kernels(
        self,
        sources: Sequence[FunctionSource],
        target: Target,
        entry: str,
        compiler: str,
        later: bool = False,
    ) -> CompiledModule:
        """Write C, or find it in the cache."""
        return emit_c_kernels(sources, target, entry, compiler)

    def hand_written(self, name: str, function: Function, target: Target) -> Sequence[Any]:
        """Return the integer kernels of `micro.kernels` that fit the core."""
        return match_kernel(name, function, target)


BACKEND = MicroBackend()
