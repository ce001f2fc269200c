"""Which instruction set extensions this processor has, under LLVM's names.

Read from what the system says (``/proc/cpuinfo``), so that a device host needs no compiler to
know whether a library can run on it; what that does not name, the C runtime asks the processor
(``crt/posix/cpu.c``).
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from slipway.errors import ArtifactError
from slipway.runtime.libraries.native_library import plain_library_or_none

# Code for SVE needs registers of exactly one length: "sve-bits-256".
_SVE_LENGTH = "sve-bits-"
_PR_SVE_GET_VL = 51
# Linux lets a process use AMX's tiles once it has asked: arch_prctl(ARCH_REQ_XCOMP_PERM, TILEDATA).
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
_TILES = ("amx-",)
# /proc/cpuinfo "flags" (x86) -> LLVM feature, where the spelling differs.
_X86 = {
    "pni": "sse3",
    "pclmulqdq": "pclmul",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "bmi1": "bmi",
    "abm": "lzcnt",
    "rdrand": "rdrnd",
    "sha_ni": "sha",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512_bitalg": "avx512bitalg",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "avx512_vp2intersect": "avx512vp2intersect",
    "avx_vnni": "avxvnni",
    "amx_bf16": "amx-bf16",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
}
_X86_PLAIN = frozenset(
    [
        "mmx",
        "sse",
        "sse2",
        "ssse3",
        "fma",
        "cx16",
        "movbe",
        "popcnt",
        "aes",
        "avx",
        "f16c",
        "cmov",
        "avx2",
        "bmi2",
        "avx512f",
        "avx512dq",
        "adx",
        "avx512ifma",
        "avx512cd",
        "avx512bw",
        "avx512vl",
        "avx512vbmi",
        "gfni",
        "vaes",
        "vpclmulqdq",
        "sse4a",
        "xop",
        "fma4",
    ]
)
# "Features" of /proc/cpuinfo (ARM) -> LLVM features.
_AARCH64 = {
    "fp": "fp-armv8",
    "asimd": "neon",
    "aes": "aes",
    "sha2": "sha2",
    "crc32": "crc",
    "atomics": "lse",
    "fphp": "fullfp16",
    "asimdrdm": "rdm",
    "jscvt": "jsconv",
    "fcma": "complxnum",
    "lrcpc": "rcpc",
    "sha3": "sha3",
    "asimddp": "dotprod",
    "sve": "sve",
    "asimdfhm": "fp16fml",
    "sve2": "sve2",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sme": "sme",
}
_ARM = {
    "neon": "neon",
    "vfpv3": "vfp3",
    "vfpv4": "vfp4",
    "idiva": "hwdiv-arm",
    "idivt": "hwdiv",
    "vfpd32": "d32",
    "asimdhp": "fullfp16",
    "asimddp": "dotprod",
    "aes": "aes",
    "sha2": "sha2",
    "crc32": "crc",
}


def parse_cpuinfo(text: str, machine: str) -> frozenset[str]:
    """Return LLVM features from the text of ``/proc/cpuinfo`` of a machine (``uname -m``)."""
    words: set[str] = set()
    isa = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            words = set(value.split())
        elif key.strip() == "isa":
            isa = value.strip().lower()
    if machine in ("x86_64", "AMD64", "i686"):
        return frozenset(
            _X86.get(word, word) for word in words if word in _X86 or word in _X86_PLAIN
        )
    if machine in ("aarch64", "arm64"):
        return frozenset(_AARCH64[word] for word in words if word in _AARCH64)
    if machine.startswith("arm"):
        found = {_ARM[word] for word in words if word in _ARM}
        return frozenset(found | ({"vfp2"} if "vfp" in words else set()))
    if machine.startswith("riscv"):
        base, *extensions = isa.removeprefix("rv64").removeprefix("rv32").split("_")
        letters = set(base.replace("g", "imafd"))
        return frozenset(letters | set(extensions))
    return frozenset()


def known_features(machine: str) -> frozenset[str]:
    """Return the features that can be looked up on a kind of machine; others are not checked."""
    if machine in ("x86_64", "AMD64", "i686"):
        return frozenset(_X86.values()) | _X86_PLAIN
    if machine in ("aarch64", "arm64"):
        return frozenset(_AARCH64.values())
    if machine.startswith("arm"):
        return frozenset(_ARM.values())
    return frozenset("iamfdcv") if machine.startswith("riscv") else frozenset()


@lru_cache(maxsize=1)
def host_features() -> frozenset[str]:
    """Return the features of this processor; empty where the system does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return frozenset()
    return parse_cpuinfo(text, platform.machine())


def missing_features(needed: Iterable[str]) -> list[str]:
    """Return those of the features `needed` that this processor is known to lack, sorted."""
    have = host_features()
    checked = known_features(platform.machine()) if have else frozenset()
    length = f"{_SVE_LENGTH}{sve_bits()}"
    return sorted(
        name
        for name in set(needed)
        if (name not in have if name in checked else _runtime_denies(name))
        or (name.startswith(_SVE_LENGTH) and name != length)
        or (name.startswith(_TILES) and not permits_tiles())
    )


def permits_tiles() -> bool:
    """Ask the system to let this process use AMX's tiles; return whether it does.

    Threads and forked children may use them too.  Asking again changes nothing.
    """
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux":
        return False
    syscall = ctypes.CDLL(None).syscall
    return int(syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, ctypes.c_long(_TILE_DATA))) == 0


def _runtime_denies(name: str) -> bool:
    """Whether the C runtime is there, knows the feature `name`, and this processor has it not."""
    runtime = plain_library_or_none()
    return runtime is not None and runtime.slw_cpu_has(name.encode(), len(name)) == 0


def sve_bits() -> int:
    """Return how long this processor's SVE registers are; 0 where it has none."""
    if platform.machine() not in ("aarch64", "arm64") or platform.system() != "Linux":
        return 0
    answer = ctypes.CDLL(None).prctl(_PR_SVE_GET_VL)
    return (answer & 0xFFFF) * 8 if answer > 0 else 0


def check_isa(needed: Iterable[str], name: str) -> None:
    """Raise ArtifactError if code that uses these features cannot run here."""
    missing = missing_features(needed)
    if missing:
        have = host_features()
        best = [word for word in ("avx512f", "avx2", "avx", "sse4.2", "neon") if word in have]
        here = f"; the best it has is {best[0]}" if best else ""
        if all(word in have for word in missing):
            raise ArtifactError(
                f"{name} needs the processor features {', '.join(missing)}, which this processor "
                "has, but the system does not let this process use: Linux 5.16 permits them, "
                "unless a sandbox or a small signal stack (sigaltstack) is in the way. Allow the "
                "call arch_prctl(ARCH_REQ_XCOMP_PERM), or compile with -mattr=-amx-tile."
            )
        raise ArtifactError(
            f"{name} needs the processor features {', '.join(missing)}, which this processor does "
            f"not have{here}. Compile it for this processor: give its -mcpu in the target, or "
            "leave those features out of -mattr."
        )
