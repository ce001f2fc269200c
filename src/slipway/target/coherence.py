"""Options of a CPU target that contradict each other, or have values that LLVM does not know.

LLVM ends its process on some of them and passes over others without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.errors import TargetError, did_you_mean
from slipway.target import cpus
from slipway.target.triple import Triple

# ABI -> the feature that its registers need; by architecture.
_ABIS = {
    "riscv32": {"ilp32": "", "ilp32f": "f", "ilp32d": "d", "ilp32e": ""},
    "riscv64": {"lp64": "", "lp64f": "f", "lp64d": "d", "lp64e": ""},
    "arm": {"aapcs": "", "aapcs-linux": "", "apcs-gnu": "", "aapcs16": ""},
    "aarch64": {"aapcs": "", "darwinpcs": "", "aapcs-soft": "", "pauthtest": ""},
}
# -march -> the first word of a triple.
ARM_PROFILES = {
    "armv6-m": "thumbv6m", "armv7-m": "thumbv7m", "armv7e-m": "thumbv7em",
    "armv8-m.base": "thumbv8m.base", "armv8-m.main": "thumbv8m.main",
    "armv8.1-m.main": "thumbv8.1m.main", "armv7-a": "armv7a", "armv7-r": "armv7r",
    "armv8-a": "armv8a", "armv6": "armv6",
}  # fmt: skip
FPU_FEATURES = {
    "neon": ("+neon",), "neon-vfpv4": ("+neon", "+vfp4"), "neon-fp-armv8": ("+neon", "+fp-armv8"),
    "vfpv3": ("+vfp3",), "vfpv3-d16": ("+vfp3d16",), "vfpv4": ("+vfp4",),
    "vfpv4-d16": ("+vfp4d16",), "fpv4-sp-d16": ("+vfp4d16sp",), "fpv5-sp-d16":
    ("+fp-armv8d16sp",), "fpv5-d16": ("+fp-armv8d16",), "none": ("-vfp2sp",),
}  # fmt: skip
_MODES = ("16bit-mode", "32bit-mode", "64bit-mode")
# Of x86, what LLVM can do in 64-bit code only, and ends on elsewhere.
_64_BIT_CODE = ("lvi-cfi", "lvi-load-hardening", "seses", "tagged-globals")
_FLOAT_ABIS = ("hard", "soft", "softfp")
_COMPILERS_IN_PROCESS = ("mcjit", "orcjit")
_LONGEST_VECTOR = 16384  # bits


def check_options(
    triple: Triple, cpu: str, mattr: tuple[str, ...], attrs: Mapping[str, Any]
) -> None:
    """Raise TargetError where the options of a CPU target do not fit each other.

    `cpu` is "" where none was asked for.
    """
    _one_of("mfloat-abi", attrs, _FLOAT_ABIS)
    _one_of("jit", attrs, _COMPILERS_IN_PROCESS)
    _check_arm(triple, attrs)
    if attrs.get("mtune"):
        cpus.check_cpu(triple.table, str(attrs["mtune"]))
    level = attrs.get("opt-level", 3)
    if not 0 <= level <= 3:
        raise TargetError(f"-opt-level={level}: the levels of optimisation are 0, 1, 2 and 3")
    bits = attrs.get("vector-width", 0)
    if not 0 <= bits <= _LONGEST_VECTOR or bits & (bits - 1) or 0 < bits < 8:
        raise TargetError(
            f"-vector-width={bits}: the bits of a vector are a power of two, 8 to "
            f"{_LONGEST_VECTOR}, or 0 for none"
        )
    for name in ("num-cores", "fma-units", "fma-latency", "l1-cache-bytes", "l1-cache-ways",
                 "l2-cache-bytes", "cache-line-bytes"):  # fmt: skip
        if attrs.get(name, 1) < 1:
            raise TargetError(f"-{name}={attrs[name]}: it must be 1 or more")
    if triple.table == "x86":
        _check_mode(triple, mattr)
    if triple.table == "riscv":
        _check_register_bits(triple, cpu, mattr)
    if triple.table == "arm":
        _check_version(triple, mattr)
    if triple.table == "hexagon":
        _check_vectors(mattr)
    if triple.arch == "x86_64" and (cpu or mattr):
        _check_64_bits(triple, cpu, mattr)
    _check_abi(triple, cpu, mattr, attrs)


def _check_arm(triple: Triple, attrs: Mapping[str, Any]) -> None:
    """Check what only 32-bit ARM has; -march=armv8-a is that of aarch64 too."""
    _one_of("march", attrs, tuple(ARM_PROFILES))
    _one_of("mfpu", attrs, tuple(FPU_FEATURES))
    for name in ("march", "mfpu", "mfloat-abi"):
        value = attrs.get(name)
        if value and triple.table != "arm" and (triple.table, value) != ("aarch64", "armv8-a"):
            raise TargetError(
                f"-{name}={value} is an option of 32-bit ARM, and the target is {triple.text}. "
                "Name its processor with -mcpu, its instructions with -mattr"
            )


def _one_of(name: str, attrs: Mapping[str, Any], known: tuple[str, ...]) -> None:
    value = attrs.get(name, "")
    if value and value not in known:
        raise TargetError(
            f"unknown -{name}={value}.{did_you_mean(value, known)} It is one of {', '.join(known)}"
        )


def _check_mode(triple: Triple, mattr: tuple[str, ...]) -> None:
    """The processor's mode follows from the triple; code for another one crashes."""
    own = "64bit-mode" if triple.arch == "x86_64" else "32bit-mode"
    for change in mattr:
        name = change[1:]
        if name in ("soft-float", "x32") and change[0] == "+":
            raise TargetError(
                f"-mattr={change}: kernels for x86 compute floating point numbers in registers, "
                "and addresses have the width of the triple. Leave it out"
            )
        if change[0] == "+" and name in _64_BIT_CODE and triple.arch != "x86_64":
            raise TargetError(
                f"-mattr={change} changes 64-bit code, and {triple.text} has none. Leave it out"
            )
        if name in _MODES and (change[0] == "+") != (name == own):
            raise TargetError(
                f"-mattr={change}: {triple.text} runs in the {own.removesuffix('-mode')} mode. "
                "Leave it out, or choose another -mtriple"
            )


