"""PrimFuncs to a `CompiledModule` through LLVM."""

from __future__ import annotations

from slipway.codegen.compiled import CompiledModule
from slipway.codegen.llvm.machine import CompiledText, with_parts
from slipway.codegen.llvm.module import emit_module, metadata_json
from slipway.ir.function import PrimFunc
from slipway.target import Target


def compile_llvm(
    functions: dict[str, PrimFunc], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Compile `functions` to object code for `target`."""
    metadata = metadata_json(list(functions), entry, target, compiler)
    text = emit_module(functions, target, metadata)
    compiled = CompiledText(text, target)
    return CompiledModule(
        target,
        tuple(functions),
        entry,
        metadata,
        lambda: with_parts(compiled.object_bytes, target),
        {"ll": compiled.optimised_ir, "asm": compiled.assembly, "raw": lambda: text},
    )
