"""What the runtime says a processor has, asked of emulated ones with and without it."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

from slipway.toolchain import emulators, native, zig

PROGRAM = Path(__file__).parent / "cpu_main.c"
TRIPLES = {
    "aarch64": "aarch64-linux-gnu",
    "armv7": "armv7l-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
}
# Before the semicolon what the processor has, behind it what it lacks, as QEMU 7 emulates it.
PROCESSORS = [
    ("riscv64", "rv64", "zba zbb zbc zbs zbkc; zfh zfa zicond v zve32x zvfh zvbb xtheadba zvl128b"),
    ("riscv64", "rv64,zba=false,zbc=false", "zbb zbs; zba zbc"),
    ("riscv64", "rv64,zbb=false,zbkb=true,zbkx=true", "zbkb zbkx; zbb"),
    ("riscv64", "rv64,Zfhmin=true", "zfhmin; zfh"),
    ("riscv64", "rv64,Zfh=true", "zfhmin zfh; zvfh"),
    ("riscv64", "rv64,v=true,vlen=256", "v zve32x zve32f zve64x zve64f zve64d zvl256b; zvl512b"),
    ("riscv64", "rv64,Zve32f=true", "zve32x zve32f; v"),
    ("aarch64", "cortex-a53", "neon crc; dotprod fullfp16 lse sve bf16 i8mm sme cssc mops"),
    ("aarch64", "cortex-a76", "dotprod fullfp16 lse; sve i8mm bf16 fptoint"),
    ("aarch64", "max", "sve sve2 f32mm f64mm i8mm bf16 sme sme-f64f64 fptoint; sme2 cssc faminmax"),
    ("armv7", "cortex-a9", "v7 neon vfp3; vfp4 hwdiv-arm v8 fp-armv8"),
    ("armv7", "cortex-a15", "v7 neon vfp4 hwdiv-arm; v8 fp-armv8 dotprod"),
    ("armv7", "max", "v8 fp-armv8 crc aes;"),
]


@cache
def _program(architecture, folder):
    path = folder / f"cpu-{architecture}"
    native.compile_static(
        zig.musl_target(TRIPLES[architecture]), path, extra=(
            str(PROGRAM), *map(str, sorted((native.CRT / "posix").glob("cpu*.c"))),
        )
    )  # fmt: skip
    return path


@pytest.mark.parametrize(("architecture", "cpu", "words"), PROCESSORS)
def test_features_are_asked_of_the_processor(architecture, cpu, words, tmp_path_factory):
    """Code for zba, zvfh or cssc was loaded where they are missing, and ended with SIGILL."""
    emulator = emulators.find(architecture)
    if not emulator:
        pytest.skip(emulators.install_hint(architecture))
    has, lacks = (part.split() for part in words.split(";"))
    program = _program(architecture, tmp_path_factory.getbasetemp())
    command = [*emulator, "-cpu", cpu, str(program), *has, *lacks]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    wanted = [f"{name}=1" for name in has] + [f"{name}=0" for name in lacks]
    assert set(wanted) <= set(done.stdout.split())
    assert done.stdout.split()[-1] == "handler=1"
