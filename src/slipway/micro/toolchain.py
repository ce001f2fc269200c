"""Programs that firmware needs: cross compilers, make, emulators; found, run, and explained.

Objects of the device runtime are kept between projects: `kept_objects`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from slipway.codegen import cache
from slipway.errors import DoesNotFitError, ToolchainError, did_you_mean, with_words

_PACKAGES = {
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "arm-none-eabi-nm": "binutils-arm-none-eabi",
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
    "qemu-system-arm": "qemu-system-arm",
    "qemu-system-riscv32": "qemu-system-misc",
    "qemu-system-riscv64": "qemu-system-misc",
    "make": "make",
    "cmake": "cmake",
    "cppcheck": "cppcheck",
}
_ELSEWHERE = {
    "arduino-cli": "See https://arduino.github.io/arduino-cli/latest/installation",
    "pyocd": "It programs most boards: pip install pyocd",
    "esptool": "It programs Espressif's chips: pip install esptool",
    "picotool": "It programs Raspberry Pi's chips: https://github.com/raspberrypi/picotool",
    "teensy_loader_cli": "It programs Teensy boards: sudo apt-get install teensy-loader-cli",
    "pio": "It comes with PlatformIO: pip install platformio",
    "idf.py": "It comes with ESP-IDF: https://docs.espressif.com, Get Started",
    "west": "It comes with Zephyr: pip install west",
}

_LAST_WORDS_S = 2.0
_OVERFLOW = re.compile(r"region `(\w+)' overflowed by (\d+) bytes")  # as GNU's linker says it


def find_tool(name: str) -> str:
    """Return the path of a program; raises ToolchainError with the install line."""
    path = shutil.which(name)
    if path is None:
        hint = _ELSEWHERE.get(Path(name).name)
        if hint is None and name in _PACKAGES:
            hint = f"On Debian and Ubuntu: sudo apt-get install {_PACKAGES[name]}"
        unknown = "Install it, or put its folder on PATH." + did_you_mean(name, _PACKAGES)
        raise ToolchainError(f"{name} is not installed. {hint or unknown}")
    return path


def run_tool(command: Sequence[str], purpose: str, timeout_s: float = 600.0) -> str:
    """Run a program to its end and return what it printed.

    Raises ToolchainError with the program's own words when it fails or takes too long; then what it
    has started is ended with it, which would hold a board's probe or port otherwise.
    """
    with subprocess.Popen(
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                took = f"{purpose} took more than {timeout_s:g} s: {shlex.join(command)}"
                raise ToolchainError(with_words(took, _said_until_now(process))) from None
            raise
    if process.returncode != 0:
        if lacking := _OVERFLOW.findall(errors):
            regions = ", ".join(f"{region} lacks {int(size):,} bytes" for region, size in lacking)
            raise DoesNotFitError(
                f"{purpose} failed: it does not fit, {regions}. `slipway fit MODEL --board BOARD` "
                "says which part takes how much, and what would make it fit."
            )
        message = (errors.strip() or output.strip())[-4000:]
        raise ToolchainError(with_words(f"{purpose} failed ({shlex.join(command)})", message))
    return output


def _said_until_now(process: subprocess.Popen[str]) -> str:
    """Return the last words of a program that was ended: they say what it was waiting for."""
    try:  # a descendant in a session of its own may hold the pipe open
        output, errors = process.communicate(timeout=_LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        return ""
    return (errors.strip() or output.strip())[-4000:]


# What a compilation leaves, without which gcc does not write the file: the object, its call graph,
# what it was made of.
_LEFT = (".o", ".ci", ".d")
_SIZE = struct.Struct("<q")
_RUNTIME = "crt"  # the folder of a project whose files are compiled alike in every project


def make_project(folder: Path, jobs: int, *variables: str) -> None:
    """Run make in a project whose Makefile compiles the runtime's files one by one.

    An object that is there already is make's business; the others, see `kept_objects`.
    """
    make = [find_tool("make"), "-C", str(folder), "-j", str(jobs), *variables]
    # The compiler and its flags as make reads them, whatever somebody has changed in the file.
    say = "--eval=slipway-flags: ; $(info $(CC) $(CFLAGS))@:"
    said = run_tool([*make, "--no-print-directory", say, "slipway-flags"], "reading the Makefile")
    with kept_objects(folder, said.split(maxsplit=1)[0], said):
        run_tool(make, "building the firmware")


@contextlib.contextmanager
def kept_objects(folder: Path, compiler: str, flags: str) -> Iterator[list[Path]]:
    """Give a project the runtime's objects that the same compiler has made with the same `flags`.

    They come from the kernel cache; yields the sources whose objects are still missing, and keeps
    what the block makes of them at ``build/crt/src``.
    """
    wanted = _absent(folder, compiler, flags)
    missing = []
    for base, (source, key) in wanted.items():
        base.parent.mkdir(parents=True, exist_ok=True)
        made = cache.load(key)
        if made is None:
            missing.append(source)
        else:
            _unpack(made, base)
    yield missing
    for base, (source, key) in wanted.items():
        if source in missing and base.with_suffix(".o").exists():
            cache.store(key, _packed(base))


def _absent(folder: Path, compiler: str, flags: str) -> dict[Path, tuple[Path, str]]:
    """Return the runtime's objects that are not there, without suffix: their sources and keys."""
    found = shutil.which(compiler)
    if found is None:
        return {}  # who runs it says so
    sources = sorted((folder / _RUNTIME / "src").glob("*.c"))
    bases = {folder / "build" / source.relative_to(folder): source for source in sources}
    absent = {b: source for b, source in bases.items() if not b.with_suffix(".o").exists()}
    if not absent:
        return {}
    status = Path(found).resolve().stat()
    headers = sorted((folder / _RUNTIME).rglob("*.h"))
    common = cache.key_of(
        found, f"{status.st_size} {status.st_mtime_ns}", flags,
        *(part for path in headers for part in (str(path.relative_to(folder)), path.read_bytes())),
    )  # fmt: skip
    return {
        base.with_suffix(""): (source, cache.key_of(common, source.name, source.read_bytes()))
        for base, source in absent.items()
    }


def _packed(base: Path) -> bytes:
    """Return the files of one compilation, each behind its size; -1 for one that is not there."""
    parts = []
    for suffix in _LEFT:
        path = base.with_suffix(suffix)
        content = path.read_bytes() if path.exists() else None
        parts.append(_SIZE.pack(-1 if content is None else len(content)) + (content or b""))
    return b"".join(parts)


def _unpack(packed: bytes, base: Path) -> None:
    """Write the files of one compilation, the object last, which must be the newest for make."""
    at, files = 0, {}
    for suffix in _LEFT:
        (size,) = _SIZE.unpack_from(packed, at)
        at += _SIZE.size
        if size >= 0:
            files[suffix] = packed[at : at + size]
            at += size
    for suffix in reversed(_LEFT):
        if suffix in files:
            base.with_suffix(suffix).write_bytes(files[suffix])
