"""How fast a layer can be at best on this machine: by its multiply-adds, and by its bytes.

The rates are measured: a chain of multiply-adds, each of which waits for the one before, tells the
clock, of which the core's description says how many a cycle begins; sums of a buffer in each level
of cache tell what is read from there.  A layer reads its data and weights and writes its results
once at least.  Winograd's algorithm does with fewer multiply-adds than the definition has, so that
a layer may take less than what is called its limit here.
"""

import ctypes
import time
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

CHAIN = 1_000_000  # multiply-adds, a millisecond of them
SUMMED = 1 << 22  # elements that are read for a rate, again and again
RUNS = 40
LANES, SUMS = 16, 8

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tuning.md"
BEGIN, END = "<!-- limits of benchmarks tuning -->", "<!-- end of the limits -->"

_CHAIN = """
define float @chain(i64 %count, float %start) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = phi float [ %start, %entry ], [ %y, %loop ]
  %y = call float @llvm.fma.f32(float %x, float 0.5, float 1.0)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %exit
exit:
  ret float %y
}
declare float @llvm.fma.f32(float, float, float)
"""


@dataclass(frozen=True)
class Limit:
    """The least time of a layer on one core, and which of the two it is."""

    microseconds: float
    by: str


@dataclass(frozen=True)
class Machine:
    """What a core of this machine does in a second: multiply-adds of float32, bytes by level."""

    multiply_adds: float
    byte_products: float  # multiply-adds of bytes
    streams: tuple[tuple[int, float], ...]  # (up to so many bytes, bytes read in a second)

    def limit_of(self, layer):
        """Return the least time that a layer needs."""
        products, size = work_of(layer)
        rate = self.byte_products if layer[-1] == "int8" else self.multiply_adds
        arithmetic = products / rate
        stream = next((r for most, r in self.streams if size <= most), self.streams[-1][1])
        traffic = size / stream
        by = "arithmetic" if arithmetic >= traffic else "traffic"
        return Limit(max(arithmetic, traffic) * 1e6, by)


def machine_of(target):
    """Measure this machine, of whose core `target` has the description."""
    core, is_dotted = target.core, any("vnni" in f or "dotprod" in f for f in target.features)
    clock = (
        CHAIN
        * core.fma_latency
        / _shortest(_function("chain", _CHAIN, ctypes.c_int64, ctypes.c_float), CHAIN, 1.0)
    )
    multiply_adds = clock * core.fma_bits / 32
    # A dot product of four bytes takes a lane of float32, where the processor has it.
    streams = tuple((size, _stream(size)) for size in (core.l1_bytes, core.l2_bytes, 1 << 24))
    return Machine(multiply_adds, multiply_adds * (4 if is_dotted else 1), streams)


def work_of(layer):
    """Return the multiply-adds of a layer's definition, and its bytes: data, weights, results."""
    kind, data, weight, stride, _, dtype = layer
    if kind == "conv":
        batch, _, height, width = data
        filters, depth, tall, wide = weight
        rows = (height + 2 * (tall // 2) - tall) // stride + 1
        columns = (width + 2 * (wide // 2) - wide) // stride + 1
        results = batch * filters * rows * columns
        products = results * depth * tall * wide
    else:
        results = int(np.prod(data[:-1])) * weight[-2]
        products = results * data[-1]
    given = int(np.prod(data)) + int(np.prod(weight))
    return products, np.dtype(dtype).itemsize * given + 4 * results


def write_table(rows):
    """Put the table of limits into docs/tuning.md."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table_of(rows)}\n\n{END}{after}", encoding="utf-8")


def table_of(rows):
    """Return rows of a comparison as a table of each layer's limit and what part of it is had."""
    lines = ["| layer | limit, us | by | untuned: of the limit | tuned |",
             "| --- | ---: | --- | ---: | ---: |"]  # fmt: skip
    for row in rows:
        untuned, tuned = shares_of(row)
        lines.append(
            f"| {row['name']} | {row['limit_us']:.1f} | {row['by']} | {untuned:.2f} | {tuned:.2f} |"
        )
    return "\n".join(lines)


def shares_of(row):
    """Return which part of the limit's rate a layer has without tuning, and tuned."""
    untuned = row["limit_us"] / (row["untuned_ms"] * 1e3)
    ratio = row["ratios"].get("tuned")
    return untuned, untuned / ratio[0] if ratio else untuned


def _function(name, text, *kinds):
    """Return a function of LLVM IR, compiled for this machine; its engine lives as long."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    found = ctypes.CFUNCTYPE(ctypes.c_float, *kinds)(engine.get_function_address(name))
    found.engine = engine
    return found


def _stream(size):
    """Return the bytes that are read in a second of a buffer of so many, again and again."""
    step = LANES * SUMS
    buffer = np.zeros(size // 8 // step * step, "float32")  # half of it: other data lies there
    times = max(1, SUMMED // len(buffer))
    total = _function("total", _total(), ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    return 4.0 * times * len(buffer) / _shortest(total, times, len(buffer), buffer.ctypes.data)


def _total():
    """Return a function that adds up a buffer so many times, in several vectors, as LLVM IR."""
    vector, loads = f"<{LANES} x float>", []
    for n in range(SUMS):
        loads += [
            f"  %at{n} = add i64 %i, {n * LANES}",
            f"  %p{n} = getelementptr float, ptr %data, i64 %at{n}",
            f"  %v{n} = load volatile {vector}, ptr %p{n}, align 4",
            f"  %t{n} = fadd {vector} %s{n}, %v{n}",
        ]
    start = [
        f"  %o{n} = phi {vector} [ zeroinitializer, %entry ], [ %t{n}, %again ]"
        for n in range(SUMS)
    ]
    sums = [f"  %s{n} = phi {vector} [ %o{n}, %outer ], [ %t{n}, %loop ]" for n in range(SUMS)]
    ends, last = [], "%t0"
    for n in range(1, SUMS):
        ends.append(f"  %e{n} = fadd {vector} {last}, %t{n}")
        last = f"%e{n}"
    return "\n".join([
        "define float @total(i64 %times, i64 %count, ptr %data) {", "entry:", "  br label %outer",
        "outer:", "  %time = phi i64 [ 0, %entry ], [ %later, %again ]", *start, "  br label %loop",
        "loop:", "  %i = phi i64 [ 0, %outer ], [ %next, %loop ]", *sums, *loads,
        f"  %next = add i64 %i, {LANES * SUMS}", "  %more = icmp ult i64 %next, %count",
        "  br i1 %more, label %loop, label %again",
        "again:", "  %later = add i64 %time, 1", "  %repeat = icmp ult i64 %later, %times",
        "  br i1 %repeat, label %outer, label %exit", "exit:", *ends,
        f"  %r = extractelement {vector} {last}, i32 0", "  ret float %r", "}",
    ])  # fmt: skip


def _shortest(function, *arguments):
    """Return the shortest processor time of several runs."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.thread_time()
        function(*arguments)
        best = min(best, time.thread_time() - start)
    return best
