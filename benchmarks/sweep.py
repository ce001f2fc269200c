"""Every family of operators over odd sizes and types, beside the better of two runtimes.

    python -m benchmarks sweep [--only conv int8_grouped] [--again] [--budget 600]
    python -m benchmarks sweep --table        # write docs/performance_operators.md from the figures
    python -m benchmarks sweep --random 7 --count 300     # cases that no list has, drawn by a seed
    python -m benchmarks sweep --random 7 --narrow        # the same in float16, bfloat16 and int8

Figures are kept in the cache, case by case, so that a sweep can be stopped and taken up again;
`--again` measures the chosen cases anew.  One thread is measured in processor time, which a busy
changes least; more in wall time.  All engines take turns on the same inputs, each in a process of
its own.  The cases are those of ``_sweep_cases``.
"""

import argparse
import fcntl
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import onnx

from benchmarks._operator_models import make_model
from benchmarks._sweep_cases import CASES
from benchmarks._sweep_random import cases as random_cases
from benchmarks._sweep_random import narrow_cases
from benchmarks.cpu import Worker, difference

PAGE = Path(__file__).parent.parent / "docs" / "performance_operators.md"
PART = "sweep"  # of the page, between comments of that name; machines have one each
GOAL, WORST = 1.5, 20
FLOAT = ("slipway", "onnxruntime", "openvino")
BFLOAT = ("slipway-bfloat16", "openvino-bfloat16")
SETTLE_SECONDS = 0.02


def engines_of(name):
    return BFLOAT if name.startswith("bfloat16_") else FLOAT


