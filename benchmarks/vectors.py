"""Instructions for each class of operator on processors that few benchmarks look at.

    python -m benchmarks vectors [--targets x86-sse2 armv7-neon] [--cases conv] [--show]

Each class (see _vector_cases.py) is compiled for each processor and run on one thread, under QEMU,
or step by step here where QEMU lacks the instructions; the result is held against NumPy.  A figure
is the number of instructions for a multiply-add or an element, in hundredths, and in brackets how
many times that is what the processor's vectors allow; more than 1.5 times is marked with "!".
What stands at a graph's edges, the change of layout, is not counted.  `--show` prints the code
that is executed most.  Needs Debian's qemu-user (the static build loads no plugins) and a C
compiler.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._vector_cases import Case, Machine, expected, float_cases, inputs_of, integer_cases
from benchmarks.instructions import plugin

FAR = 1.5
# Kernels between a graph's own layout and that of its inputs and outputs.
EDGES = ("_fused_layout_transform", "_fused_layout_transform_1", "_fused_reshape")
TRANSPOSES = ("_fused_transpose", "_fused_transpose_1", "_fused_transpose_2")


@dataclass(frozen=True)
class Processor:
    """A target, the emulator that runs its code (none: this machine), and what it can do."""

    target: str
    emulator: tuple[str, ...]
    machine: Machine


X86 = "llvm -mtriple=x86_64-linux-gnu -mcpu="
ARM64 = "llvm -mtriple=aarch64-linux-gnu -mcpu="
RISCV = "llvm -mtriple=riscv64-linux-gnu -mattr=+v"
ARM_CPU = ("qemu-aarch64", "-cpu", "max,sve512=on,pauth-impdef=on")
X86_CPU = ("qemu-x86_64", "-cpu", "max")
PROCESSORS = {
    "x86-sse2": Processor(X86 + "x86-64", X86_CPU, Machine(4, 16, 3, True, dot=2, dot_cost=3)),
    "x86-sse4": Processor(X86 + "x86-64-v2", X86_CPU, Machine(4, 16, 3, True, dot=2, dot_cost=3)),
    "x86-avx2": Processor(X86 + "x86-64-v3", X86_CPU, Machine(8, 16, 1, True, dot=2, dot_cost=2)),
    "x86-avxvnni": Processor(X86 + "alderlake", (), Machine(8, 16, 1, True, dot=4)),
    "armv7-neon": Processor(
        "llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon",
        ("qemu-arm", "-cpu", "max"), Machine(4, 16, lane_fma=True, dot=2, dot_cost=2),
    ),
    "aarch64-neon": Processor(
        ARM64 + "cortex-a72", ARM_CPU, Machine(4, 32, lane_fma=True, dot=2, dot_cost=2)
    ),
    "aarch64-dotprod": Processor(
        ARM64 + "cortex-a76", ARM_CPU, Machine(4, 32, lane_fma=True, dot=4)
    ),
    "aarch64-i8mm": Processor(
        ARM64 + "cortex-a710", ARM_CPU, Machine(4, 32, lane_fma=True, dot=8)
    ),
    "aarch64-sve256": Processor(
        ARM64 + "neoverse-v1", ("qemu-aarch64", "-cpu", "max,sve256=on,pauth-impdef=on"),
        Machine(8, 32, dot=2),
    ),
    "riscv64-v128": Processor(
        RISCV, ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,elen=64"), Machine(4, 32)
    ),
    "riscv64-v256": Processor(
        RISCV + ",+zvl256b", ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=256,elen=64"),
        Machine(8, 32),
    ),
}  # fmt: skip


def runner(target: str) -> Path:
    """Compile operator_runner.c with the runtime for the device of `target`; cached."""
    from slipway.target import Target
    from slipway.toolchain import native, zig

    musl = zig.musl_target(Target(target).triple)
    source = Path(__file__).with_name("operator_runner.c")
    stamp = f"{native.source_hash()}-{source.stat().st_mtime_ns:x}"
    path = native.cache_dir() / "operator_runner" / f"{musl}-{stamp}"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        native.compile_static(musl, path, "src", "posix", extra=(str(source),))
    return path


def build(case: Case, name: str, processor: Processor, folder: Path) -> tuple[int, int]:
    """Export a case and its inputs into `folder`; return how many inputs and outputs it has."""
    import slipway
    from slipway import relay

    function, arrays = inputs_of(case)
    module = slipway.IRModule.from_expr(function)
    with slipway.transform.PassContext(opt_level=3):
        library = relay.build(module, target=processor.target)
    library.export_library(str(folder / f"{name}.tar"))
    (folder / f"{name}.in").write_bytes(b"".join(a.tobytes() for a in arrays))
    (folder / f"{name}.s").write_text(library.get_source("asm"))
    return len(arrays), 1


def agrees(case: Case, got: bytes) -> bool:
    """Return whether a result is NumPy's: to rounding, or for integers to one step."""
    want = expected(*inputs_of(case))
    if case.integer:
        found = np.frombuffer(got, np.int8).astype(int)
        return bool(np.abs(found - want.reshape(-1)).max() <= 1)
    found = np.frombuffer(got, want.dtype)
    return bool(np.abs(found - want.reshape(-1)).max() <= 1e-5 * np.abs(want).max())


