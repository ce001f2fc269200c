"""C as what a backend emits: the text of a whole model is remembered under its kernels' keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slipway.codegen import cache
from slipway.codegen.c.backend import compile_c, module_of_c
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.narrow import widen_narrow
from slipway.codegen.source import FunctionSource
from slipway.ir.function import PrimFunc
from slipway.target import Target


def emit_c(
    functions: Mapping[str, PrimFunc], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Return `functions` as C, which is compiled when its objects are first asked for."""
    widened = {name: widen_narrow(func) for name, func in functions.items()}
    return compile_c(widened, target, entry, compiler)


def emit_c_kernels(
    sources: Sequence[FunctionSource], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Return a model's kernels as C; none is lowered where the text is remembered."""
    key = ""
    if all(source.key for source in sources):
        words = (word for source in sources for word in (source.name, source.key))
        key = cache.key_of("C text", str(target), compiler, *words)

    def written() -> str:
        functions = {source.name: source.lower() for source in sources}
        return emit_c(functions, target, entry, compiler).get_source("c")

    names = [source.name for source in sources]
    return module_of_c(cache.remembered(key, written), names, target, entry, compiler)
