"""Change the sources in small wrong ways, and see whether the tests notice.

python tools/mutants.py [MODULE ...] [--left] [--sample N] [--seed N] [--jobs N] [--only NAME ...]

Runs the mutants of the modules of `mutation/table.py` (all, or those whose name ends with MODULE),
prints a line for each that survives, and at the end a table: killed, survived, and those that
`mutation/equivalent.txt` explains.  The exit code is 1 when fewer than 95 of 100 that are not
equivalent are killed, an explained one is killed, or tests fail without any mutant.  `--sample 40`
takes at most 40 of each module, drawn by `--seed`; `--only` those of the given names; `--left`
those that were not killed when they were last run.  `build/mutants` keeps the verdicts: what killed
a mutant is tried first the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from mutation.changes import Mutant, mutants_of  # noqa: E402
from mutation.table import JUDGES  # noqa: E402

EQUIVALENT = ROOT / "tools" / "mutation" / "equivalent.txt"
MEMORY = ROOT / "build" / "mutants"
MIN_SHARE = 0.95


class TestsFail(Exception):
    """The tests of a module fail, or cannot be run, without any mutant."""


@dataclass
class Result:
    """What became of the mutants of one module."""

    module: str
    verdicts: dict[str, str]
    mutants: dict[str, Mutant]

    def named(self, *kinds: str) -> list[str]:
        """Return the names of those whose verdict begins with one of `kinds`."""
        return [name for name, verdict in self.verdicts.items() if verdict.startswith(kinds)]


def source_of(module: str, root: Path = ROOT / "src") -> Path:
    """Return the file of a module."""
    return root.joinpath(*module.split(".")).with_suffix(".py")


def explained(path: Path = EQUIVALENT) -> dict[str, str]:
    """Return {name of a mutant: why no test can tell it from the original}."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {line.split()[0]: line for line in lines}


def remembered(module: str, memory: Path = MEMORY) -> dict[str, str]:
    """Return the verdicts on the mutants of a module when each of them was last run."""
    path = memory / f"{module}.jsonl"
    return dict(map(json.loads, path.read_text().splitlines())) if path.exists() else {}


def judge(
    module: str,
    tests: list[str],
    names: list[str] | None = None,
    *,
    jobs: int = 2,
    root: Path = ROOT,
    source: Path = ROOT / "src",
    memory: Path = MEMORY,
) -> Result:
    """Run the mutants of a module (`names` of them) against `tests`, all in one process's forks."""
    mutants = {m.name: m for m in mutants_of(source_of(module, source).read_text(), module)}
    known = {name: v for name, v in remembered(module, memory).items() if name in mutants}
    verdicts = memory / f"{module}.jsonl"
    verdicts.parent.mkdir(parents=True, exist_ok=True)
    verdicts.write_text("".join(json.dumps(item) + "\n" for item in known.items()))
    wanted = list(mutants) if names is None else names
    with tempfile.TemporaryDirectory() as folder:
        order = Path(folder) / "order.json"
        order.write_text(
            json.dumps(
                {
                    "module": module, "mutants": wanted, "jobs": jobs, "verdicts": str(verdicts),
                    "killers": {name: _killer(verdict) for name, verdict in known.items()},
                }
            )
        )  # fmt: skip
        path = os.pathsep.join([str(source), str(ROOT / "tools")])
        environment = {
            **os.environ, "PYTHONPATH": path, "MUTANTS_ORDER": str(order),
            "SLIPWAY_KERNEL_CACHE": "0", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        command = [
            sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "mutation.judge",
            "-p", "no:cacheprovider", "-p", "no:xdist", *tests,
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False
        )
    found = remembered(module, memory)
    if "" in found:
        raise TestsFail(f"{module}: {found['']}")
    if done.returncode != 0:
        raise TestsFail(f"the tests of {module} cannot be run:\n{done.stdout}{done.stderr}")
    return Result(module, {name: found[name] for name in wanted}, mutants)


def _killer(verdict: str) -> str:
    """Return the test that a verdict names."""
    return verdict.removeprefix("killed by ").partition(" (")[0]


def main() -> int:
    """Run the mutants and return the exit code."""
    parser = argparse.ArgumentParser(description="See whether the tests notice small mistakes.")
    parser.add_argument("modules", nargs="*", help="ends of module names (default: all)")
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--only", nargs="+", help="names of mutants")
    parser.add_argument("--left", action="store_true", help="those that were not killed last time")
    parser.add_argument("--verbose", action="store_true", help="say what killed each mutant")
    options = parser.parse_args()
    modules = [m for m in JUDGES if not options.modules or m.endswith(tuple(options.modules))]
    known = explained()
    results = []
    broken = False
    for module in modules:
        names = [m.name for m in mutants_of(source_of(module).read_text(), module)]
        if options.only:
            names = [name for name in names if name in options.only]
        elif options.left:
            last = remembered(module)
            names = [name for name in names if not last.get(name, "").startswith("killed")]
        elif options.sample and len(names) > options.sample:
            names = random.Random(options.seed).sample(names, options.sample)
        tests = [test for test in JUDGES[module] if (ROOT / test).exists()]
        if not names:
            continue
        try:
            results.append(judge(module, tests, names, jobs=options.jobs))
        except TestsFail as error:
            print(error, flush=True)
            broken = True
            continue
        _print_survivors(results[-1], known, options.verbose)
    return _print_table(results, known) or int(broken)


def _print_survivors(result: Result, known: dict[str, str], verbose: bool) -> None:
    for name, mutant in result.mutants.items():
        verdict = result.verdicts.get(name, "")
        line = mutant.lines[0]
        if verbose or (verdict and not verdict.startswith("killed") and name not in known):
            print(f"{result.module.rpartition('.')[2]}.py:{line} {mutant}: {verdict}", flush=True)


def _print_table(results: list[Result], known: dict[str, str]) -> int:
    print(f"{'module':<40} {'mutants':>7} {'killed':>7} {'survived':>8} {'equivalent':>10}")
    killed_in_all = run_in_all = 0
    wrong = []
    for result in results:
        killed, left = result.named("killed"), result.named("survived", "unreached")
        equivalent = [name for name in left if name in known]
        wrong += [known[name] for name in killed if name in known]
        survived = len(left) - len(equivalent)
        killed_in_all += len(killed)
        run_in_all += len(killed) + survived
        module = result.module.removeprefix("slipway.")
        print(
            f"{module:<40} {len(result.verdicts):>7} {len(killed):>7} {survived:>8} "
            f"{len(equivalent):>10}"
        )
    share = killed_in_all / max(1, run_in_all)
    print(f"killed {killed_in_all} of {run_in_all} that are not equivalent: {share:.1%}")
    for line in wrong:
        print(f"killed, but explained as equivalent: {line}")
    return 1 if share < MIN_SHARE or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
