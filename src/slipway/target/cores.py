"""What one core of a CPU can do: multiply-adds and loads in a cycle, sizes of its caches.

Schedules choose their tiles by it (``backends/cpu/tile.py``).  A `Core` follows from the target's
options and features alone, so that equal targets give equal code wherever they are compiled:

1. options: ``-fma-units``, ``-fma-latency``, ``-l1-cache-bytes``, ``-l1-cache-ways``,
   ``-cache-line-bytes``, ``-l2-cache-bytes``;
2. the CPU that ``-mtune``, else ``-mcpu`` names, if it is in the table below; without them, and
   for ``native``, it is what LLVM calls this machine;
3. one core for all others: two vectors of multiply-adds and of loads a cycle, a latency of 5, 32 KB
   of first-level cache in 8 ways, 512 KB of the second level, lines of 64 bytes.

The sizes of this machine's caches are not among them: they are seen only here.
`host_options` reads those, for who wants them in the target.

The table's sources: Intel's optimization reference manual, AMD's software optimization guides for
families 17h to 1Ah, Arm's software optimization guides and technical reference manuals (where the
builder of a chip chooses the second-level cache, the table has none), LLVM's scheduling models
(llvm-mca), and for Apple's cores D. Johnson's measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slipway.target.costs import ANY_CORE, Costs

_KB = 1024


@dataclass(frozen=True)
class Core:
    """One core: bits of vectors that a cycle can multiply-add and load, cycles, bytes.

    `fma_latency` is from one addition to a sum to the next, `l2_bytes` this core's share of the
    second level, `l2_stream_bytes` what comes from there in a cycle.
    `costs` are the numbers of cost models, so far the same for all cores.
    """

    fma_bits: int
    load_bits: int
    fma_latency: int = 5
    l1_bytes: int = 32 * _KB
    l1_ways: int = 8
    line_bytes: int = 64
    l2_bytes: int = 512 * _KB
    l2_stream_bytes: int = 16
    costs: Costs = ANY_CORE

    @property
    def l1_sets(self) -> int:
        """Return the sets of the first-level cache."""
        return max(1, self.l1_bytes // (self.line_bytes * self.l1_ways))

    def fits_ways(self, rows: int, row_bytes: int) -> bool:
        """Return whether the first-level cache keeps a line of each of `rows`, `row_bytes` apart.

        Where that is a multiple of many lines, they fall on few of its sets.
        """
        sets = (row * row_bytes // self.line_bytes % self.l1_sets for row in range(rows))
        return max(Counter(sets).values(), default=0) <= self.l1_ways


# CPUs that LLVM names: bits of multiply-adds, their latency, bits of loads in a cycle; first-level
# cache in KB and its ways; KB of the second for one core (0: as rule 3 says); bytes of a line.
_CORES: dict[str, tuple[int, int, int, int, int, int, int]] = {
    **dict.fromkeys(("haswell", "core-avx2", "broadwell"), (512, 5, 512, 32, 8, 256, 64)),
    "skylake": (512, 4, 512, 32, 8, 256, 64),
    **dict.fromkeys(
        ("skylake-avx512", "skx", "cascadelake", "cooperlake"), (1024, 4, 1024, 32, 8, 1024, 64)
    ),
    **dict.fromkeys(("icelake-client", "rocketlake"), (512, 4, 1024, 48, 12, 512, 64)),
    "tigerlake": (512, 4, 1024, 48, 12, 1280, 64),
    "icelake-server": (1024, 4, 1024, 48, 12, 1280, 64),
    **dict.fromkeys(
        ("sapphirerapids", "emeraldrapids", "graniterapids"), (1024, 4, 1024, 48, 12, 2048, 64)
    ),
    "alderlake": (512, 4, 768, 48, 12, 1280, 64),
    **dict.fromkeys(("raptorlake", "meteorlake"), (512, 4, 768, 48, 12, 2048, 64)),
    "znver1": (256, 5, 256, 32, 8, 512, 64),
    "znver2": (512, 5, 512, 32, 8, 512, 64),
    "znver3": (512, 4, 512, 32, 8, 512, 64),
    "znver4": (512, 4, 512, 32, 8, 1024, 64),
    "znver5": (1024, 4, 1024, 48, 12, 1024, 64),
    **dict.fromkeys(("cortex-a53", "cortex-a55"), (128, 4, 64, 32, 4, 0, 64)),
    **dict.fromkeys(("cortex-a57", "cortex-a72"), (128, 4, 128, 32, 2, 0, 64)),
    **dict.fromkeys(
        ("cortex-a76", "cortex-a77", "cortex-a78", "neoverse-n1", "neoverse-n2"),
        (256, 2, 256, 64, 4, 0, 64),
    ),
    **dict.fromkeys(
        ("cortex-x1", "cortex-x2", "cortex-x3", "neoverse-v1", "neoverse-v2", "grace"),
        (512, 2, 384, 64, 4, 1024, 64),
    ),
    **dict.fromkeys(("apple-m1", "apple-a14"), (512, 4, 384, 128, 8, 3072, 128)),
    **dict.fromkeys(("apple-m2", "apple-m3"), (512, 4, 384, 128, 8, 4096, 128)),
    "a64fx": (256, 9, 256, 64, 4, 680, 256),
}


def core_of(cpu: str, vector_bits: int, options: Mapping[str, Any]) -> Core:
    """Return the core for the CPU that ``-mcpu`` names ("" for none) and the target's options."""
    vector_bits = vector_bits or 32
    core = Core(fma_bits=2 * vector_bits, load_bits=2 * vector_bits)
    if cpu in _CORES:
        fma_bits, latency, load_bits, l1_kb, ways, l2_kb, line = _CORES[cpu]
        core = Core(fma_bits, load_bits, latency, l1_kb * _KB, ways, line,
                    l2_kb * _KB or core.l2_bytes)  # fmt: skip
    given: dict[str, Any] = {
        field: int(options[option])
        for option, field in (
            ("fma-latency", "fma_latency"), ("l1-cache-bytes", "l1_bytes"),
            ("l1-cache-ways", "l1_ways"), ("cache-line-bytes", "line_bytes"),
            ("l2-cache-bytes", "l2_bytes"),
        )
        if option in options
    }  # fmt: skip
    if "fma-units" in options:
        given["fma_bits"] = int(options["fma-units"]) * vector_bits
    return replace(core, **given) if given else core


