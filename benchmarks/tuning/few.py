"""What few trials find of what many do, by a clock without noise.

Of each kernel many candidates are measured: every one of the strategies that have few, and random
ones.  Then a search of the same kernel makes its trials; what was run once is not run again, for
the clock would say the same.
"""

import math
import random
import statistics
from pathlib import Path

from benchmarks.tuning.layers import tasks_of
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.database import Database
from slipway.tuning.experience import Experience
from slipway.tuning.measure import Measured, kernel_bench
from slipway.tuning.search import TaskSearch
from slipway.tuning.space import Choices

BATCH = 8
TOGETHER = 40  # candidates in a library of the many
# odd shapes of each kind, small enough that thousands of runs end
FEW_LAYERS = ("small_1", "small_2", "small_4", "small_7", "small_10", "small_13")


class RecallingBench:
    """A bench that looks up what was measured before, in a database too; the rest is run."""

    def __init__(self, bench, database):
        self.bench, self.database = bench, database
        self.runner, self.rounds = bench.runner, bench.rounds
        self.known = {
            row.candidate: Measured(
                row.candidate, list(row.seconds), row.score, row.kind, row.error
            )
            for row in database.trials(bench.task, bench.runner.device)
        }

    def measure(self, candidates, rounds=0, together=False):
        new = [c for c in dict.fromkeys(candidates) if c not in self.known]
        if new:
            found = self.bench.measure(new, rounds, together=True)
            self.database.add(
                self.bench.task, self.runner.device, [m for m in found if m.candidate in new]
            )
            self.known.update({m.candidate: m for m in found})
        default = self.bench.task.space.default
        return [self.known[c] for c in dict.fromkeys([default, *candidates])]

    def verify(self, candidate):
        return self.bench.verify(candidate)


def many_of(space: Choices, count, seed):
    """Return `count` candidates: those of small strategies all, of large ones random ones."""
    rng, found = random.Random(seed), dict.fromkeys(space.defaults.values())
    for _ in range(40 * count):
        if len(found) >= count:
            break
        found[space.sample(rng)] = None
    return list(found)[:count]


def expected_of_random(scores, trials):
    """Return the mean of the best score among so many different random ones of `scores`."""
    ordered, mean, left = sorted(scores), 0.0, 1.0
    for position, score in enumerate(ordered):
        among = len(ordered) - position
        chance = min(1.0, trials / among)
        mean += left * chance * score
        left *= 1.0 - chance
    return mean


def compare_few(few, many, layers, target, database, runner, kept):
    """Print, for each kernel, what `few` trials of a search find beside the best of `many`."""
    print(f"| kernel | choices | untuned | best of {many} | {few} random | {few} trials | stopped "
          "after |\n| --- |" + " ---: |" * 6)  # fmt: skip
    seen = set()
    with tempdir() as folder:
        all_of = Database(kept.database("many") or Path(folder.path) / "many.sqlite")
        for name, layer in layers.items():
            task = max(tasks_of(layer, target), key=lambda task: task.flops)
            if task.key in seen:
                continue
            seen.add(task.key)
            row = kept.row(name)
            if row is None:
                with kernel_bench(task, runner, Path(folder.path)) as bench:
                    row = few_beside_many(name, few, many, RecallingBench(bench, all_of), database)
                kept.add(row)
            print(f"| {name}: {task} | {len(task.space)} | {1 / row['best']:.3f} | "
                  f"{row['best']:.3f} | {row['random'] / row['best']:.3f} | "
                  f"{row['found'] / row['best']:.3f} | {row['stopped']} |", flush=True)  # fmt: skip
    ratios = [row["found"] / row["best"] for row in kept.rows]
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, worst {max(ratios):.3f}; "
          "untuned, random and trials are times over that of the best of the many")  # fmt: skip


def few_beside_many(name, few, many, bench, database):
    """Measure the many of a kernel, then search it; return the row about both."""
    task = bench.bench.task
    candidates = many_of(task.space, many, name)
    for at in range(0, len(candidates), TOGETHER):
        bench.measure(candidates[at : at + TOGETHER])
    scores = [bench.known[c].score for c in candidates]
    found = searched(task, few, bench, database)
    good = [s for s in scores if math.isfinite(s)]
    return {
        "name": name, "best": min(scores), "random": expected_of_random(good, few),
        "found": found[-1], "stopped": stopped_at(found) * BATCH,
    }  # fmt: skip


def searched(task, few, bench, database):
    """Return the best score after each batch of a search."""
    kept = Database(database) if database else None
    with tempdir() as folder:
        own = Database(Path(folder.path) / "trials.sqlite")
        search = TaskSearch(task, own, bench, 0, Experience(kept).of(task) if kept else None)
        found = []
        while search.trials < few and search.step(min(BATCH, few - search.trials)):
            found.append(search.best_score)
    return found


def stopped_at(found, fruitless=3):
    """Return after how many batches the task would have rested."""
    for at in range(fruitless, len(found)):
        if found[at] == found[at - fruitless]:
            return at + 1
    return len(found)
