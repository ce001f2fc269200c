"""Static programs with the part of zig's musl that they take.

Asked for a static program, `zig cc` compiles all of musl first: over a thousand files, each in a
process of its own, most of a minute of processor time for a library of which a device server takes
a tenth. Here the linker says what is missing, the files that define it are compiled, and so on
until nothing is; what a file of the library brings is the same as from an archive. Whatever cannot
be had so, with a zig whose library lies elsewhere or has other names, `zig cc` links as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from slipway.errors import ToolchainError
from slipway.toolchain.tempdir import scratch
from slipway.toolchain.zig import cache_folder, run_zig

# As zig compiles musl.
_FLAGS = (
    "-std=c99", "-ffreestanding", "-fexcess-precision=standard", "-frounding-math",
    "-ffp-contract=off", "-fno-strict-aliasing", "-Wa,--noexecstack", "-D_XOPEN_SOURCE=700",
    "-fomit-frame-pointer", "-fno-stack-protector", "-w",
    "-Os", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
    "-ffunction-sections", "-fdata-sections",
)  # fmt: skip
_ROUNDS = 40  # of what is missing; a device server needs ten
_UNDEFINED = re.compile(r"undefined (?:\w+ )?symbol: (\w+)")
_LIBRARY_FOLDER = re.compile(r'"?\.?lib_dir"?\s*[=:]\s*"([^"\n]+)"')
# A line that may define names, in C at its margin and in assembly.
_DEFINING = re.compile(
    r"^(?!static\b|typedef\b|extern\b|return\b)(?:[A-Za-z_].*|\.(?:globa?l|weak)\s.*)$", re.M
)
# A name that headers of the library's own give another name.
_RENAMING = re.compile(r"^#define (\w+) ([A-Za-z_]\w*)$", re.M)
# Likewise, where a time has 64 bits on a processor of 32.
_REDIRECTING = re.compile(r"\b__REDIR\((\w+), *(\w+)\)")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class _Program:
    """What a program is compiled for: zig's name of the target, and its processor's option."""

    target: str
    cpu: tuple[str, ...]

    @property
    def architecture(self) -> str:
        """The first word of the target, which musl's folders are named by."""
        return self.target.split("-", 1)[0]


@dataclass
class _Linked:
    """The objects of a program so far, and what has been taken of the library."""

    objects: list[Path]
    taken: set[Path] = field(default_factory=set)
    has_zig_part: bool = False


def link_static(target: str, out: Path, objects: Sequence[Path], cpu: Sequence[str] = ()) -> None:
    """Link relocatable `objects` into the static program `out` for musl's `target`.

    `cpu` is the option that names the processor. Raises ToolchainError where something is missing
    that neither the objects nor musl has.
    """
    program = _Program(target, tuple(cpu))
    with scratch("slipway-musl-") as folder:
        try:
            parts = _with_library(program, list(objects), Path(folder))
            _link(program, out, parts, "-nostdlib", "-lcompiler_rt")
        except ToolchainError:
            _link(program, out, list(objects))


def _link(program: _Program, out: Path, objects: Sequence[Path], *libraries: str) -> None:
    flags = ["-target", program.target, *program.cpu, "-static", "-s", "-Wl,--gc-sections"]
    command = ["cc", *flags, "-o", str(out), *map(str, objects), *libraries]
    run_zig(command, purpose=f"linking for {program.target}")


def _with_library(program: _Program, objects: list[Path], folder: Path) -> list[Path]:
    """Return the objects and those of the library that they need, with what these need."""
    index = _index(program.architecture)
    start = folder / "crt1.o"
    _compile(program, start, [_musl() / "crt" / "crt1.c"])
    linked = _Linked([start, *objects])
    for number in range(_ROUNDS):
        missing = _missing(linked.objects, folder / "tried")
        files = sorted(
            path
            for path in {_defining(index, name, linked.taken) for name in missing}
            if path is not None
        )
        if files:
            linked.taken.update(files)
            part = folder / f"part{number}.o"
            _compile(program, part, files)
            linked.objects.append(part)
        elif missing and not linked.has_zig_part and (_library() / "c.zig").is_file():
            linked.has_zig_part = True
            part = folder / "zig_part.o"
            _compile_zig_part(program, part)
            linked.objects.append(part)
        else:
            return linked.objects
    raise ToolchainError(f"musl's part of a program for {program.target} has no end")


