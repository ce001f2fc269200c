"""PrimFuncs to a `CompiledModule` through LLVM."""

from __future__ import annotations

from collections.abc import Callable

from slipway.codegen.compiled import CompiledModule
from slipway.codegen.llvm.machine import CompiledText, compile_texts, with_parts
from slipway.codegen.llvm.module import emit_module, metadata_json
from slipway.codegen.snippets import snippet_objects
from slipway.ir.function import PrimFunc
from slipway.target import Target


def compile_llvm(
    functions: dict[str, PrimFunc], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Compile `functions` to object code for `target`."""
    metadata = metadata_json(list(functions), entry, target, compiler)
    texts = emit_module(functions, target, metadata)
    everything = list(texts.functions.values())
    if len(everything) == 1 and "slw_arena" not in texts.shell:
        everything = [texts.shell + everything[0]]
    else:
        everything.append(texts.shell)
    compiled = compile_texts(everything, target)
    brought = snippet_objects(functions.values(), target)

    def joined(form: Callable[[CompiledText], str]) -> Callable[[], str]:
        return lambda: "\n".join(form(one) for one in compiled)

    return CompiledModule(
        target,
        tuple(functions),
        entry,
        metadata,
        lambda: with_parts([*(one.object_bytes for one in compiled), *brought], target),
        {
            "ll": joined(CompiledText.optimised_ir),
            "asm": joined(CompiledText.assembly),
            "raw": lambda: "\n".join(everything),
        },
    )
