"""Target triples: what "armv7l-none-linux-gnueabihf" says about architecture, system and ABI."""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass
from functools import lru_cache

from slipway.errors import TargetError, did_you_mean

# First word of a triple (a pattern): architecture name, table in cpus.json, pointer bits.
_ARCHES = (
    (r"x86_64|amd64|x64", "x86_64", "x86", 64),
    (r"i[3-6]86|x86", "x86", "x86", 32),
    (r"aarch64|arm64|arm64e", "aarch64", "aarch64", 64),
    (r"(thumb|arm)(v[4-9][a-z.0-9]*)?", "arm", "arm", 32),
    (r"riscv64[a-z]*", "riscv64", "riscv", 64),
    (r"riscv32[a-z]*", "riscv32", "riscv", 32),
    (r"wasm32", "wasm32", "wasm", 32),
    (r"hexagon", "hexagon", "hexagon", 32),
    (r"nvptx64", "nvptx64", "nvptx", 64),
    (r"amdgcn", "amdgcn", "amdgcn", 64),
)
_SAMPLES = ("x86_64", "aarch64", "armv7l", "thumbv7em", "riscv64", "riscv32", "wasm32", "hexagon")
# First word of a triple (a pattern): why there is no code for it, and what to write instead.
_REFUSED = (
    (
        r"wasm64",
        "WebAssembly with addresses of 64 bits is not in every browser, and slower where it is. "
        "Write wasm32: a page may have 4 GB.",
    ),
    (
        r"avr|msp430",
        "its addresses have 16 bits, and the calling convention and the runtime need 32 or 64. "
        "The smallest processors that Slipway compiles for are those like arm/cortex-m0 and "
        "riscv32-unknown-none-elf.",
    ),
)
_SYSTEMS = ("linux", "android", "darwin", "macos", "macosx", "ios", "windows", "win32", "wasi",
            "emscripten", "none", "unknown", "freebsd", "cuda", "amdhsa")  # fmt: skip
# Processors that run programs of an operating system: where a triple names none, it is unknown, as
# for LLVM and clang, and they are bare metal where "none", "elf" or "eabi" says so.
_APPLICATION = ("x86_64", "x86", "aarch64", "arm", "riscv64", "hexagon")
_BARE = r"none|elf|eabi(hf)?"
_MICROCONTROLLER = r"(thumb|arm)v(6-?s?-?m|7e?-?m|8(\.1)?-?m)"


@dataclass(frozen=True)
class Triple:
    """A triple taken apart.  `llvm` is the spelling to give to LLVM, `table` the CPU table."""

    text: str
    llvm: str
    arch: str
    table: str
    pointer_bits: int
    system: str
    environment: str

    @property
    def is_thumb(self) -> bool:
        """Whether the code is Thumb (a Cortex-M, or asked for)."""
        return self.llvm.startswith("thumb")

    @property
    def object_format(self) -> str:
        """One of "elf", "macho", "coff", "wasm"."""
        if self.arch.startswith("wasm"):
            return "wasm"
        if self.system in ("darwin", "macos", "macosx", "ios"):
            return "macho"
        return "coff" if self.system in ("windows", "win32") else "elf"

    @property
    def is_page(self) -> bool:
        """Whether the code is WebAssembly: an engine compiles it, JavaScript loads it."""
        return self.object_format == "wasm"

    @property
    def is_bare(self) -> bool:
        """Whether it is a processor without an operating system: a microcontroller, no page.

        Not where no word says so ("unknown"): aarch64 alone is an application processor.
        """
        return self.system == "none" and not self.is_page

    @property
    def is_small(self) -> bool:
        """Whether it is a microcontroller, whose memory is counted in kilobytes.

        A processor of 64 bits has gigabytes, also where no operating system is named.
        """
        return self.is_bare and self.pointer_bits == 32

    @property
    def loads_libraries(self) -> bool:
        """Whether there is an operating system with ELF libraries, whose constructors it runs."""
        return self.object_format == "elf" and not self.is_bare

    @property
    def is_hard_float(self) -> bool:
        """Whether 32-bit ARM passes floats in the registers of its FPU."""
        return self.environment.endswith("hf")

    @property
    def calls_aeabi(self) -> bool:
        """Whether divisions and copies are functions of the ARM EABI, which compilers call."""
        return self.arch == "arm"

    @property
    def has_loop_instructions(self) -> bool:
        """Whether instructions count the steps of a loop: Armv8.1-M."""
        return "v8.1m" in self.llvm


@lru_cache(maxsize=256)
def parse_triple(text: str) -> Triple:
    """Take a triple apart; raises TargetError when its architecture is not known.

    ``arm64-apple-macos``, ``armv7l-none-linux-gnueabihf`` and plain ``wasm32`` are understood.
    """
    words = text.split("-")
    row = next((row for row in _ARCHES if re.fullmatch(row[0], words[0])), None)
    for pattern, why in _REFUSED:
        if re.fullmatch(pattern, words[0]):
            raise TargetError(f"{text!r}: {why}")
    if row is None:
        raise TargetError(
            f"unknown architecture {words[0]!r} in target triple {text!r}."
            f"{did_you_mean(words[0], _SAMPLES)} Write for example aarch64-linux-gnu."
        )
    _, arch, table, bits = row
    system = next(
        (s for w in words[1:] for s in _SYSTEMS if re.fullmatch(s + r"[0-9.]*", w)
         and s not in ("none", "unknown")),
        "",
    )  # fmt: skip
    if not system:
        bare = any(re.fullmatch(_BARE, w) for w in words[1:]) or re.match(_MICROCONTROLLER, text)
        system = "none" if bare or arch not in _APPLICATION else "unknown"
    environment = words[-1] if len(words) > 2 and words[-1] not in _SYSTEMS else ""
    if "android" in environment:
        system = "android"
    llvm = _llvm_spelling(words, arch)
    if arch == "arm" and system == "unknown" and not environment:
        llvm = f"{words[0]}-unknown-unknown-eabi"  # else calls have names that no library has
    return Triple(text, llvm, arch, table, bits, system, environment)


def _llvm_spelling(words: list[str], arch: str) -> str:
    if words[0] == "amd64":
        words = ["x86_64", *words[1:]]
    if words[0] == "wasm32" and len(words) == 1:
        return f"{words[0]}-unknown-unknown"
    if arch == "hexagon" and len(words) == 1:
        return "hexagon-unknown-linux-musl"
    if len(words) == 3 and words[1] == "linux":  # aarch64-linux-gnu: the vendor is left out
        return f"{words[0]}-unknown-linux-{words[2]}"
    return "-".join(words)


@lru_cache(maxsize=1)
def host_triple() -> str:
    """Return the triple of the machine this runs on."""
    machine = platform.machine().lower() or "x86_64"
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if sys.platform == "darwin":
        return f"{'arm64' if machine == 'aarch64' else machine}-apple-macosx11.0"
    if sys.platform.startswith("win"):
        return f"{machine}-pc-windows-msvc"
    if machine.startswith("armv"):
        return f"{machine}-unknown-linux-gnueabihf"
    return f"{machine}-unknown-linux-gnu"
