"""Linking with a compiler of the user's: gcc, clang, or a cross gcc.

Slipway needs none (`toolchain.link` uses its own linker); these are for who wants to link with
theirs, under the names that classic scripts use.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from slipway.errors import ToolchainError, with_words

PathLike = str | os.PathLike[str]
OneOrMore = PathLike | Sequence[PathLike]
_CANDIDATES = ("cc", "gcc", "clang")


def get_cc() -> str | None:
    """Return the path of this machine's C compiler: ``$CC`` if set, else cc, gcc or clang."""
    named = os.environ.get("CC")
    for name in (named,) if named else _CANDIDATES:
        path = shutil.which(shlex.split(name)[0])
        if path is not None:
            return path
    return None


def create_shared(
    output: PathLike,
    objects: OneOrMore,
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: PathLike | None = None,
) -> None:
    """Link `objects` into the shared library `output` with `cc` (default: `get_cc`).

    A library that nothing in the objects asks for does not become a dependency of the result, so
    what Slipway compiled stays free of libc.  Raises ToolchainError with the compiler's own words.
    """
    flags = ["-shared", "-fPIC", "-Wl,--as-needed"]
    run_compiler(cc, [*flags, "-o", str(output), *listed(objects), *(options or ())], cwd)


def create_executable(
    output: PathLike,
    objects: OneOrMore,
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: PathLike | None = None,
) -> None:
    """Link `objects` into the program `output` with `cc` (default: `get_cc`)."""
    run_compiler(cc, ["-o", str(output), *listed(objects), *(options or ())], cwd)


def get_target_by_dump_machine(compiler: str) -> Callable[[], str | None]:
    """Return a function that asks `compiler` for its target triple; None where it cannot say."""

    def get_target_triple() -> str | None:
        done = subprocess.run(
            [compiler, "-dumpmachine"], capture_output=True, text=True, errors="replace"
        )
        return done.stdout.strip() if done.returncode == 0 else None

    return get_target_triple


def cross_compiler(
    compile_func: str | Callable[..., None],
    options: Sequence[str] | None = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Sequence[PathLike] | None = None,
) -> Callable[..., None]:
    """Return an ``fcompile(output, objects, options=None)`` for `export_library`.

    `compile_func` is the path of a cross compiler or a function like `create_shared`; `options` and
    `add_files` are added to every call.  The result carries `output_format` ("so" unless given)
    and `get_target_triple`.
    """
    always, extra = list(options or ()), list(add_files or ())
    compiler = compile_func if isinstance(compile_func, str) else None

    def fcompile(
        output: PathLike, objects: OneOrMore, options: Sequence[str] | None = None
    ) -> None:
        inputs = [*listed(objects), *extra]
        flags = [*always, *(options or ())]
        if callable(compile_func):
            compile_func(output, inputs, options=flags)
        else:
            create_shared(output, inputs, options=flags, cc=compiler)

    if get_target_triple is None and compiler is not None:
        get_target_triple = get_target_by_dump_machine(compiler)
    fcompile.output_format = output_format or getattr(compile_func, "output_format", "so")  # type: ignore[attr-defined]
    fcompile.get_target_triple = get_target_triple  # type: ignore[attr-defined]
    return fcompile


def run_compiler(cc: str | None, arguments: Sequence[str], cwd: PathLike | None = None) -> None:
    """Run `cc`, or this machine's compiler, with `arguments`; ToolchainError when it fails."""
    compiler = cc or get_cc()
    if compiler is None or shutil.which(compiler) is None:
        wanted = repr(cc) if cc else "a C compiler (cc, gcc or clang)"
        triple = Path(cc or "").name.removesuffix("-gcc").removesuffix("-g++")
        package = f"gcc-{triple}" if triple.count("-") >= 2 else "gcc"
        raise ToolchainError(
            f"{wanted} is not on this machine. Install it (Debian: apt-get install {package}), or "
            "leave `cc` out: Slipway links with its own linker."
        )
    done = subprocess.run(
        [compiler, *arguments], capture_output=True, text=True, errors="replace", cwd=cwd
    )
    if done.returncode != 0:
        command = shlex.join([Path(compiler).name, *arguments])
        told = f"{command} failed with exit code {done.returncode}"
        raise ToolchainError(with_words(told, done.stderr or done.stdout))


def listed(objects: OneOrMore) -> list[str]:
    """Return one path or several as a list of strings."""
    if isinstance(objects, str | os.PathLike):
        return [str(objects)]
    return [str(item) for item in objects]


create_shared.output_format = "so"  # type: ignore[attr-defined]
create_shared.get_target_triple = None  # type: ignore[attr-defined]