def _check_register_bits(triple: Triple, cpu: str, mattr: tuple[str, ...]) -> None:
    """A RISC-V processor has registers of 32 bits or of 64, and so has the triple."""
    start = cpu if cpu and cpu != "native" else ""
    own, other = ("32bit", "64bit") if triple.pointer_bits == 32 else ("64bit", "32bit")
    if other in cpus.resolve_features("riscv", start, mattr):
        named = start and other in cpus.resolve_features("riscv", start, ())
        option = "-mcpu" if named else "-mattr"
        raise TargetError(
            f"{f'-mcpu={start}' if named else option} is of {other.removesuffix('bit')} bits, and "
            f"{triple.text} of {own.removesuffix('bit')}. Choose another {option} or another "
            "-mtriple"
        )


def _check_vectors(mattr: tuple[str, ...]) -> None:
    """Hexagon's vectors have one length of two, which no version of them says."""
    have = cpus.resolve_features("hexagon", "", mattr)
    lengths = [f for f in ("hvx-length64b", "hvx-length128b") if f in have]
    vectors = sorted(f for f in have if f.startswith("hvx"))
    if vectors and len(lengths) != 1:
        said = "two lengths" if lengths else "no length"
        raise TargetError(
            f"-mattr={','.join(mattr)} says {said} of vectors. "
            "Add +hvx-length128b or +hvx-length64b, one of them"
        )


def _check_version(triple: Triple, mattr: tuple[str, ...]) -> None:
    """Of ARM's architecture no older version can be made by taking a part away from a newer."""
    parts = cpus.resolve_features("arm", "", ("+v6t2",))
    for change in mattr:
        if change == "-vfp2sp" and triple.text.endswith("hf"):
            raise TargetError(
                f"-mattr={change} leaves no floating point registers, in which {triple.text} "
                "passes floating point numbers. Leave it out, or choose a -mtriple without hf"
            )
        if change[0] == "-" and change[1:] in parts:
            raise TargetError(
                f"-mattr={change}: which version of the architecture it is, {triple.text} says. "
                "Leave it out, or choose another -mtriple, armv6-linux-gnueabihf or "
                "thumbv6m-none-eabi say"
            )


def _check_64_bits(triple: Triple, cpu: str, mattr: tuple[str, ...]) -> None:
    start = cpu if cpu and cpu != "native" else "x86-64"
    have = cpus.resolve_features("x86", start, mattr)
    if "64bit" not in have:
        why = f"-mcpu={cpu}" if start == cpu and not any(m == "-64bit" for m in mattr) else "-mattr"
        raise TargetError(
            f"{why} leaves no 64-bit instructions, which {triple.text} needs. Choose another CPU, "
            "or -mtriple=i686-linux-gnu for 32-bit code"
        )
    if "sse2" not in have:  # LLVM passes results in other registers then than other objects do
        raise TargetError(
            f"-mattr leaves no SSE2, in whose registers {triple.text} passes floating point "
            "numbers. Turn off what is newer, or use -mtriple=i686-linux-gnu"
        )


def _check_abi(triple: Triple, cpu: str, mattr: tuple[str, ...], attrs: Mapping[str, Any]) -> None:
    abi = str(attrs.get("mabi", ""))
    if not abi:
        return
    known = _ABIS.get(triple.arch, {})
    if not known:
        raise TargetError(f"-mabi={abi}: {triple.arch} has one ABI; leave -mabi out")
    _one_of("mabi", attrs, tuple(known))
    lacking = known[abi]
    generic = ("+f", "+d") if triple.arch == "riscv64" and not cpu else ()
    start = cpu if cpu and cpu != "native" else ""
    if lacking and lacking not in cpus.resolve_features(triple.table, start, (*generic, *mattr)):
        raise TargetError(
            f"-mabi={abi} passes numbers in registers of the feature {lacking!r}, which this "
            f"processor has not. Add -mattr=+{lacking}, or choose another ABI"
        )