_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def host_options(root: Path = _CACHES) -> str:
    """Return this machine's caches as options of a target; "" where the system does not tell.

    A cache that several cores share counts in equal parts.
    """
    options = []
    for level, size, ways, line, sharing in _host_caches(root):
        if level == 1:
            options += [f"-l1-cache-bytes={size // sharing}", f"-l1-cache-ways={ways}"]
            options.append(f"-cache-line-bytes={line}")
        elif level == 2:
            options.append(f"-l2-cache-bytes={size // sharing}")
    return " ".join(options)


def host_caches(root: Path = _CACHES) -> dict[int, int]:
    """Return the bytes of this machine's caches by level: one core's share, of the last all.

    Empty where the system does not tell.
    """
    found = {level: (size, sharing) for level, size, _, _, sharing in _host_caches(root)}
    last = max(found, default=0)
    return {n: size if n == last else size // cores for n, (size, cores) in found.items()}


def _host_caches(root: Path) -> list[tuple[int, int, int, int, int]]:
    """Return (level, bytes, ways, bytes of a line, CPUs that share it) of each cache of data."""
    names = ("level", "size", "ways_of_associativity", "coherency_line_size")
    found = []
    for folder in sorted(root.glob("index*")):
        try:
            kind, cpus = ((folder / n).read_text().strip() for n in ("type", "shared_cpu_list"))
            level, size, ways, line = ((folder / name).read_text().strip() for name in names)
        except OSError:
            continue
        if kind != "Instruction":
            bytes_ = int(size.rstrip("K")) * _KB
            found.append((int(level), bytes_, int(ways), int(line), _count(cpus)))
    return found


def _count(cpus: str) -> int:
    """Return how many CPUs a list such as ``0-3,8`` names."""
    ranges = [part.partition("-") for part in cpus.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)