def counts(
    name: str, ins: int, outs: int, processor: Processor, folder: Path, show: bool
) -> list[tuple[str, int]]:
    """Run an exported case; return the instructions of each of its kernels, in order.

    None where the emulator crashes: QEMU 7.2 does, on RISC-V's vector conversions to integers.
    """
    command = [str(runner(processor.target)), str(folder), name, str(ins), str(outs)]
    if not processor.emulator:
        command[1:1] = ["-s", *(["-H"] if show else [])]
    else:
        options = f"{plugin(folder)},out={folder / 'count'},marks=on{',hot=on' if show else ''}"
        command[:0] = [*processor.emulator, "-plugin", options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0 and "Assertion" in done.stderr:
        return []
    if done.returncode:
        raise SystemExit(f"{name} on {processor.target}: {done.stderr}")
    lines = [line.split() for line in done.stdout.splitlines()]
    if not processor.emulator:
        if show:
            print(disassembly(folder / f"{name}.hot", folder))
        return [(kernel, int(steps)) for kernel, steps in lines]
    (file,) = folder.glob("count.*")
    text = file.read_text()
    if show:
        print("\n".join(kernel for kernel, _ in lines), text, sep="\n")
    numbers = [int(line) for line in text.splitlines() if line[:1].isdigit()]
    return [(kernel, number) for (kernel, _), number in zip(lines, numbers, strict=True)]


def disassembly(file: Path, folder: Path) -> str:
    """The stepped-through code of a .hot file with its counts, by objdump."""
    shown = []
    raw = folder / "code"
    for line in file.read_text().splitlines():
        times, address, code = line.split()
        raw.write_bytes(bytes.fromhex(code))
        text = subprocess.run(
            ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", raw],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        shown.append(f"{times:>9} {address} {text.splitlines()[7].split(chr(9), 2)[-1]}")
    return "\n".join(shown)


def measure(processor: Processor, case: Case, show: bool) -> tuple[float, float] | None:
    """Instructions for a unit, how many times the fewest that is; None: the emulator crashed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ins, outs = build(case, "case", processor, folder)
        found = counts("case", ins, outs, processor, folder, show)
        if not found:
            return None
        edges = EDGES + TRANSPOSES if case.integer else EDGES
        total = sum(number for kernel, number in found if not kernel.endswith(edges))
        if not agrees(case, (folder / "case.out").read_bytes()):
            raise SystemExit(f"{case.name} on {processor.target}: the result is wrong")
    each = total / case.work
    return each, each / case.minimum_cycles(processor.machine)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", nargs="*", default=list(PROCESSORS), choices=list(PROCESSORS))
    parser.add_argument("--cases", nargs="*", help="only those whose names contain one of these")
    parser.add_argument("--show", action="store_true", help="print the code executed most")
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()
    wanted = arguments.cases or [""]
    cases = [
        c for c in (*float_cases(), *integer_cases()) if any(word in c.name for word in wanted)
    ]
    figures: dict[str, dict[str, tuple[float, float] | None]] = {}
    for name in arguments.targets:
        processor = PROCESSORS[name]
        if processor.emulator and shutil.which(processor.emulator[0]) is None:
            parser.error(f"{processor.emulator[0]} is not installed; Debian: qemu-user")
        print(f"{name} ...", file=sys.stderr, flush=True)
        figures[name] = {c.name: measure(processor, c, arguments.show) for c in cases}
    print("| instructions / 100 | for a | " + " | ".join(figures) + " |")
    print("|---|---|" + "---:|" * len(figures))
    for case in cases:
        cells = []
        for each in figures.values():
            if each[case.name] is None:
                cells.append("-")
                continue
            value, times = each[case.name]
            cells.append(f"{100 * value:.1f} ({times:.2f}){' !' if times > FAR else ''}")
        print(f"| {case.name} | {case.unit} | " + " | ".join(cells) + " |")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1))
    return 0
