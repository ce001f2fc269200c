"""Linking for Android: with the NDK's compiler where the user names it, else with our linker.

``SLIPWAY_NDK_CC`` (or, as in classic scripts, ``TVM_NDK_CC``) is the path of the NDK's clang, for
example ``.../toolchains/llvm/prebuilt/linux-x86_64/bin/aarch64-linux-android28-clang``.  What
Slipway compiles needs nothing of Android's C library, so that the NDK is not needed for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from slipway.toolchain import cc
from slipway.toolchain.elf import ElfFile
from slipway.toolchain.link import link_shared

_VARIABLES = ("SLIPWAY_NDK_CC", "TVM_NDK_CC")
# ELF machine number -> triple.
_TRIPLES = {
    40: "armv7a-linux-androideabi",
    62: "x86_64-linux-android",
    183: "aarch64-linux-android",
}


def ndk_compiler() -> str | None:
    """Return the NDK compiler that the environment names, or None."""
    return next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), None)


def create_shared(
    output: cc.PathLike, objects: cc.OneOrMore, options: Sequence[str] | None = None
) -> None:
    """Link `objects` into an Android shared library `output`.

    Raises ToolchainError with the linker's words when it fails.
    """
    compiler = ndk_compiler()
    if compiler is not None:
        cc.create_shared(output, objects, options, cc=compiler)
        return
    inputs = cc.listed(objects)
    first = ElfFile(Path(inputs[0]).read_bytes(), inputs[0])
    triple = _TRIPLES.get(first.machine, f"{first.machine_name}-linux-android")
    link_shared(inputs, triple, output, options=options)


def get_target_triple() -> str | None:
    """Return the triple of the NDK's compiler; "aarch64-linux-android" when none is named."""
    compiler = ndk_compiler()
    if compiler is None:
        return "aarch64-linux-android"
    return cc.get_target_by_dump_machine(compiler)()


create_shared.output_format = "so"  # type: ignore[attr-defined]
create_shared.get_target_triple = get_target_triple  # type: ignore[attr-defined]
