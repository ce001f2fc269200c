"""Run unit tests of classic TVM with Slipway under that name, and count them by area.

python tools/classic_tests.py CHECKOUT [CHECKOUT ...] [--area NAME ...] [--only WORD] [--every N]
    [--sample N --seed S]

A checkout is a copy of TVM's sources of some release.  Each test file has a process of its own and
each test a limit of time; where the process dies, the test it was in has failed and the rest runs
in another one.  Tests of TVM's internals, named in tools/classic_internals.py, are counted apart.
Tests of several targets are of the processor, or of what $TVM_TEST_TARGETS names ("opencl;vulkan").
`--json` keeps the outcomes, `--write` puts the counts into docs/classic_scripts.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from classic_internals import AREAS, exceptions, internal

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from slipway.toolchain.native import cache_dir, host_runtime  # noqa: E402

PAGE = ROOT / "docs" / "classic_scripts.md"
CHILD = Path(__file__).with_name("classic_test_child.py")
BEGIN, END = "<!-- counts of tools/classic_tests.py -->", "<!-- end of the counts -->"
EXCEPTED = "<!-- exceptions of tools/classic_internals.py -->"
END_OF_EXCEPTED = "<!-- end of the exceptions -->"


@dataclass(frozen=True)
class Outcome:
    """How one test ended: `state` is passed, failed, skipped, or internal (excepted by name)."""

    release: str
    area: str
    test: str
    state: str
    cause: str = ""


def files_of(checkout: Path, area: str) -> list[Path]:
    """Return the test files of an area; a file belongs to the first area that names it."""
    taken: set[Path] = set()
    for name, patterns in AREAS.items():
        found = {p for pattern in patterns for p in checkout.glob(f"tests/{pattern}")} - taken
        if name == area:
            return sorted(found)
        taken |= found
    return []


def run_file(checkout: Path, file: Path, limit_s: float) -> tuple[list[str], dict[str, list[str]]]:
    """Run a file's tests; return what kept it from being read, and test -> [state, cause]."""
    ends: dict[str, list[str]] = {}
    broken: list[str] = []
    with tempfile.TemporaryDirectory(prefix="classic-") as folder:
        report, done = Path(folder) / "report.jsonl", Path(folder) / "done.json"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(checkout / "tests" / "python"),
                                           os.environ.get("PYTHONPATH", "")]),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "TVM_TEST_TARGETS": os.environ.get("TVM_TEST_TARGETS", "llvm"),
            "MPLBACKEND": "Agg", "HOME": folder, "TVM_HOME": str(checkout),
            "SLIPWAY_CACHE": str(cache_dir()),
        }  # fmt: skip
        while True:
            report.write_text("")
            done.write_text(json.dumps(list(ends)))
            child = subprocess.Popen(
                [sys.executable, str(CHILD), str(file), str(report), str(limit_s), str(done)],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            why = wait_for(child, report, 3 * limit_s + 60)
            lines = [json.loads(line) for line in report.read_text().splitlines()]
            collected = next((x["collected"] for x in lines if "collected" in x), [])
            broken += [x["broken"] for x in lines if "broken" in x]
            running = ""
            for line in lines:
                running = line.get("begin", running)
                if "end" in line and ends.get(line["end"], [""])[0] != "failed":
                    ends[line["end"]] = [line["state"], line["cause"]]
            left = [test for test in collected if test not in ends]
            if not left:
                if not ends and not any({"collected", "broken", "skipped_file"} & set(x)
                                        for x in lines):  # fmt: skip
                    broken.append(f"the process ended before its tests were read ({why})")
                return broken, ends
            lost = running if running and running not in ends else left[0]
            ends[lost] = ["failed", f"the process ended in this test ({why})"]


def wait_for(child: subprocess.Popen[bytes], report: Path, silent_s: float) -> str:
    """Wait until a process ends, or end it when it has written nothing for a time."""
    size, since = -1, time.monotonic()
    try:
        while child.poll() is None:
            time.sleep(0.2)
            if report.stat().st_size != size:
                size, since = report.stat().st_size, time.monotonic()
            if time.monotonic() - since > silent_s:
                return "it hung"
        return f"exit {child.returncode}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def outcomes_of(checkout: Path, area: str, file: Path, limit_s: float) -> list[Outcome]:
    """Run a file and return an outcome for each test; a file that cannot be read counts once."""
    release, name = checkout.name.removeprefix("tvm-"), file.relative_to(checkout).as_posix()
    broken, ends = run_file(checkout, file, limit_s)
    found = []
    for test, (state, cause) in ends.items():
        full = f"{name}::{test.partition('::')[2]}"
        excepted = state == "failed" and internal(full)
        found.append(Outcome(release, area, full, "internal" if excepted else state, cause))
    if broken and not ends:
        found.append(Outcome(release, area, name, "internal" if internal(name) else "failed",
                             broken[0]))  # fmt: skip
    return found


def counts(outcomes: list[Outcome]) -> str:
    """Return the counts by release and area as Markdown."""
    rows = ["| release | area | passed | failed | of those that count | internals | skipped |",
            "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        groups[outcome.release, outcome.area][outcome.state] += 1
    for (release, area), n in groups.items():
        share = 100 * n["passed"] // max(1, n["passed"] + n["failed"])
        rows.append(f"| {release} | {area} | {n['passed']} | {n['failed']} | {share}% | "
                    f"{n['internal']} | {n['skipped']} |")  # fmt: skip
    return "\n".join(rows)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--area", nargs="*", default=list(AREAS), choices=list(AREAS))
    parser.add_argument("--only", default="", help="files whose path holds this word")
    parser.add_argument("--limit", type=float, default=60, help="seconds a test may take")
    parser.add_argument("--every", type=int, default=1, help="run each so many-th test of a file")
    parser.add_argument("--sample", type=int, default=0, help="run so many tests of a file, drawn")
    parser.add_argument("--seed", type=int, default=0, help="what --sample draws with")
    parser.add_argument("--json", type=Path, help="also write the outcomes to this file")
    parser.add_argument("--write", action="store_true", help="write docs/classic_scripts.md")
    options = parser.parse_args()
    drawn = (options.every, options.sample, options.seed)
    os.environ["CLASSIC_EVERY"], os.environ["CLASSIC_SAMPLE"], os.environ["CLASSIC_SEED"] = map(
        str, drawn
    )
    outcomes: list[Outcome] = []
    host_runtime()  # compiled once, not in the time of the first test of each file
    for checkout in options.checkouts:
        for area in options.area:
            for file in files_of(checkout.resolve(), area):
                if options.only not in file.as_posix():
                    continue
                found = outcomes_of(checkout.resolve(), area, file, options.limit)
                print(file.relative_to(checkout.resolve()),
                      dict(Counter(o.state for o in found)), flush=True)  # fmt: skip
                outcomes += found
                if options.json:
                    options.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=0))
    table = counts(outcomes)
    print(table)
    for cause, number in Counter(
        o.cause.partition(" [")[0][:150] for o in outcomes if o.state == "failed"
    ).most_common(40):
        print(f"{number:4}  {cause}")
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        between, _, rest = rest.partition(END)[2].partition(EXCEPTED)
        after = rest.partition(END_OF_EXCEPTED)[2]
        PAGE.write_text(
            f"{before}{BEGIN}\n\n{table}\n\n{END}{between}{EXCEPTED}\n\n{exceptions()}\n\n"
            f"{END_OF_EXCEPTED}{after}",
            encoding="utf-8",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
