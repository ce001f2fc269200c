"""LLVM text to optimised object bytes, through llvmlite."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from slipway.errors import CodegenError, ToolchainError
from slipway.target import Target

_LOCK = threading.RLock()


@lru_cache(maxsize=1)
def _llvm() -> Any:
    """Import and initialise llvmlite."""
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise ToolchainError(
            "compiling with target llvm needs llvmlite: pip install 'slipway[compile]'"
        ) from error
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@lru_cache(maxsize=16)
def _machine(triple: str, cpu: str, features: str, abi: str, level: int) -> Any:
    llvm = _llvm()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default", abiname=abi
    )


def machine_of(target: Target) -> Any:
    """Return llvmlite's TargetMachine for `target`."""
    triple = target.parsed_triple
    abi = str(target.attrs.get("mabi", ""))
    if not abi and triple.arch == "riscv64":
        abi = "lp64d" if target.has_feature("d") else "lp64"
    level = int(target.attrs.get("opt-level", 3))
    return _machine(triple.llvm, target.cpu, ",".join(target.llvm_features), abi, level)


class CompiledText:
    """One module of LLVM text, compiled: object bytes at once, assembly and IR when asked for."""

    def __init__(self, text: str, target: Target) -> None:
        llvm = _llvm()
        with _LOCK:
            self._machine = machine_of(target)
            self._module = _parse(text, target, self._machine)
            _optimise(llvm, self._module, self._machine, int(target.attrs.get("opt-level", 3)))
            self.object_bytes: bytes = self._machine.emit_object(self._module)

    def assembly(self) -> str:
        """Return the assembly text of the module."""
        with _LOCK:
            return str(self._machine.emit_assembly(self._module))

    def optimised_ir(self) -> str:
        """Return the LLVM IR after optimisation."""
        with _LOCK:
            return str(self._module)


def _parse(text: str, target: Target, machine: Any) -> Any:
    try:
        module = _llvm().parse_assembly(text)
    except RuntimeError as error:
        raise CodegenError(f"internal: generated LLVM IR is wrong: {error}") from error
    module.triple = target.parsed_triple.llvm
    module.data_layout = str(machine.target_data)
    return module


def _optimise(llvm: Any, module: Any, machine: Any, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=min(level, 2))
    options.loop_vectorization = True
    options.slp_vectorization = False
    options.loop_interleaving = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


@lru_cache(maxsize=64)
def part_object(part: str, target: Target) -> bytes:
    """Return the object of one part of codegen/glue ("packed", "support", "arm") for `target`.

    The text is optimised already (tools/generate_glue.py), so it only passes the back end.
    """
    from slipway.codegen.llvm.module import emit_part

    with _LOCK:
        machine = machine_of(target)
        return bytes(machine.emit_object(_parse(emit_part(part, target), target, machine)))


def glue_object(target: Target) -> bytes:
    """Return the object of the argument checks and slots for `target`."""
    return part_object("packed", target)


# Names that an object mentions only if it calls them.
_SUPPORT = (b"slw_fm", b"memcpy", b"memset", b"memmove", b"__divdi3", b"__udivdi3", b"__moddi3",
            b"__umoddi3")  # fmt: skip


def with_parts(code: bytes, target: Target) -> tuple[bytes, ...]:
    """Return `code` and the objects of codegen/glue that it needs."""
    objects = [code, glue_object(target)]
    if any(name in code for name in _SUPPORT):
        objects.append(part_object("support", target))
    if target.parsed_triple.arch == "arm" and any(b"__aeabi_" in data for data in objects):
        objects.append(part_object("arm", target))
    return tuple(objects)
