"""Options that contradict each other are errors of the target, before any code is generated."""

import pytest

from slipway.errors import TargetError
from slipway.target import Target

RISCV = "-mtriple=riscv64-linux-gnu"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-opt-level=9", "levels of optimisation are 0, 1, 2 and 3"),
        ("-opt-level=-1", "levels of optimisation"),
        ("-vector-width=7", "power of two"),
        ("-vector-width=-128", "power of two"),
        ("-vector-width=1048576", "power of two"),
        ("-num-cores=0", "must be 1 or more"),
        ("-l1-cache-bytes=-1", "must be 1 or more"),
        ("-mtriple=x86_64-linux-gnu -mcpu=i386", "-mcpu=i386 leaves no 64-bit instructions"),
        ("-mtriple=x86_64-linux-gnu -mcpu=pentium4", "-mtriple=i686-linux-gnu"),
        ("-mtriple=x86_64-linux-gnu -mattr=-64bit", "-mattr leaves no 64-bit instructions"),
        ("-mtriple=x86_64-linux-gnu -mattr=-sse", "leaves no SSE2"),
        ("-mtriple=x86_64-linux-gnu -mattr=+avx2,-sse2", "leaves no SSE2"),
        ("-mtriple=x86_64-linux-gnu -mattr=+16bit-mode", "runs in the 64bit mode"),
        ("-mtriple=x86_64-linux-gnu -mattr=+32bit-mode", "runs in the 64bit mode"),
        ("-mtriple=x86_64-linux-gnu -mattr=-64bit-mode", "runs in the 64bit mode"),
        ("-mtriple=i686-linux-gnu -mattr=+64bit-mode", "runs in the 32bit mode"),
        ("-mtriple=x86_64-linux-gnu -mattr=+soft-float", "in registers"),
        ("-mtriple=x86_64-linux-gnu -mattr=+x32", "the width of the triple"),
        ("-mtriple=x86_64-linux-gnu -mabi=sysv", "x86_64 has one ABI"),
        (f"{RISCV} -mabi=lp64dd", "Did you mean 'lp64d'"),
        (f"{RISCV} -mabi=ilp32", "unknown -mabi=ilp32"),
        (f"{RISCV} -mabi=lp64d -mattr=-d", "the feature 'd', which this processor has not"),
        ("-mtriple=riscv32-unknown-elf -mabi=ilp32d", "the feature 'd'"),
        ("-mtriple=i686-linux-gnu -mattr=+seses", "changes 64-bit code"),
        ("-mtriple=i686-linux-gnu -mattr=+lvi-cfi", "changes 64-bit code"),
        ("-mtriple=hexagon -mattr=+hvxv68", r"no length of vectors.*\+hvx-length128b"),
        ("-mtriple=hexagon -mattr=+hvx-length64b,+hvx-length128b", "two lengths of vectors"),
        ("-mtriple=riscv32-unknown-elf -mcpu=sifive-u74", "-mcpu=sifive-u74 is of 64 bits, and"),
        (f"{RISCV} -mcpu=sifive-e31", "-mcpu=sifive-e31 is of 32 bits, and"),
        (f"{RISCV} -mattr=+32bit", "-mattr is of 32 bits"),
        ("-mtriple=riscv32-unknown-elf -mattr=+rva22u64", "-mattr is of 64 bits"),
        ("-mtriple=armv7a-linux-gnueabihf -mattr=-v6t2", "which version of the architecture"),
        ("-mtriple=armv7a-linux-gnueabihf -mattr=-vfp2sp", "no floating point registers"),
        ("-mtriple=armv7a-linux-gnueabihf -mattr=-thumb2", "choose another -mtriple"),
        ("-mtriple=thumbv7em-none-eabi -mattr=-v4t", "choose another -mtriple"),
        ("-mtriple=armv7l-linux-gnueabihf -mfloat-abi=hrad", "Did you mean 'hard'"),
    ],
)
@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_contradictions(kind, words, message):
    with pytest.raises(TargetError, match=message):
        Target(f"{kind} {words}")


@pytest.mark.parametrize(
    "words",
    [
        "-opt-level=0 -vector-width=0",
        "-mtriple=i686-linux-gnu -mcpu=pentium4",
        "-mtriple=x86_64-linux-gnu -mcpu=core2 -mattr=-sse4.1",
        "-mtriple=i686-linux-gnu -mattr=-sse",
        "-mtriple=i686-linux-gnu -mattr=+32bit-mode",
        "-mtriple=x86_64-linux-gnu -mattr=+seses",
        "-mtriple=i686-linux-gnu -mattr=-seses",
        "-mtriple=riscv32-unknown-elf -mcpu=sifive-e31 -mattr=+32bit",
        f"{RISCV} -mattr=+rva22u64",
        "-mtriple=hexagon -mcpu=hexagonv68",
        "-mtriple=hexagon -mattr=+hvxv68,+hvx-length128b",
        "-mtriple=armv7a-linux-gnueabihf -mattr=-v8",
        "-mtriple=x86_64-linux-gnu -mattr=-avx,+64bit-mode",
        f"{RISCV} -mabi=lp64d",
        f"{RISCV} -mcpu=sifive-u74 -mabi=lp64d",
        "-mtriple=riscv32-unknown-elf -mabi=ilp32",
        "-mtriple=riscv32-unknown-elf -mattr=+d -mabi=ilp32d",
        "-mtriple=armv7l-linux-gnueabihf -mfloat-abi=hard",
    ],
)
def test_what_fits(words):
    assert Target(f"llvm {words}").kind.name == "llvm"
