"""The backend of GPUs: kernels as text of a language, launched by a function on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slipway.backends.backend import Backend, Language, backend_of
from slipway.backends.gpu.languages import WRITERS
from slipway.backends.gpu.lowering.cooperative_sums import spread_sums
from slipway.backends.gpu.lowering.copies import bind_copies
from slipway.backends.gpu.lowering.dots import accumulate_dots
from slipway.backends.gpu.lowering.fill_ahead import begin_copies
from slipway.backends.gpu.lowering.join_rows import join_rows
from slipway.backends.gpu.lowering.swizzle import swizzle_storage
from slipway.backends.gpu.lowering.textures import lay_out_textures, refuse_image_arguments
from slipway.backends.gpu.lowering.threads import ONE_THREAD, map_threads
from slipway.backends.gpu.split import emit_kernels, host_function, write_kernels
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.deep_values import in_parts
from slipway.codegen.device_code import DeviceCode, KernelInfo
from slipway.codegen.gpu.kernel import DeviceKernel
from slipway.codegen.narrow import widen_narrow
from slipway.ir.depth import levels
from slipway.ir.function import PrimFunc
from slipway.ir.visit import nesting
from slipway.target import Target
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.lower_custom_calls import lower_custom_calls
from slipway.transform.loop.pipeline import loop_pass
from slipway.transform.loop.remove_unused import remove_unused
from slipway.transform.loop.simplify import simplify
from slipway.transform.loop.unroll_loop import unroll_loop
from slipway.transform.loop.vectorize_loop import vectorize_loop
from slipway.transform.manager import Pass

PASSES: tuple[Pass, ...] = (
    loop_pass(map_threads),
    loop_pass(lower_custom_calls),
    loop_pass(swizzle_storage),
    loop_pass(lay_out_textures),
    loop_pass(flatten_storage),
    loop_pass(remove_unused),
    loop_pass(join_rows),
    loop_pass(vectorize_loop),
    loop_pass(unroll_loop),
    loop_pass(simplify),
    loop_pass(accumulate_dots),
    loop_pass(remove_unused),
    loop_pass(begin_copies),
    loop_pass(spread_sums),
)


DEEPEST = 100  # nodes of a value inside each other; some compilers of drivers take 256 brackets


class GpuBackend(Backend):
    """Devices that run one kernel in many threads."""

    name = "gpu"
    strategies = ("slipway.backends.gpu.schedules",)

    def serves(self, target: Target) -> bool:
        """Return whether kernels are written in a language that `target` takes."""
        return target.kind.name in WRITERS

    def graph_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes that make kernels of a model."""
        from slipway.backends.gpu.graph import PASSES as GRAPH_PASSES

        return GRAPH_PASSES

    def loop_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes that make kernels of loops over threads."""
        return PASSES

    def lowered_kernel(self, func: PrimFunc) -> PrimFunc:
        """Let one thread run what no thread is bound to: nobody can bind a model's statements."""
        marked: PrimFunc = func.with_attr(ONE_THREAD, True)
        return marked

    def tensor_alignment(self, target: Target) -> int:
        """Return what every driver takes as the beginning of a part of memory."""
        return 512

    def language(self, target: Target) -> Language:
        """Return what the host's side of a program is written in."""
        host = host_of(target)
        return backend_of(host).language(host)

    def emit(
        self, functions: Mapping[str, PrimFunc], target: Target, entry: str, compiler: str
    ) -> CompiledModule:
        """Write the kernels, and compile the functions that launch them for the host."""
        for func in functions.values():
            if not func.attr(ONE_THREAD):  # a model's kernels get images from its executor
                refuse_image_arguments(func)
        widened = {name: _prepared(name, func, target) for name, func in functions.items()}
        with levels(max(nesting(func.body) for func in widened.values())):
            program = emit_kernels(widened, target, compiler)
        hosts = {
            name: host_function(func, program.digest, program.by_loop, target)
            for name, func in widened.items()
        }
        host = host_of(target)
        made = backend_of(host).emit(hosts, host, entry, compiler)
        infos = tuple(
            KernelInfo(
                kernel.name,
                tuple(v.dtype for v in kernel.params),
                tuple(kernel.extents),
            )
            for kernel in program.kernels
        )

        device = DeviceCode(target, program.code, program.sources, infos, host)
        return replace(made, device=device)


def kernels_of(func: PrimFunc, target: Target) -> tuple[DeviceKernel, ...]:
    """Return what a function's loops launch in order, before a driver's code is made of them."""
    name = str(func.attr("global_symbol", "main"))
    ready = {name: _prepared(name, func, target)}
    with levels(nesting(ready[name].body)):
        return tuple(write_kernels(ready, target, WRITERS[target.kind.name](target)).values())


def ready_for_threads(name: str, func: PrimFunc, target: Target) -> PrimFunc:
    """Return a function whose loops over threads at the top are its kernels.

    Raises CodegenError for what the target cannot express, or has too little of.
    """
    ready = {name: _prepared(name, func, target)}
    with levels(nesting(ready[name].body)):
        write_kernels(ready, target, WRITERS[target.kind.name](target))
    return ready[name]


def _prepared(name: str, func: PrimFunc, target: Target) -> PrimFunc:
    """Return `func` with values of four bits in bytes, which kernels of their own pack.

    Deep values are in parts.
    """
    made = widen_narrow(func)
    if made is not func:
        made = simplify(made.replace(body=bind_copies(made.body, target)))
    return in_parts(made, DEEPEST, f"function {name!r}")


def host_of(target: Target) -> Target:
    """Return the target of the code that launches kernels: this machine's unless one was given."""
    return target.host if target.host is not None else Target("llvm")


BACKEND = GpuBackend()
