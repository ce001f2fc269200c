"""Layers searched, and timed with what was found beside the same layers without tuning."""

import statistics
import time

from benchmarks.tuning.layers import module_of, tasks_of
from benchmarks.tuning.limits import machine_of, shares_of
from slipway import relay
from slipway.tuning.layout_search import tune_layouts
from slipway.tuning.layouts import extract_layouts
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.runner import LocalRunner
from slipway.tuning.space import candidate_of
from slipway.tuning.transfer import transfer
from slipway.tuning.tune import Budget, tune_tasks
from slipway.tuning.whole_model import check_model

UNTUNED = candidate_of("untuned", {})


def quartiles(ratios):
    """Return the median of the rounds' ratios, and the ends of the middle half."""
    ordered = sorted(ratios)
    count = len(ordered)
    return statistics.median(ordered), ordered[count // 4], ordered[(3 * count) // 4]


def compared(layer, target, databases, rounds, runner, folder):
    """Return milliseconds without tuning, and the ratio of each database's best to it.

    All libraries run interleaved in one fresh process; the third part is what they compute
    otherwise than the operators' definitions.
    """
    module, params = module_of(layer)
    with ModelBench(module, target, params, runner, folder) as bench:
        paths, wrong = {UNTUNED: bench.build([])}, ""
        for name, database in databases.items():
            path = paths[candidate_of(name, {})] = folder / f"{name}{target.upload_suffix}"
            with database:
                relay.build(module, target, params=params).export_library(str(path))
        times = bench.times(paths, rounds)
        for name in databases:
            wrong = wrong or bench.verify(paths[candidate_of(name, {})])
    ratios = {
        name: quartiles(
            [a / b for a, b in zip(times[candidate_of(name, {})], times[UNTUNED], strict=False)]
        )
        for name in databases
    }
    return statistics.median(times[UNTUNED]) * 1e3, ratios, wrong


def search(layers, target, database, runner, seconds, spent, *, layouts_only=False):
    """Search the layouts of all layers in 0.6 of the time, then their kernels.

    ``spent(seconds)`` is told the time as it goes, so that a search that ends can go on.
    """
    start = told = time.monotonic()

    def tell(_progress=None):
        nonlocal told
        now = time.monotonic()
        spent(now - told)
        told = now

    for number, layer in enumerate(layers.values()):
        left = seconds * (1.0 if layouts_only else 0.6) - (time.monotonic() - start)
        module, params = module_of(layer)
        share = left / (len(layers) - number)
        if share > 0:
            tune_layouts(module, target, params, runner, database, seconds=share)
            tell()
    left = seconds - (time.monotonic() - start)
    if layouts_only or left <= 0:
        return
    with database:
        found = {t.key: t for layer in layers.values() for t in tasks_of(layer, target)}
    tasks = sorted(found.values(), key=lambda task: -task.flops)
    tune_tasks(tasks, runner, database, Budget(per_task=2000, seconds=left), watcher=tell)
    tell()
    for layer in layers.values():
        module, params = module_of(layer)
        decided = [*extract_layouts(module, target, params), *tasks_of(layer, target)]
        check_model(module, target, params, runner, database, decided)


def take_over(layers, target, known, database):
    """Have the trials of other targets choose for this one, without a trial."""
    for layer in layers.values():
        module, params = module_of(layer)
        transfer(module, target, params, known, database)


def compare(layers, target, databases, runner, rounds, kept, folder):
    """Print a row for each layer, those that are kept at once, and the means."""
    headings = "".join(f" {name} / untuned | middle half |" for name in databases)
    machine = machine_of(target) if isinstance(runner, LocalRunner) else None
    headings += " of the limit | tuned |" if machine else ""
    print(f"| layer | untuned ms |{headings}")
    print("| --- | ---: |" + " ---: |" * (2 * len(databases) + 2 * bool(machine)), flush=True)
    for name, layer in layers.items():
        row = kept.row(name)
        if row is None:
            milliseconds, ratios, wrong = compared(layer, target, databases, rounds, runner, folder)
            row = {"name": name, "untuned_ms": milliseconds, "ratios": ratios, "wrong": wrong}
            if machine:
                limit = machine.limit_of(layer)
                row |= {"limit_us": limit.microseconds, "by": limit.by}
            kept.add(row)
        cells = "".join(
            f" {middle:.2f} | {low:.2f}..{high:.2f} |"
            for middle, low, high in row["ratios"].values()
        )
        cells += "".join(f" {share:.2f} |" for share in shares_of(row)) if machine else ""
        wrong = f" WRONG: {row['wrong']}" if row["wrong"] else ""
        print(f"| {name} | {row['untuned_ms']:.4f} |{cells}{wrong}", flush=True)
    for name in databases:
        print_mean(name, [kept.row(layer)["ratios"][name][0] for layer in layers])
    if machine:
        rows = [kept.row(name) for name in layers]
        untuned = statistics.geometric_mean([shares_of(row)[0] for row in rows])
        print(f"without tuning {untuned:.2f} of the limits' rates in the geometric mean")
    if len(databases) > 1:
        one, other = databases
        print_mean(
            f"{one} over {other}",
            [kept.row(n)["ratios"][one][0] / kept.row(n)["ratios"][other][0] for n in layers],
        )
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in kept.seconds.items())
    trials = ", ".join(f"{name} {len(database)} trials" for name, database in databases.items())
    print(f"searched: {spent}; {trials}")


def print_mean(name, ratios):
    mean = statistics.geometric_mean(ratios)
    print(
        f"{name}: geometric mean {mean:.3f} ({1 / mean:.2f} times as fast), slowest "
        f"{max(ratios):.2f}, of {len(ratios)} layers"
    )
