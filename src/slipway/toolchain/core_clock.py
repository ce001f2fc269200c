"""AArch64 programs under QEMU with the clock of a modelled core: an estimate, without noise.

``emulated("cortex-a72")`` is a command before a program's path.  What the program reads from
CLOCK_MONOTONIC is then the modelled time (core_clock.c), so that `time_evaluator`, profiles and the
tuner measure the model and need no device.

The model knows how many instructions a core starts in a cycle, in order or not, how long each kind
takes, how often its pipes take one, and what lines of memory cost that the caches lack.  It knows
no branch prediction, no TLB, no other program, and streams of lines are all that is prefetched.

The numbers are what is commonly known of the cores and of the boards that have them (Raspberry Pi
3, 4 and 5); they were not read off Arm's software optimization guides (UAN 0016, PJDOC
466751330-7215) line by line.  Of Cortex-A53, issue width, latencies of loads, floats and multiply-
adds and the forwarding between these agree with LLVM's AArch64SchedA53.td, but for operations on
128 bits, which hold a pipe for two cycles there and for one here.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from slipway.errors import ToolchainError, did_you_mean
from slipway.toolchain import cc
from slipway.toolchain.native import made_once
from slipway.toolchain.runtime_library import cache_dir

SOURCE = Path(__file__).with_name("core_clock.c")
EMULATOR = "qemu-aarch64"
# Groups of pipes.
ALU, BRANCH, MULTIPLY, MEMORY, STORE, VECTOR = range(6)
_KB = 1024


@dataclass(frozen=True)
class Timing:
    """A kind of instruction: its pipes, cycles to its result, and cycles for which it holds one.

    `sum_latency` is from one addition to a sum to the next, where that is shorter than `latency`.
    """

    group: int
    latency: int
    busy: float = 1.0
    sum_latency: int = 0


@dataclass(frozen=True)
class ModelledCore:
    """A core with its caches and memory; what a missing line costs is in cycles.

    `l2_stream` and `memory_stream` are for the next line of a stream, which was prefetched.
    """

    title: str
    mhz: int
    width: int
    pipes: tuple[int, int, int, int, int, int]
    l1: tuple[int, int]  # bytes, ways
    l2: tuple[int, int]
    l2_miss: tuple[float, float]  # cycles of a line from the second level, from memory
    streams: tuple[float, float]
    kinds: dict[str, Timing] = field(repr=False)
    is_in_order: bool = False
    window: int = 128
    line_bytes: int = 64

    def table(self) -> str:
        """Return the core as the plugin reads it."""
        sets = [size // (self.line_bytes * ways) for size, ways in (self.l1, self.l2)]
        costs = (*self.l2_miss, *self.streams)
        lines = [
            f"core {self.width} {self.window} {int(self.is_in_order)} {self.mhz}",
            "pipes " + " ".join(map(str, self.pipes)),
            f"cache {self.line_bytes} {sets[0]} {self.l1[1]} {sets[1]} {self.l2[1]}",
            "miss " + " ".join(str(round(16 * cost)) for cost in costs),
        ]
        lines += [
            f"kind {name} {k.group} {k.latency} {k.sum_latency} {round(16 * k.busy)}"
            for name, k in self.kinds.items()
        ]
        return "\n".join(lines) + "\n"


CORES = {
    "cortex-a53": ModelledCore(
        "Cortex-A53 at 1.2 GHz, as in a Raspberry Pi 3", 1200, 2, (2, 1, 1, 1, 1, 1),
        (32 * _KB, 4), (512 * _KB, 16), (10, 150), (8, 40), is_in_order=True,
        kinds={
            "alu": Timing(ALU, 1), "branch": Timing(BRANCH, 1), "multiply": Timing(MULTIPLY, 3),
            "divide": Timing(MULTIPLY, 10, 10),
            "load": Timing(MEMORY, 3), "load_d": Timing(MEMORY, 4), "load_q": Timing(MEMORY, 5, 2),
            "load_pair": Timing(MEMORY, 4, 2), "load_pair_d": Timing(MEMORY, 5, 2),
            "load_pair_q": Timing(MEMORY, 7, 4), "load_many": Timing(MEMORY, 9, 8),
            "store": Timing(MEMORY, 1), "store_d": Timing(MEMORY, 1),
            "store_q": Timing(MEMORY, 1, 2),
            "store_pair": Timing(MEMORY, 1, 2), "store_pair_d": Timing(MEMORY, 1, 2),
            "store_pair_q": Timing(MEMORY, 1, 4),
            "fma_q": Timing(VECTOR, 8, 1, 4), "fma_d": Timing(VECTOR, 8, 0.5, 4),
            "float_q": Timing(VECTOR, 4), "float_d": Timing(VECTOR, 4, 0.5),
            "slow_q": Timing(VECTOR, 32, 26), "slow_d": Timing(VECTOR, 18, 13),
            "vint_q": Timing(VECTOR, 3), "vint_d": Timing(VECTOR, 3, 0.5),
            "vmul_q": Timing(VECTOR, 4), "vmul_d": Timing(VECTOR, 4, 0.5),
            "mac_q": Timing(VECTOR, 4, 1, 1), "mac_d": Timing(VECTOR, 4, 0.5, 1),
            "dot_q": Timing(VECTOR, 4, 1, 1), "dot_d": Timing(VECTOR, 4, 0.5, 1),
            "permute_q": Timing(VECTOR, 3), "permute_d": Timing(VECTOR, 3, 0.5),
            "convert_q": Timing(VECTOR, 4), "convert_d": Timing(VECTOR, 4, 0.5),
            "move": Timing(VECTOR, 5),
        },
    ),
    "cortex-a72": ModelledCore(
        "Cortex-A72 at 1.5 GHz, as in a Raspberry Pi 4", 1500, 3, (2, 1, 1, 1, 1, 2),
        (32 * _KB, 2), (1024 * _KB, 16), (10, 150), (4, 24),
        kinds={
            "alu": Timing(ALU, 1), "branch": Timing(BRANCH, 1), "multiply": Timing(MULTIPLY, 3),
            "divide": Timing(MULTIPLY, 12, 12),
            "load": Timing(MEMORY, 4), "load_d": Timing(MEMORY, 5), "load_q": Timing(MEMORY, 5),
            "load_pair": Timing(MEMORY, 4), "load_pair_d": Timing(MEMORY, 5),
            "load_pair_q": Timing(MEMORY, 6, 2), "load_many": Timing(MEMORY, 8, 4),
            "store": Timing(STORE, 1), "store_d": Timing(STORE, 1), "store_q": Timing(STORE, 1, 2),
            "store_pair": Timing(STORE, 1), "store_pair_d": Timing(STORE, 1, 2),
            "store_pair_q": Timing(STORE, 1, 4),
            "fma_q": Timing(VECTOR, 7, 2, 3), "fma_d": Timing(VECTOR, 7, 1, 3),
            "float_q": Timing(VECTOR, 4, 2), "float_d": Timing(VECTOR, 4),
            "slow_q": Timing(VECTOR, 36, 64), "slow_d": Timing(VECTOR, 18, 32),
            "vint_q": Timing(VECTOR, 3), "vint_d": Timing(VECTOR, 3),
            "vmul_q": Timing(VECTOR, 5, 4), "vmul_d": Timing(VECTOR, 4, 2),
            "mac_q": Timing(VECTOR, 5, 4, 2), "mac_d": Timing(VECTOR, 4, 2, 1),
            "dot_q": Timing(VECTOR, 5, 4, 2), "dot_d": Timing(VECTOR, 4, 2, 1),
            "permute_q": Timing(VECTOR, 3), "permute_d": Timing(VECTOR, 3),
            "convert_q": Timing(VECTOR, 4, 4), "convert_d": Timing(VECTOR, 3, 2),
            "move": Timing(VECTOR, 5),
        },
    ),
    "cortex-a76": ModelledCore(
        "Cortex-A76 at 2.4 GHz, as in a Raspberry Pi 5", 2400, 4, (3, 1, 1, 2, 1, 2),
        (64 * _KB, 4), (512 * _KB, 8), (4, 120), (2, 15),
        kinds={
            "alu": Timing(ALU, 1), "branch": Timing(BRANCH, 1), "multiply": Timing(MULTIPLY, 2),
            "divide": Timing(MULTIPLY, 12, 12),
            "load": Timing(MEMORY, 4), "load_d": Timing(MEMORY, 5), "load_q": Timing(MEMORY, 5),
            "load_pair": Timing(MEMORY, 4, 1), "load_pair_d": Timing(MEMORY, 5, 1),
            "load_pair_q": Timing(MEMORY, 7, 2), "load_many": Timing(MEMORY, 8, 4),
            "store": Timing(STORE, 1), "store_d": Timing(STORE, 1), "store_q": Timing(STORE, 1),
            "store_pair": Timing(STORE, 1), "store_pair_d": Timing(STORE, 1),
            "store_pair_q": Timing(STORE, 1, 2),
            "fma_q": Timing(VECTOR, 4, 1, 2), "fma_d": Timing(VECTOR, 4, 1, 2),
            "float_q": Timing(VECTOR, 3), "float_d": Timing(VECTOR, 3),
            "slow_q": Timing(VECTOR, 13, 20), "slow_d": Timing(VECTOR, 10, 10),
            "vint_q": Timing(VECTOR, 2), "vint_d": Timing(VECTOR, 2),
            "vmul_q": Timing(VECTOR, 5, 4), "vmul_d": Timing(VECTOR, 4, 2),
            "mac_q": Timing(VECTOR, 5, 4, 2), "mac_d": Timing(VECTOR, 4, 2, 1),
            "dot_q": Timing(VECTOR, 3, 1, 1), "dot_d": Timing(VECTOR, 3, 1, 1),
            "permute_q": Timing(VECTOR, 2), "permute_d": Timing(VECTOR, 2),
            "convert_q": Timing(VECTOR, 4, 4), "convert_d": Timing(VECTOR, 3, 2),
            "move": Timing(VECTOR, 3),
        },
    ),
}  # fmt: skip


def modelled(core: str) -> ModelledCore:
    """Return the core of a name.  Raises ToolchainError for one that has no model."""
    if core not in CORES:
        raise ToolchainError(
            f"there is no model of a core {core!r}; there are {', '.join(CORES)}."
            f"{did_you_mean(core, CORES)}"
        )
    return CORES[core]


def emulated(core: str) -> list[str]:
    """Return the command that runs an AArch64 program, its path behind it, on a modelled core.

    Raises ToolchainError where the emulator is missing, or this is no Linux of 64 bits, whose
    processes an emulated one shares its addresses with.
    """
    table = modelled(core).table()
    program = shutil.which(EMULATOR)
    if program is None or platform.system() != "Linux" or platform.architecture()[0] != "64bit":
        raise ToolchainError(
            f"a modelled {core} needs {EMULATOR} on a 64-bit Linux; on Debian or Ubuntu: "
            "apt-get install qemu-user (the static build takes no plugins)"
        )
    folder = cache_dir() / "core_clock"
    folder.mkdir(parents=True, exist_ok=True)
    code = SOURCE.read_bytes()
    plugin = folder / f"{hashlib.sha256(code).hexdigest()[:16]}.so"
    command = ["-O2", "-std=c11", "-shared", "-fPIC", str(SOURCE), "-o"]
    made_once(
        plugin,
        lambda part: cc.run_compiler(cc.get_cc(), [*command, str(part)]),
        "the emulator's plugin that models cores",
    )
    file = folder / f"{core}-{hashlib.sha256(table.encode()).hexdigest()[:16]}.table"
    made_once(file, lambda part: part.write_text(table, encoding="ascii"))
    # Which lines of a cache meet in a set is a matter of addresses.
    setarch = shutil.which("setarch")
    fixed = [setarch, "--addr-no-randomize"] if setarch else []
    return [*fixed, program, "-cpu", "max,pauth-impdef=on", "-plugin", f"{plugin},table={file}"]
