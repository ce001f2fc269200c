"""Random graphs of relay operators, compiled and held against an oracle that is not ours.

    python -m benchmarks fuzz_graphs                              # 200 graphs on this processor
    python -m benchmarks fuzz_graphs --targets avx2,c --count 1000 --seed 5000
    python -m benchmarks fuzz_graphs --targets aarch64,armv7,riscv64 --count 104
    python -m benchmarks fuzz_graphs --only 4711 --targets sse --shrink FOLDER
    python -m benchmarks fuzz_graphs --kind open --targets host,c --count 300
    python -m benchmarks fuzz_graphs --kind states --targets host,c --count 300
    python -m benchmarks fuzz_graphs --kind empty --targets host,c --count 300

Graph N is always the same graph, compiled in the same way.  For C and emulated devices eight graphs
make one program; when that has a fault, each is tried alone.  What is found is shrunk and written
as a script to FOLDER.  Exit code 1 when anything was found.

--kind open leaves a size of the inputs open and runs one library at five sizes; --kind states keeps
values between runs.  Graphs without an axis that can be open are skipped, and what the compiler
refuses in words is counted; neither kind is shrunk.  --kind empty takes every third tensor without
elements, --kind bfloat16 numbers of that type.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.fuzz_graphs.attempt import (
    DEVICE_TARGETS,
    GROUP,
    TARGETS,
    attempt,
    options_of,
)
from benchmarks.fuzz_graphs.campaign import Finding, isolated
from benchmarks.fuzz_graphs.draw import draw
from benchmarks.fuzz_graphs.drawing import VARIANTS
from benchmarks.fuzz_graphs.graph import merged
from benchmarks.fuzz_graphs.open_sizes import REFUSED, SKIPPED, attempt_open
from benchmarks.fuzz_graphs.states import attempt_states


def findings(target: str, seeds: range, variant: str = "") -> Iterator[Finding]:
    """Yield a finding for each seed; its problem is empty where all is well."""

    def alone(seed: int) -> str:
        return attempt(draw(seed, variant=variant), options_of(seed, target))

    def together(first: int) -> str:
        graphs = [draw(s, variant=variant) for s in range(first, first + GROUP) if s in seeds]
        return attempt(merged(graphs), options_of(first, target))

    if target != "c" and target not in DEVICE_TARGETS:
        yield from isolated(alone, seeds)
        return
    firsts = range(seeds.start - seeds.start % GROUP, seeds.stop, GROUP)
    for group in isolated(together, firsts):
        members = [s for s in range(group.seed, group.seed + GROUP) if s in seeds]
        if not group.problem:
            yield from (Finding(seed, "") for seed in members)
            continue
        each = list(isolated(alone, members))
        if not any(finding.problem for finding in each):
            each[0] = Finding(group.seed, f"only with the {GROUP} from here: {group.problem}")
        yield from each


KINDS = ("fixed", "open", "states", *filter(None, VARIANTS))


def of_kind(kind: str, target: str, seeds: range) -> Iterator[Finding]:
    """Yield a finding for each seed, of graphs with open sizes or with states."""
    judge = {"open": attempt_open, "states": attempt_states}[kind]

    def alone(seed: int) -> str:
        return judge(seed, options_of(seed, target))

    return isolated(alone, seeds)


def main() -> int:
    """Run what the command line asks for; return 1 when anything was found."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks fuzz_graphs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--targets", default="host", help=f"of {','.join(TARGETS)}")
    parser.add_argument("--count", type=int, default=200, help="graphs on each target")
    parser.add_argument("--seed", type=int, default=0, help="the first graph")
    parser.add_argument("--kind", choices=KINDS, default="fixed", help="fixed sizes by default")
    parser.add_argument("--only", type=int, help="this one graph")
    parser.add_argument("--minutes", type=float, default=0.0, help="on each target, at most")
    parser.add_argument("--shrink", type=Path, metavar="FOLDER", help="write what is found, small")
    parser.add_argument("--verbose", action="store_true", help="print what is refused, too")
    options = parser.parse_args()
    names = options.targets.split(",")
    unknown = sorted(set(names) - set(TARGETS))
    if unknown:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    # Every graph is new: a cache of kernels would only grow.
    os.environ.setdefault("SLIPWAY_KERNEL_CACHE", "0")
    seeds = range(options.seed, options.seed + options.count)
    if options.only is not None:
        seeds = range(options.only, options.only + 1)
    found = sum(_campaign(name, seeds, options) for name in names)
    return 1 if found else 0


def _campaign(target: str, seeds: range, options: argparse.Namespace) -> int:
    """Run the graphs of `seeds` on one target and print what is found; return how much."""
    if target in DEVICE_TARGETS:
        from benchmarks.fuzz_graphs import devices

        devices.prepare(target)
    start, found, done = time.monotonic(), 0, 0
    variant = options.kind if options.kind in VARIANTS else ""
    fixed = variant != "" or options.kind == "fixed"
    set_aside = dict.fromkeys((SKIPPED, REFUSED), 0)
    judged = findings(target, seeds, variant) if fixed else of_kind(options.kind, target, seeds)
    for finding in judged:
        done += 1
        aside = next((word for word in set_aside if finding.problem.startswith(word)), "")
        if aside:
            set_aside[aside] += 1
            if options.verbose and aside == REFUSED:
                print(f"{target} graph {finding.seed}: {finding.problem}", flush=True)
        elif finding.problem:
            found += 1
            print(f"{target} graph {finding.seed}: {finding.problem}", flush=True)
            if options.shrink and fixed:
                from benchmarks.fuzz_graphs.report import save

                graph = draw(finding.seed, variant=variant)
                how = options_of(finding.seed, target)
                name = f"{target}_{finding.seed}"
                print("  " + save(name, graph, how, finding.problem, options.shrink), flush=True)
        if options.minutes and time.monotonic() - start > options.minutes * 60:
            break
    elapsed = time.monotonic() - start
    aside_text = "".join(
        f", {count} {word.strip(': ')}" for word, count in set_aside.items() if count
    )
    print(f"{target}: {done} graphs{aside_text}, {found} findings, {elapsed:.0f} s", flush=True)
    return found
