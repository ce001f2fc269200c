"""What a target can do itself, as far as code generation has to know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from slipway.target.target import Target


@dataclass(frozen=True)
class Capability:
    """Facts about a target that decide between expansions.

    `half`: "native" (arithmetic on float16), "convert" (only to and from float32), or "soft".
    `rounding`: floor, ceil, trunc, nearbyint are instructions.  `fma`: fused multiply-add is.
    `fma64`, `rounding64`: the same for float64.  `rounds_to_bfloat`: an instruction rounds float32
    to bfloat16, perhaps with zero for denormal numbers.  `shuffles`: the code generator spells
    shuffles of vectors.  `chooses_addresses`: it makes one load of a choice between loads at one
    place of several memories.  `in_c`: what it writes is C, with C's rules for names.
    `divides_as_floats`: of vectors, only floats are divided.
    `wide_constant_bits`: of vectors whose repeated numbers are better loaded whole, 0 for none.
    """

    target: Target
    pointer_bits: int
    half: str
    rounding: bool
    rounding64: bool
    fma: bool
    fma64: bool
    rounds_to_bfloat: bool = False
    shuffles: bool = False
    chooses_addresses: bool = False
    in_c: bool = False
    divides_as_floats: bool = False
    wide_constant_bits: int = 0

    def extremes(self, bits: int, lanes: int) -> frozenset[str]:
        """Return the instructions for a maximum of floats of `bits`, by what they do with a NaN.

        "ignores": give the number; "propagates": give the NaN.
        """
        has = self.target.features.__contains__
        table = self.target.parsed_triple.table
        if table == "aarch64":
            return frozenset(("ignores", "propagates"))
        if table == "arm" and has("neon") and bits == 32 and lanes > 1:
            return frozenset(("propagates",))
        if table == "riscv" and bits in (32, 64) and has("d" if bits == 64 else "f"):
            scalar = lanes == 1 and has("zfa")
            return frozenset(("ignores", "propagates") if scalar else ("ignores",))
        if table == "wasm" and bits in (32, 64) and (lanes == 1 or has("simd128")):
            return frozenset(("propagates",))
        return frozenset()

    def chooses_extremes(self, bits: int, lanes: int) -> bool:
        """Return whether a maximum is one instruction as comparison and choice.

        One with a known number, or one that may pass over a NaN.  In WebAssembly that is pmax;
        engines make 8 instructions of the one that propagates a NaN.
        """
        return self.target.parsed_triple.table == "wasm" and bits in (32, 64) and lanes > 1

    def shifts_alike(self) -> bool:
        """Return whether an instruction shifts all lanes of a vector by one number only."""
        has = self.target.features.__contains__
        return self.target.parsed_triple.table == "wasm" and has("simd128")

    def holds_integers(self, bits: int, to_bits: int, lanes: int) -> bool:
        """Return whether an instruction converts a float to the nearest integer that there is.

        A NaN to 0, with one more on RISC-V.  NEON of 32 bits would be scalar code.
        """
        has = self.target.features.__contains__
        table = self.target.parsed_triple.table
        if table in ("wasm", "aarch64"):
            return bits >= 32
        if table == "arm":
            unit = has("vfp2sp") if bits == 32 else has("fp64")
            return to_bits == 32 and (unit if lanes == 1 else bits == 32 and has("mve.fp"))
        if table == "riscv":
            return to_bits <= self.pointer_bits and has("f" if bits == 32 else "d")
        return False

    def fused_lanes(self, bits: int) -> int:
        """Return the lanes of the longest vector whose product and sum LLVM fuses; 0: any.

        Relaxed SIMD has the instruction, which LLVM takes for one register but not for several.
        """
        has = self.target.features.__contains__
        is_relaxed = self.target.parsed_triple.table == "wasm" and has("relaxed-simd")
        return 128 // bits if is_relaxed and bits in (32, 64) else 0

    def combines_extremes(self, bits: int) -> bool:
        """Return whether LLVM makes maximum, comparison and choice of a maximum with NaN.

        On x86; elsewhere, and from comparisons alone, it takes more instructions.
        """
        return self.target.parsed_triple.table == "x86" and bits in (32, 64)

    def compares_into_vectors(self) -> bool:
        """Return whether comparisons of vectors give all ones where they hold, and not a mask.

        Such a lane of float32 or float64 is a NaN: ``or`` puts it where a choice would.
        """
        has = self.target.features.__contains__
        return self.target.parsed_triple.table == "x86" and not has("avx512vl")


@lru_cache(maxsize=64)
def capability_of(target: Target) -> Capability:
    """Return the capabilities of a target."""
    found = _processor(target)
    kind = target.kind.name
    written_in_c = kind == "c" or not target.kind.is_cpu  # languages of kernels have C's names
    in_llvm = kind == "llvm"
    return replace(found, shuffles=in_llvm, chooses_addresses=in_llvm, in_c=written_in_c)


def _processor(target: Target) -> Capability:
    has = target.features.__contains__
    bits = target.pointer_bits
    table = target.parsed_triple.table
    if target.kind.name == "c" or not target.kind.is_cpu:
        half = "native" if target.attrs.get("supports_float16") else "soft"
        return Capability(target, bits, half, False, False, False, False)
    if table == "x86":
        half = "native" if has("avx512fp16") and has("avx512vl") else (
            "convert" if has("f16c") else "soft")  # fmt: skip
        sse4 = has("sse4.1")
        rounds = has("avx512bf16") and not target.is_strict
        # AVX-512 repeats a number inside the instruction that takes it; SSE's are loaded whole.
        whole = 256 if has("avx2") and not has("avx512vl") else 0
        return Capability(
            target, bits, half, sse4, sse4, has("fma"), has("fma"), rounds,
            divides_as_floats=True, wide_constant_bits=whole,
        )  # fmt: skip
    if table == "aarch64":
        half = "native" if has("fullfp16") else "convert"
        return Capability(target, bits, half, True, True, True, True, has("bf16"))
    if table == "arm":
        # Vectors would need vrint and vfma in NEON, which came with ARMv8.
        modern = has("fp-armv8") and has("v8")
        half = "convert" if has("fp16") and has("neon") else "soft"
        return Capability(
            target, bits, half, modern, modern, has("vfp4") and has("neon"), has("vfp4")
        )
    if table == "riscv":
        half = "native" if has("zfh") and not has("v") else "soft"
        single, double = has("f"), has("d")
        return Capability(target, bits, half, False, False, single, double)
    if table == "wasm":
        whole = 128 if has("simd128") else 0
        return Capability(target, bits, "soft", True, True, False, False, wide_constant_bits=whole)
    return Capability(target, bits, "soft", False, False, False, False)
