"""How well trees rank the candidates of kernels that they have seen no trial of."""

import math
import random
import statistics
from pathlib import Path

import numpy as np

from benchmarks.tuning.layers import small_layers, tasks_of
from slipway.errors import SlipwayError
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.experience import LENGTH, Experience, grown
from slipway.tuning.measure import kernel_bench

FEWEST = 12  # candidates of a kernel that is asked about
TOGETHER = 24  # candidates in a library


def sample(count, target, database, runner):
    """Measure up to `count` candidates of each kernel of the small layers, and keep their loops.

    Half of those of each strategy are the ones that its cost model likes best, half any.
    """
    experience, seen = Experience(database), set()
    for name, layer in small_layers().items():
        for task in tasks_of(layer, target):
            if task.key in seen or len(task.space) < TOGETHER:
                continue
            seen.add(task.key)
            candidates = chosen(task, count)
            with tempdir() as folder, kernel_bench(task, runner, Path(folder.path), 5) as bench:
                for at in range(0, len(candidates), TOGETHER):
                    try:
                        found = bench.measure(candidates[at : at + TOGETHER], together=True)
                    except SlipwayError as error:
                        print(f"{name}: {task}: {error}")
                        break
                    database.add(task, runner.device, found)
                    experience.of(task).keep([m.candidate for m in found if not m.kind])
            print(f"{name}: {task}: {len(candidates)} candidates", flush=True)


def chosen(task, count):
    """Return candidates of a task, of each strategy some."""
    rng, of_strategies = random.Random(task.key), {}
    for _ in range(3000):
        candidate = task.space.sample(rng)
        of_strategies.setdefault(candidate.strategy, {})[candidate] = None
    found = list(task.space.defaults.values())
    for some in of_strategies.values():
        liked = sorted(some, key=lambda c: task.space.predicted(c) or math.inf)
        found += liked[: count // 4] + list(some)[: count // 3]
    return list(dict.fromkeys(found))[:count]


def ranks(values):
    """Return the rank of each value; equal ones share theirs."""
    return (values[:, None] > values).sum(1) + (values[:, None] == values).sum(1) / 2


def correlation(guess, scores):
    """Return the correlation of ranks; 0 where all are one."""
    if not np.ptp(guess) or not np.ptp(scores):
        return 0.0
    return np.corrcoef(ranks(guess), ranks(scores))[0, 1]


def print_learned(database):
    """Print, for each kernel, how trees of the others' trials and the cost model rank its own."""
    kernels = {}
    for task, row, score in database.loops(LENGTH):
        kernels.setdefault(task, []).append((row, score))
    print("| kernel | candidates | trees, rank correlation | cost model | first of trees, over "
          "the best | of the cost model | of the first 4 | | of the first 8 | |")  # fmt: skip
    print("| --- |" + " ---: |" * 9)
    table = []
    for task, mine in kernels.items():
        if len(mine) < FEWEST:
            continue
        trees = grown([pair for other, rows in kernels.items() if other != task for pair in rows])
        inputs, scores = np.array([row for row, _ in mine]), np.array([s for _, s in mine])
        guesses = trees.predict(inputs, num_threads=1), inputs[:, 0]
        line = [correlation(guess, scores) for guess in guesses]
        for first in (1, 4, 8):
            line += [
                scores[np.argsort(g, kind="stable")[:first]].min() / scores.min() for g in guesses
            ]
        table.append(line)
        print(f"| {task} | {len(mine)} | " + " | ".join(f"{value:.3f}" for value in line) + " |")
    if not table:
        print(f"no kernel in {database.where} has {FEWEST} candidates whose loops are known")
        return
    columns = list(zip(*table, strict=True))
    means = [statistics.mean(c) for c in columns[:2]]
    means += [statistics.geometric_mean(c) for c in columns[2:]]
    rows = sum(map(len, kernels.values()))
    print(f"| mean of {len(table)} | {rows} | " + " | ".join(f"{m:.3f}" for m in means) + " |")
