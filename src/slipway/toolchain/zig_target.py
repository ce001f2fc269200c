"""A target in the words of Zig's C compiler."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.target import Target

_FPU = ("vfp2sp", "vfp2", "vfp3d16sp", "vfp3d16", "vfp4d16sp", "vfp4d16", "fp-armv8d16sp",
        "fp-armv8d16", "fp64", "fp16", "fullfp16")  # fmt: skip


def zig_options(target: Target, used: Sequence[str]) -> list[str]:
    """Return the options of `zig cc` for code of `target`.

    `used` are the features that kernels have instructions of: where LLVM asked this machine's
    processor for what it has, Zig, which goes by a name, is told of those.
    """
    triple = target.parsed_triple
    cpu = target.cpu if target.mcpu else "baseline"  # what the metadata says, not this CPU
    options = [] if target._is_host() else ["-target", zig_triple(target)]
    options.append(f"-O{int(target.attrs.get('opt-level', 3))}")
    extra = "".join(f"{f[0]}{f[1:].replace('-', '_')}" for f in target.mattr)
    if triple.is_page and target.has_feature("simd128"):  # Zig's baseline has none
        extra += "+simd128"
    if target.mcpu == "native":
        extra += "".join(f"+{f}" for f in used if target.has_feature(f))
    if triple.is_hard_float:  # Zig's Cortex-M come without their FPU
        extra += "".join(f"+{f.replace('-', '_')}" for f in _FPU if target.has_feature(f))
    if target.has_feature("mve"):  # Zig's Cortex-M55 comes without
        extra += "+mve_fp" if target.has_feature("mve.fp") else "+mve"
    options.append(f"-mcpu={cpu.replace('-', '_')}{extra}")
    return [*options, "-mthumb"] if triple.is_thumb else options


def zig_triple(target: Target) -> str:
    """Return Zig's spelling of the target's triple."""
    triple = target.parsed_triple
    arch = {"arm": "thumb" if triple.is_thumb else "arm"}.get(triple.arch, triple.arch)
    system = {
        "none": "freestanding",
        "android": "linux",
        "unknown": "linux",
        "darwin": "macos",
    }.get(triple.system, triple.system)
    if arch in ("arm", "thumb"):
        abi = "eabihf" if triple.is_hard_float else "eabi"
        return f"{arch}-{system}-{abi if system == 'freestanding' else 'musl' + abi}"
    return f"{arch}-{system}" + ("-musl" if system == "linux" else "")
