"""Linking objects into one self-contained shared library for any target.

The linker is ziglang's: ld.lld for ELF, wasm-ld for WebAssembly, `zig cc` for Mach-O.  A user's own
(`cc=` a compiler's path, or a function ``fcompile(output, objects, options=None)``) works too.
Whatever linked it, the result is checked: an exported library imports nothing.
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slipway.errors import ArtifactError, ToolchainError
from slipway.toolchain import cc as user_cc
from slipway.toolchain.elf import MACHINE_NAMES, ElfFile, architecture_of, is_elf, machine_of_triple
from slipway.toolchain.tempdir import scratch, unwound
from slipway.toolchain.zig import musl_target, run_zig

Linker = str | os.PathLike[str] | Callable[..., Any]
# An object to link: a path, its bytes, or a list or tuple of pieces of them.
LinkInput = str | os.PathLike[str] | bytes | Sequence[Any]
_COPY_BYTES = 1 << 20

_LLD_FLAGS = (
    "-shared",
    "--build-id=none",
    "--hash-style=both",  # DT_HASH states the number of symbols, which small loaders need
    "-Bsymbolic",
    "--gc-sections",
    "--strip-debug",
    "-znoexecstack",
    "-znow",
)
# What compilers take and linkers do not, among options as ``-O2 -std=c++17 -Iinclude``.
_COMPILING = re.compile(
    r"-(O[0-3gsz]?|std=.*|[IDU].+|f(?!ini).+|m[a-z][a-z0-9]*(=.*)?|W.*|w|g(\d|gdb.*|dwarf.*)?|c"
    r"|pthread|pedantic.*|ansi)"
)
# zig cc gives the rest itself.
_RUNTIME_FLAGS = ("--hash-style=both", "-Bsymbolic", "--gc-sections", "--strip-debug")


def link_shared(
    objects: Sequence[LinkInput],
    triple: str,
    out: str | os.PathLike[str],
    cc: Linker | None = None,
    exports: Sequence[str] | None = None,
    options: Sequence[str] | None = None,
) -> Path:
    """Link `objects` (paths, or the bytes of objects) for `triple` into the library `out`.

    The file appears whole or not at all, and is never in this process's memory, which a model's
    parameters inside it can fill.  For the rest see `linked_bytes`.
    """
    out = Path(out)
    with _linked(objects, triple, out.name, cc, exports, options) as result:
        write_file(out, _in_parts(result))
    return out


def linked_bytes(
    objects: Sequence[LinkInput],
    triple: str,
    name: str = "the library",
    cc: Linker | None = None,
    exports: Sequence[str] | None = None,
    options: Sequence[str] | None = None,
    *,
    may_need: Callable[[str], bool] | None = None,
) -> bytes:
    """Return the library of `objects` (paths, bytes, or lists of pieces of them) for `triple`.

    `exports` limits what the library shows; `options` are passed to the linker; `name` is the
    library's in messages; `may_need` tells which symbols it may take from the process.  Equal input
    gives equal bytes.  Raises ToolchainError if linking fails or the result would need something
    else from outside.
    """
    with _linked(objects, triple, name, cc, exports, options, may_need) as result:
        return result.read_bytes()


@contextmanager
def _linked(
    objects: Sequence[LinkInput],
    triple: str,
    name: str,
    cc: Linker | None,
    exports: Sequence[str] | None,
    options: Sequence[str] | None,
    may_need: Callable[[str], bool] | None = None,
) -> Iterator[Path]:
    """Give the file of the linked and checked library, which is gone afterwards."""
    with scratch("slipway-link-") as folder:
        inputs = _as_files(objects, Path(folder))
        _check_machine(inputs, triple)
        result = Path(folder) / "linked.so"
        if cc is None:
            _link_ours(inputs, triple, result, Path(folder), exports, options)
        else:
            _link_theirs(inputs, result, cc, options)
        if not result.is_file():
            raise ToolchainError(
                f"the function given for linking returned without writing {result.name}; it is "
                "called as fcompile(output, objects, options=None)."
            )
        check_self_contained(_mapped(result), name, may_need)
        yield result


def _mapped(path: Path) -> bytes | memoryview:
    """Return a file's bytes, of which only those that are looked at are read."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""  # which cannot be mapped
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _in_parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(_COPY_BYTES):
            yield part


