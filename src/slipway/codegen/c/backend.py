"""PrimFuncs to a `CompiledModule` through C, and C to objects."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from slipway.codegen import cache
from slipway.codegen.c.module import calling_checks, emit_c
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.llvm.module import emit_part, metadata_json
from slipway.errors import ToolchainError
from slipway.ir.function import PrimFunc
from slipway.ir.hardware import HARDWARE
from slipway.target import Target
from slipway.toolchain import native
from slipway.toolchain.tempdir import scratch
from slipway.toolchain.zig import environment, find_zig, zig_path
from slipway.toolchain.zig_target import zig_options
from slipway.version import install_line

FLAGS = ("-std=c11", "-fno-math-errno", "-fno-strict-aliasing", "-fPIC",
         "-ffreestanding", "-fno-builtin", "-ffunction-sections", "-fdata-sections",
         "-fno-stack-protector", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
         "-fno-sanitize=all")  # fmt: skip
# Of an axis of one element, an element is compared with itself.
# What is said of lines for a debugger would be dropped by the linker.
GENERATED = (*FLAGS, "-g0")
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wno-tautological-compare")


def compile_c(
    functions: dict[str, PrimFunc], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Generate C for `functions`; objects are made of it when they are asked for."""
    metadata = metadata_json(list(functions), entry, target, compiler)
    text = emit_c(functions, target, metadata, compiler)
    return module_of_c(text, list(functions), target, entry, compiler)


def module_of_c(
    text: str, names: list[str], target: Target, entry: str, compiler: str
) -> CompiledModule:
    """Return the module of generated C whose functions are `names`."""
    return CompiledModule(
        target,
        tuple(names),
        entry,
        metadata_json(names, entry, target, compiler),
        lambda: _objects_of(text, target),
        {"c": lambda: text},
    )


def c_to_object(text: str, target: Target) -> bytes:
    """Compile C text for `target`, by Zig's C compiler, or by `cc` where it is for this machine.

    Raises ToolchainError with the compiler's words when there is none or it fails.
    """
    return _compile(text, target, (*GENERATED, *STRICT), "generated C")


def _objects_of(text: str, target: Target) -> tuple[bytes, ...]:
    """Return the object of a module's C, then those of what it calls.

    The argument checks are most of a small module, and the same in each: of those objects, that of
    the target is taken, which a library made by LLVM has too.  Formats whose objects cannot be
    joined here keep all in one.
    """
    elf = target.parsed_triple.object_format == "elf"
    calls = calling_checks(text) if elf and _has_zig() else None
    if calls is None:
        return _with_helpers((c_to_object(text, target),), target)
    return _with_helpers((c_to_object(calls, target), _part("packed", target)), target)


def _with_helpers(objects: tuple[bytes, ...], target: Target) -> tuple[bytes, ...]:
    """Return objects, and what they call of the ARM run-time ABI where nothing else has that.

    A library takes nothing from its surroundings; firmware has the functions of its compiler.
    """
    triple = target.parsed_triple
    calls = any(b"__aeabi_" in code for code in objects)
    if not (calls and triple.calls_aeabi and triple.loads_libraries):
        return objects
    return *objects, _part("arm", target)


def _part(part: str, target: Target) -> bytes:
    """Return the object of a part of codegen/glue."""
    text = emit_part(part, target)
    return _part_object(text, target)


@lru_cache(maxsize=16)
def _part_object(text: str, target: Target) -> bytes:
    return _compile(text, target, (*GENERATED, "-Wno-override-module"), "helpers", ".ll")


def snippet_to_object(text: str, target: Target) -> bytes:
    """Compile C of the user's, whose functions only this library sees.

    It finds the headers of the runtime.
    """
    flags: tuple[str, ...] = (*FLAGS, "-fvisibility=hidden")
    if re.search(r"#\s*include\s*<(tvm|dlpack|slipway)/", text):
        flags = (*flags, "-I", str(native.include_path()))
    return _compile(text, target, flags, "the C of pragma import_c")


def _compile(
    text: str, target: Target, flags: tuple[str, ...], what: str, suffix: str = ".c"
) -> bytes:
    """Return the object of `text`; from the kernel cache, where Zig is the compiler."""
    command = _compiler_of(target, flags)
    is_zig = command[0] == str(find_zig())
    key = cache.key_of("c", text, target.triple, *_named(command)) if is_zig else ""
    found = cache.load(key) if key else None
    if found is None:
        found = _run(command, text, target, what, suffix)
        if key:
            cache.store(key, found)
    return found


def _named(command: list[str]) -> list[str]:
    """Return what a command of Zig's says beside the texts that `cache.key_of` has anyway."""
    return command if os.environ.get("SLIPWAY_ZIG") else command[1:]


def _run(command: list[str], text: str, target: Target, what: str, suffix: str) -> bytes:
    with scratch() as folder:
        (Path(folder) / f"module{suffix}").write_text(text)
        done = subprocess.run(
            [*command, "-c", f"module{suffix}", "-o", "module.o"],
            cwd=folder, capture_output=True, text=True, errors="replace", check=False,
            env=environment(),
        )  # fmt: skip
        if done.returncode:
            shown = " ".join([Path(command[0]).name, *command[1:3]])
            raise ToolchainError(
                f"compiling {what} for {target.triple} failed ({shown} ...):\n"
                f"{done.stderr.strip()[:2000]}"
            )
        return (Path(folder) / "module.o").read_bytes()


def _has_zig() -> bool:
    try:
        return importlib.util.find_spec("ziglang") is not None
    except ImportError:
        return False


def _compiler_of(target: Target, flags: tuple[str, ...]) -> list[str]:
    if not _has_zig():
        cc = shutil.which("cc")
        if cc is None or not target._is_host():
            raise ToolchainError(
                f"compiling C for {target.triple} needs ziglang: {install_line('compile')}"
            )
        return [cc, "-O3", *(flag for flag in flags if "sanitize" not in flag)]
    command = [str(zig_path()), "cc", *flags, "-Wno-unused-command-line-argument"]
    used = sorted({feature for entry in HARDWARE.values() for feature in entry.features})
    return [*command, *zig_options(target, used)]
