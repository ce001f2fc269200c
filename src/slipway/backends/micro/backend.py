"""The backend of microcontrollers: C for any compiler, small in memory, kernels by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slipway.backends.backend import Backend
from slipway.backends.c_code import emit_c, emit_c_kernels
from slipway.backends.micro.cores import is_microcontroller
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.source import FunctionSource
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.transform.loop.hoist_choice import hoist_choice
from slipway.transform.loop.hoist_padding import hoist_padding
from slipway.transform.loop.pipeline import PIPELINE, loop_pass
from slipway.transform.manager import Pass

if TYPE_CHECKING:
    from slipway.relay.expr import Function

_AT = next(i for i, step in enumerate(PIPELINE) if step.name == hoist_choice.__name__)
PASSES: tuple[Pass, ...] = (*PIPELINE[:_AT], loop_pass(hoist_padding), *PIPELINE[_AT:])


class MicroBackend(Backend):
    """Cores without operating system, programmed in C."""

    name = "micro"
    strategies = ("slipway.backends.micro.schedules", "slipway.backends.cpu.schedules")

    def serves(self, target: Target) -> bool:
        """Return whether `target` is C for bare metal."""
        return is_microcontroller(target)

    def graph_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes of `micro.graph`."""
        from slipway.backends.micro.graph import PASSES

        return PASSES

    def loop_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes of all processors, and what pays where each step is an instruction."""
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
        from slipway.backends.micro.kernels.match import match_kernel

        return match_kernel(name, function, target)


BACKEND = MicroBackend()