def where_it_lies(out: Path) -> Path:
    """Return the path of the file that a link leads to, which need not be there; else `out`."""
    return Path(os.path.realpath(out)) if out.is_symlink() else out


def write_file(out: Path, content: bytes | Iterable[Any], *, mode: int | None = None) -> None:
    """Write a file, of bytes or pieces of them, so that it is there whole or not at all.

    Several may write the same one, the last wins.  `mode` is its permissions; None: the usual ones.
    A pipe or a terminal (``/dev/stdout``) is written to as it is, a link's file where it lies.
    """
    out = where_it_lies(out)
    pieces: Iterable[Any] = (content,) if isinstance(content, bytes) else content
    if out.exists() and not out.is_file():
        with out.open("wb") as pipe:
            pipe.writelines(pieces)
        return
    try:
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    except OSError as error:
        error.filename = str(out)
        raise
    try:
        with unwound():
            with os.fdopen(handle, "wb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            if mode is None:
                mask = os.umask(0)
                os.umask(mask)
                mode = 0o666 & ~mask
            Path(name).chmod(mode)
            Path(name).replace(out)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, name):
            error.filename = str(out)  # a full disk is told without a name, when bytes are written
        raise


def check_self_contained(
    content: bytes | memoryview, name: str, may_need: Callable[[str], bool] | None = None
) -> None:
    """Raise ToolchainError if an ELF library needs symbols from outside; other formats pass."""
    if not is_elf(content):
        return
    try:
        undefined = ElfFile(content, name).undefined
    except ArtifactError as error:
        raise ToolchainError(f"the linker wrote a file that cannot be used: {error}") from error
    if may_need is not None:
        undefined = [symbol for symbol in undefined if not may_need(symbol)]
    if undefined:
        shown = ", ".join(sorted(undefined)[:8]) + (" ..." if len(undefined) > 8 else "")
        if all(re.match(r"__aeabi_(c?[fd]|[uil]*2[fd])", symbol) for symbol in undefined):
            raise ToolchainError(
                f"{name} would need {shown}: the target has no instructions for floating point, "
                "and functions that do without are carried for ARMv7 only. Say what the processor "
                "has (a triple that ends in gnueabihf, or -mattr=+vfp2), or quantise the model, or "
                "write objects (-o model.o, or .a) and link them with the board's own compiler"
            )
        raise ToolchainError(
            f"{name} would need {shown} from outside, and an exported library may need nothing: "
            "it must load on any system. Link the objects that define these symbols into it "
            "(to call them in this process only, open their library first, with "
            "ctypes.CDLL(path, ctypes.RTLD_GLOBAL); or add '-static-libgcc', '-lm' and the like to "
            "the options of your compiler)."
        )


def _as_files(objects: Sequence[LinkInput], folder: Path) -> list[Path]:
    if not objects:
        raise ToolchainError("there is nothing to link: the list of objects is empty.")
    files: list[Path] = []
    for index, item in enumerate(objects):
        if isinstance(item, bytes | bytearray | memoryview):
            path = folder / f"{index}.o"
            _write_object(path, (item,))
        elif isinstance(item, list | tuple):
            path = folder / f"{index}.o"
            _write_object(path, item)
        else:
            path = Path(item)  # type: ignore[arg-type]
            if not path.is_file():
                raise ToolchainError(f"the object to link, {path}, does not exist.")
        files.append(path)
    return files


def _write_object(path: Path, pieces: Iterable[Any]) -> None:
    try:
        with path.open("wb") as file:
            file.writelines(pieces)
    except OSError as error:  # of a full disk, which says no name by itself
        error.filename = error.filename or str(path)
        raise


def _check_machine(files: Sequence[Path], triple: str) -> None:
    wanted = machine_of_triple(architecture_of(triple))
    for path in files:
        with path.open("rb") as file:
            head = file.read(20)
        if is_elf(head) and wanted is not None:
            found = int.from_bytes(head[18:20], "little")
            if found != wanted:
                raise ToolchainError(
                    f"cannot link {path.name} for {triple}: it is an object for "
                    f"{MACHINE_NAMES.get(found, found)}. Build it for the target you link for."
                )