@contextmanager
def alone():
    """Hold the lock by which benchmarks of one machine take turns."""
    with (Path(tempfile.gettempdir()) / "bench.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def measure(path, workers, threads, rounds, seconds):
    """Return {engine: {"us"} or {"error"}} of one model."""
    rows = {name: worker.request(f"load {path}") for name, worker in workers.items()}
    running = {name: w for name, w in workers.items() if "error" not in rows[name]}
    clock = "cpu_s" if threads == 1 else "wall_s"
    with alone():
        counts = {}
        for name, worker in running.items():
            once = min(worker.request("run 2")["wall_s"] / 2 for _ in range(2))
            counts[name] = max(1, int(seconds / max(once, 1e-6)))
        samples = defaultdict(list)
        for _ in range(rounds):
            for name, worker in running.items():
                time.sleep(SETTLE_SECONDS if threads > 1 else 0)
                samples[name].append(
                    worker.request(f"run {counts[name]}")[clock] / counts[name] * 1e6
                )
    for name, values in samples.items():
        rows[name] = {"us": statistics.median(values)}
        if name == "slipway":
            rows[name] |= difference(running, name)
    return rows


def ratio_of(rows):
    """Return our time by the better peer's; None where there is nothing to compare."""
    ours = [row.get("us") for name, row in rows.items() if name.startswith("slipway")]
    peers = [r["us"] for n, r in rows.items() if not n.startswith("slipway") and "us" in r]
    return ours[0] / min(peers) if ours[0] and peers else None


class Engines:
    """The processes of one set of engines, made anew where one died."""

    def __init__(self, names, threads):
        self.names, self.threads = names, threads
        self.workers = {}

    def measure(self, path, rounds, seconds):
        try:
            for name in self.names:
                if name not in self.workers:
                    self.workers[name] = Worker(name, "-", self.threads)
            return measure(path, self.workers, self.threads, rounds, seconds)
        except (json.JSONDecodeError, BrokenPipeError):
            dead = [n for n, w in self.workers.items() if w.process.poll() is not None]
            self.close()
            return {name: {"error": "it died" if name in dead else "-"} for name in self.names}

    def close(self):
        for worker in self.workers.values():
            worker.close()
        self.workers = {}


def figures_file():
    from slipway.toolchain.native import cache_dir

    return cache_dir() / "sweep.jsonl"


def read(file, cases):
    """Return {(case, threads): rows}, the last figure of each."""
    lines = file.read_text().splitlines() if file.is_file() else []
    entries = [json.loads(line) for line in lines]
    return {(e["case"], e["threads"]): e["rows"] for e in entries if e["case"] in cases}


def line_of(name, rows):
    """Return the row of the table of one case."""
    cells = [f"{row['us']:.3g}" if "us" in row else "-" for row in rows.values()]
    cells += ["-"] * (3 - len(cells))
    ratio = ratio_of(rows)
    said = [row["error"] for engine, row in rows.items() if "error" in row and "slipway" in engine]
    error = rows.get("slipway", {}).get("error_to_onnxruntime")
    shown = "-" if ratio is None else f"{ratio:.2f}"
    tail = said[0][:80] if said else "-" if error is None else f"{error:.0e}"
    return f"| {name} | " + " | ".join([*cells, shown, tail]) + " |"


def table(found, threads):
    """Return the page's part about `threads`: the worst cases, then each family."""
    known = {n: r for (n, t), rows in found.items() if t == threads and (r := ratio_of(rows))}
    if not known:
        return []
    over = sum(r > GOAL for r in known.values())
    mean = statistics.geometric_mean(known.values())
    lines = [
        f"With {threads} thread{'s' * (threads > 1)}: {len(known)} cases, geometric mean "
        f"{mean:.2f}, {over} above {GOAL}. The worst {WORST}, in microseconds (for bfloat16_ the "
        "second column is OpenVINO):",
        "", "| case | Slipway | onnxruntime | OpenVINO | ratio | error |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    worst = sorted(known, key=known.get, reverse=True)[:WORST]
    lines += [line_of(name, found[name, threads]) for name in worst]
    families = defaultdict(dict)
    for name, ratio in known.items():
        families[name.split("/")[0]][name] = ratio
    lines += [
        "",
        "| family | cases | mean | above 1.5 | worst |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for family, ratios in sorted(families.items()):
        name = max(ratios, key=ratios.get)
        behind = sum(r > GOAL for r in ratios.values())
        mean = statistics.geometric_mean(ratios.values())
        case = name.split("/")[1]
        lines.append(
            f"| {family} | {len(ratios)} | {mean:.2f} | {behind} | {ratios[name]:.2f} {case} |"
        )
    return [*lines, ""]


def write_page(found, part):
    begin, end = (f"<!-- {part}: {edge} -->\n" for edge in ("begin", "end"))
    text = PAGE.read_text()
    if begin not in text or end not in text:
        raise SystemExit(f"{PAGE.name} has no lines {begin.strip()} and {end.strip()}")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    counts = sorted({threads for _, threads in found})
    lines = [line for threads in counts for line in table(found, threads)]
    PAGE.write_text(before + begin + "\n".join(lines) + end + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="beginnings of names, such as: conv/ int8_")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="measure what is known too")
    parser.add_argument("--behind", type=float, help="only cases whose known ratio is above this")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which to stop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.005, help="of each round and engine")
    parser.add_argument("--table", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--part", default=PART, help="of the page that --table writes")
    parser.add_argument("--random", type=int, metavar="SEED", help="draw the cases by this seed")
    parser.add_argument("--count", type=int, default=300, help="of the cases of --random")
    parser.add_argument("--narrow", action="store_true", help="draw them in 8 and 16 bits")
    arguments = parser.parse_args()
    drawn = arguments.random is not None
    draw = narrow_cases if arguments.narrow else random_cases
    cases = draw(arguments.random, arguments.count) if drawn else CASES
    file = figures_file()
    found = read(file, cases)
    if arguments.table:
        write_page(found, arguments.part)
        return 0
    names = [n for n in cases if not arguments.only or any(n.startswith(p) for p in arguments.only)]
    if arguments.behind is not None:
        known = {n: ratio_of(rows) for (n, t), rows in found.items() if t == arguments.threads}
        names = [n for n in names if (known.get(n) or 0) > arguments.behind]
    elif not arguments.again:
        names = [n for n in names if (n, arguments.threads) not in found]
    sets = {kind: Engines(kind, arguments.threads) for kind in (FLOAT, BFLOAT)}
    stop = time.monotonic() + arguments.budget
    try:
        with tempfile.TemporaryDirectory() as folder, file.open("a") as log:
            for name in names:
                if time.monotonic() > stop:
                    break
                path = Path(folder) / "model.onnx"
                onnx.save(make_model(cases[name]), path)
                engines = sets[engines_of(name)]
                rows = engines.measure(path, arguments.rounds, arguments.seconds)
                entry = {"case": name, "threads": arguments.threads, "rows": rows}
                log.write(json.dumps(entry) + "\n")
                log.flush()
                print(line_of(name, rows), flush=True)
    finally:
        for engines in sets.values():
            engines.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
