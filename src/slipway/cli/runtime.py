"""``slipway runtime``: what a program of C or C++ needs to run models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slipway import libinfo
from slipway.cli import console
from slipway.errors import ToolchainError


def runtime(
    cflags: Annotated[bool, typer.Option("--cflags", help="Print the compiler's flags.")] = False,
    libs: Annotated[
        bool, typer.Option("--libs", help="Print the linker's flags; the library is compiled once.")
    ] = False,
    cmakedir: Annotated[
        bool, typer.Option("--cmakedir", help="Print the folder for CMake's slipway_DIR.")
    ] = False,
    amalgamation: Annotated[
        Path | None,
        typer.Option(help="Write slipway.h and slipway.c into this folder.", metavar="FOLDER"),
    ] = None,
) -> None:
    """Tell where the runtime lies, or write it as two files of C.

    For example:

        g++ app.cc $(slipway runtime --cflags --libs) -o app

        cmake -Dslipway_DIR=$(slipway runtime --cmakedir) -B build

        slipway runtime --amalgamation . && cc app.c slipway.c -pthread -ldl -o app
    """
    if amalgamation is not None:
        from slipway.toolchain.amalgamation import write_amalgamation

        for path in write_amalgamation(amalgamation):
            console.out.print(f"{console.plain(path)}: {console.size_text(path.stat().st_size)}")
        return
    if cmakedir:
        if cflags or libs:
            raise ToolchainError("--cmakedir is a folder, and no flags: call it alone.")
        print(libinfo.find_cmake_path()[0])
        return
    flags = [f"-I{path}" for path in libinfo.find_include_path()] if cflags else []
    if libs:
        folder = Path(libinfo.find_lib_path()[0]).parent
        flags += [f"-L{folder}", "-lslipway_runtime", f"-Wl,-rpath,{folder}"]
    if not flags:
        raise ToolchainError(
            "slipway runtime takes --cflags, --libs or both, --cmakedir, or --amalgamation FOLDER."
        )
    print(" ".join(flags))