# A WebAssembly program; JavaScript's functions are put into its table.
WASM_FLAGS = (
    "--no-entry", "--export-dynamic", "--strip-debug", "--gc-sections", "--export-table",
    "--growable-table",
)  # fmt: skip

# The same where workers share its memory, which JavaScript makes: as large as addresses reach, and
# with a stack for each worker.
THREADED_WASM_FLAGS = (
    "--import-memory", "--shared-memory", "--max-memory=4294967296", "--export=__stack_pointer",
)  # fmt: skip


def _for_linker(options: Sequence[str]) -> list[str]:
    """Return what a linker itself understands of options as a compiler takes them.

    ``-Wl,-z,now`` is unwrapped; what tells how to compile (-O2, -std=c++17, -Ifolder) is left out:
    all that is linked here has been compiled.
    """
    kept: list[str] = []
    left = iter(options)
    for option in left:
        if option in ("-I", "-D", "-U", "-isystem", "-include"):
            next(left, None)
        elif option.startswith("-Wl,"):
            kept += option.split(",")[1:]
        elif not _COMPILING.fullmatch(option):
            kept.append(option)
    return kept


def _link_ours(
    inputs: Sequence[Path],
    triple: str,
    result: Path,
    folder: Path,
    exports: Sequence[str] | None,
    options: Sequence[str] | None,
) -> None:
    paths = [str(path) for path in inputs]
    extra = _for_linker(options or ())
    if "wasm" in architecture_of(triple):
        arguments = ["wasm-ld", *WASM_FLAGS, *extra, "-o", str(result), *paths]
        run_zig(arguments, purpose="linking for WebAssembly")
        return
    if any(word in triple for word in ("darwin", "macos", "apple")):
        architecture = architecture_of(triple)
        target = f"{architecture}-macos"
        flags = ["cc", "-target", target, "-shared", "-nostdlib", "-Wl,-undefined,dynamic_lookup"]
        run_zig([*flags, *(options or ()), "-o", str(result), *paths], purpose="linking for macOS")
        return
    if any(word in triple for word in ("windows", "win32")):
        raise ToolchainError(
            f"there is no linker here for {triple}: write the objects (.a), and link them there."
        )
    flags = list(_LLD_FLAGS)
    if exports is not None:
        script = folder / "exports.ver"
        listed = " ".join(f'"{name}";' for name in exports)
        script.write_text("{ global: " + listed + " local: *; };\n")
        extra.append(f"--version-script={script}")
    run_zig(["ld.lld", *flags, *extra, "-o", str(result), *paths], purpose="linking")
    missing = ElfFile(_mapped(result), result.name).undefined
    if missing and _has_compiler_runtime(triple):
        # Compilers emit calls of their own (memcpy, 64-bit division on ARM): take just those
        # from zig's compiler runtime, which needs no libc.
        run_zig(
            [
                *("cc", "-target", musl_target(triple), "-shared", "-nostdlib", "-lcompiler_rt"),
                *(f"-Wl,{flag}" for flag in (*_RUNTIME_FLAGS, *extra)),
                *("-o", str(result), *paths),
            ],
            purpose="linking with the compiler's runtime",
        )


def _has_compiler_runtime(triple: str) -> bool:
    try:
        musl_target(triple)
    except ToolchainError:
        return False
    return True


def _link_theirs(
    inputs: Sequence[Path], result: Path, cc: Linker, options: Sequence[str] | None
) -> None:
    paths = [str(path) for path in inputs]
    if callable(cc):
        if options:
            cc(str(result), paths, options=list(options))
        else:
            cc(str(result), paths)
        return
    flags = ["-nostdlib", "-Wl,--build-id=none", "-Wl,--hash-style=both", "-Wl,-Bsymbolic"]
    flags += ["-Wl,--strip-debug", *(options or ()), "-lgcc"]
    user_cc.create_shared(result, paths, options=flags, cc=os.fspath(cc))
