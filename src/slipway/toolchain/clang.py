"""C and C++ to LLVM IR, for pragma import_llvm: classic TVM's ``contrib.clang``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import ToolchainError
from slipway.toolchain.cc import run_compiler
from slipway.toolchain.tempdir import scratch
from slipway.toolchain.zig import run_zig

_FLAGS = ("-S", "-emit-llvm", "-O3", "-g0", "-fno-sanitize=all", "-fno-stack-protector",
          "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-fno-exceptions", "-fPIC",
          "-ffreestanding", "-fvisibility=hidden", "-Wno-unused-command-line-argument")  # fmt: skip


def find_clang(required: bool = True) -> list[str]:
    """Return the names of Clangs on the PATH; create_llvm needs none of them.

    With `required`, raises ToolchainError when there is none.
    """
    found = [name for name in ("clang", "clang-19", "clang-16", "clang-14") if shutil.which(name)]
    if required and not found:
        raise ToolchainError("no clang is on the PATH: apt-get install clang")
    return found


def create_llvm(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> str:
    """Compile C++ (text, or paths of source files) to LLVM IR, and return its text.

    `output` is where to write it too; `options` are passed to the compiler, which is Zig's Clang
    unless `cc` names another.  Raises ToolchainError with the compiler's words.
    """
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs)
    texts = []
    with scratch() as folder:
        for number, source in enumerate(given):
            path = Path(folder) / f"source{number}.cc"
            if isinstance(source, str) and ("\n" in source or "{" in source):
                path.write_text(source)
            elif Path(source).is_file():
                path = Path(source)
            else:
                raise ToolchainError(f"create_llvm: there is no source file {source}")
            made = Path(folder) / f"made{number}.ll"
            command = [*_FLAGS, *(options or ()), "-o", str(made), str(path)]
            if cc is not None:
                run_compiler(cc, command)
            else:
                run_zig(["c++", *command], purpose="compiling to LLVM IR")
            texts.append(made.read_text())
    if len(texts) > 1:
        raise ToolchainError("create_llvm takes one source at a time: import each by itself")
    if output is not None:
        Path(output).write_text(texts[0])
    return texts[0]