def _missing(objects: Sequence[Path], out: Path) -> list[str]:
    """Return the symbols that objects refer to and none defines.

    Those of functions that nothing calls count as well: by such ones musl says what has to be there
    besides, the flushing of files at the end for one.
    """
    flags = ["-static", "--error-limit=0", "-o", str(out)]
    try:
        run_zig(["ld.lld", *flags, *map(str, objects)], purpose="linking")
    except ToolchainError as error:
        return sorted(set(_UNDEFINED.findall(str(error))))
    return []


def _compile(program: _Program, out: Path, files: Sequence[Path]) -> None:
    musl, generated = _musl(), _library() / "libc" / "include"
    include = [
        musl / "arch" / program.architecture, musl / "arch" / "generic",
        musl / "src" / "include", musl / "src" / "internal", musl / "include",
        generated / f"{program.architecture}-linux-musl", generated / "generic-musl",
    ]  # fmt: skip
    flags = [*_FLAGS, "-nostdinc", "-isystem", str(_library() / "include")]
    flags += [word for path in include for word in ("-I", str(path))]
    command = ["cc", "-target", program.target, *program.cpu, *flags, "-r", "-o", str(out)]
    run_zig([*command, *map(str, files)], purpose=f"compiling musl for {program.target}")


def _compile_zig_part(program: _Program, out: Path) -> None:
    """Compile what zig has written anew of the library, in one object."""
    command = [
        *("build-obj", str(_library() / "c.zig"), "-target", program.target, *program.cpu),
        *("-OReleaseSmall", "-lc", "-fno-unwind-tables", "-fstrip", "-ffunction-sections"),
        *("-fdata-sections", "--cache-dir", str(cache_folder()), f"-femit-bin={out}"),
    ]
    run_zig(command, purpose=f"compiling zig's libc for {program.target}", cwd=out.parent)


def _defining(index: dict[str, list[Path]], name: str, taken: set[Path]) -> Path | None:
    """Return the file that most likely defines a name, of those not taken yet."""
    files = [path for path in index.get(name, ()) if path not in taken]
    return min(files, key=lambda path: path.stem.strip("_") != name.strip("_"), default=None)


@lru_cache(maxsize=4)
def _index(architecture: str) -> dict[str, list[Path]]:
    """Return the files of musl's sources that a name may be defined in."""
    renamed: dict[str, str] = {}
    for header in (_musl() / "src").rglob("*.h"):
        renamed.update(_RENAMING.findall(_text(header)))
    for header in (_musl() / "include").rglob("*.h"):
        renamed.update(_REDIRECTING.findall(_text(header)))
    index: dict[str, list[Path]] = {}
    for path in _sources(architecture):
        lines = _DEFINING.findall(_text(path))
        words = {word for line in lines for word in _WORD.findall(line)}
        for word in words | {renamed[word] for word in words & renamed.keys()}:
            index.setdefault(word, []).append(path)
    return index


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _sources(architecture: str) -> Iterator[Path]:
    """Yield musl's source files for an architecture, whose own stand for the common ones."""
    for folder in sorted(path for path in (_musl() / "src").iterdir() if path.is_dir()):
        own = {path.stem: path for path in _code(folder / architecture)}
        yield from own.values()
        yield from (path for path in _code(folder) if path.stem not in own)


def _code(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in (".c", ".s", ".S"))


def _musl() -> Path:
    return _library() / "libc" / "musl"


@lru_cache(maxsize=1)
def _library() -> Path:
    """Return the folder of zig's own sources; ToolchainError where it has no musl."""
    found = _LIBRARY_FOLDER.search(run_zig(["env"], purpose="asking zig where its library is"))
    # Zig tells it from here, where Python was started by a path from here.
    folder = Path(found[1]).resolve() if found is not None else None
    if folder is None or not (folder / "libc" / "musl" / "crt" / "crt1.c").is_file():
        raise ToolchainError("this zig has no sources of musl")
    return folder
