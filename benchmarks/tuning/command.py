"""What a search of two minutes gains on layers that no schedule was fitted to.

    python -m benchmarks tuning [--seconds 120] [--only NAME ...] [--rounds 41] [--json FILE]
                                [--database FILE] [--target TARGET] [--layouts-only]
                                [--core cortex-a53] [--transfer FILE]
    python -m benchmarks tuning --beside metaschedule --peer PYTHON [--population 512]
    python -m benchmarks tuning --sample 48 --core cortex-a53 --database FILE
    python -m benchmarks tuning --learned FILE
    python -m benchmarks tuning --few 64 --many 2000 --core cortex-a53 [--database FILE]

Thirty layers of odd channels, skinny products, depthwise and grouped convolutions, each a model of
one layer with plain inputs and outputs, share the seconds: first their layouts, then the kernels
that come of them.  Then each model compiled with what was found and without tuning run interleaved,
in a process of their own; the ratio is the median of the rounds', with the middle half of them.
Outputs are held against the operators' NumPy definitions before a candidate may win, and once more
at the end.  One thread.  --sample measures candidates of sixty small layers drawn at random, and
--learned says how well trees rank those of a kernel that they have seen no trial of, and --few
what so many trials of a search find beside the best of --many candidates.  With --core
all is timed by the clock of a modelled core, without noise.

--beside metaschedule gives MetaSchedule the same layers and seconds, and times its winners and
onnxruntime in the same rounds.  --peer (or SLIPWAY_TVM_PYTHON) is the Python of an environment
with apache-tvm==0.27.*, apache-tvm-ffi==0.1.14.post0, xgboost-cpu, psutil and cloudpickle; without
one MetaSchedule is left out, and the output says so.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ["SLIPWAY_NUM_THREADS"] = "1"

from benchmarks.tuning.beside import (
    PEER,
    MetaSchedule,
    PeerError,
    compare_beside,
    print_beside,
)
from benchmarks.tuning.few import compare_few
from benchmarks.tuning.layers import LAYERS, module_of, tasks_of
from benchmarks.tuning.learned import print_learned, sample
from slipway import relay
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning.database import Database
from slipway.tuning.layout_search import tune_layouts
from slipway.tuning.layouts import extract_layouts
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.runner import LocalRunner, ModelledRunner, NodeRunner
from slipway.tuning.space import candidate_of
from slipway.tuning.transfer import transfer
from slipway.tuning.tune import Budget, tune_tasks
from slipway.tuning.whole_model import check_model


def quartiles(ratios):
    """Return the median of the rounds' ratios, and the ends of the middle half."""
    ordered = sorted(ratios)
    count = len(ordered)
    return statistics.median(ordered), ordered[count // 4], ordered[(3 * count) // 4]


def layer_bench(layer, target, runner, folder):
    """Return what times a layer as a model of its own."""
    module, params = module_of(layer)
    return ModelBench(module, target, params, runner, folder)


def compared(layer, target, database, rounds, runner, folder):
    """Return milliseconds without tuning, and the best's ratio to it, in a fresh process."""
    before, after = candidate_of("before", {}), candidate_of("after", {})
    with layer_bench(layer, target, runner, folder) as bench:
        paths = {before: bench.build([])}
        with database:
            module, params = module_of(layer)
            paths[after] = folder / f"after{target.upload_suffix}"
            relay.build(module, target, params=params).export_library(str(paths[after]))
        times = bench.times(paths, rounds)
        wrong = bench.verify(paths[after])
    ratios = [a / b for a, b in zip(times[after], times[before], strict=False)]
    return statistics.median(times[before]) * 1e3, quartiles(ratios), wrong


def search(layers, target, database, runner, seconds, layouts_only):
    """Search the layouts of all layers in half of the time, then their kernels."""
    start = time.monotonic()
    for number, layer in enumerate(layers.values()):
        left = seconds * (1.0 if layouts_only else 0.6) - (time.monotonic() - start)
        module, params = module_of(layer)
        share = left / (len(layers) - number)
        if share > 0:
            tune_layouts(module, target, params, runner, database, seconds=share)
    left = seconds - (time.monotonic() - start)
    if layouts_only or left <= 0:
        return
    with database:
        found = {t.key: t for layer in layers.values() for t in tasks_of(layer, target)}
    tasks = sorted(found.values(), key=lambda task: -task.flops)
    tune_tasks(tasks, runner, database, Budget(per_task=2000, seconds=left))
    for layer in layers.values():
        module, params = module_of(layer)
        decided = [*extract_layouts(module, target, params), *tasks_of(layer, target)]
        check_model(module, target, params, runner, database, decided)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="of search, in all")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these layers")
    parser.add_argument("--rounds", type=int, default=41, help="of the comparison")
    parser.add_argument("--target", help="default: this machine, or the core")
    parser.add_argument("--core", help="a modelled core: cortex-a53, -a72, -a76; or node")
    parser.add_argument("--database", help="keep the trials here, and go on with what it has")
    parser.add_argument("--transfer", metavar="FILE", help="no search: trials of another target")
    parser.add_argument("--layouts-only", action="store_true", help="search no kernels")
    parser.add_argument("--sample", type=int, metavar="N", help="of each small layer's kernels")
    parser.add_argument("--learned", metavar="FILE", help="no search: what its trials teach")
    parser.add_argument("--few", type=int, metavar="N", help="trials, beside the best of --many")
    parser.add_argument("--many", type=int, metavar="N", default=2000, help="candidates for --few")
    parser.add_argument("--beside", choices=["metaschedule"], help="searches as long, by another")
    parser.add_argument(
        "--peer", metavar="PYTHON", default=os.environ.get(PEER), help="of --beside"
    )
    parser.add_argument("--population", type=int, default=512, help="of MetaSchedule's search")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if options.learned:
        print_learned(Database(options.learned))
        return
    unknown = sorted(set(options.only or ()) - set(LAYERS))
    if unknown:
        parser.error(f"no layer {', '.join(unknown)}; there are {', '.join(LAYERS)}")
    layers = {name: LAYERS[name] for name in options.only or LAYERS}
    runner = LocalRunner()
    if options.core:
        runner = NodeRunner() if options.core == "node" else ModelledRunner(options.core)
    given = options.target or (runner.target if options.core else "llvm -mcpu=native")
    target, rows = Target(given), []
    if options.sample:
        if not options.database:
            parser.error("--sample needs --database FILE, which gets the trials")
        with PassContext(opt_level=3):
            sample(options.sample, target, Database(options.database), runner)
        return
    if options.few:
        if not options.core or options.core == "node":
            parser.error("--few needs the clock without noise of a modelled --core")
        with PassContext(opt_level=3):
            compare_few(options.few, options.many, target, options.database, runner)
        return
    with tempfile.TemporaryDirectory() as folder, PassContext(opt_level=3):
        database = Database(options.database or Path(folder) / "trials.sqlite")
        start = time.monotonic()
        if options.transfer:
            known = Database(options.transfer)
            for layer in layers.values():
                transfer(module_of(layer)[0], target, module_of(layer)[1], known, database)
        else:
            search(layers, target, database, runner, options.seconds, options.layouts_only)
        searched = time.monotonic() - start
        if options.beside:
            found = (target, database, runner, options.rounds)
            beside(layers, options, found, (len(database), searched), Path(folder))
            return
        for name, layer in layers.items():
            milliseconds, ratio, wrong = compared(
                layer, target, database, options.rounds, runner, Path(folder)
            )
            rows.append(
                {
                    "layer": name, "untuned_ms": milliseconds, "ratio": ratio[0],
                    "quartiles": ratio[1:], "wrong": wrong,
                }
            )  # fmt: skip
        trials = len(database)
    print_table(rows, searched, trials)
    if options.json:
        Path(options.json).write_text(json.dumps({"seconds": searched, "rows": rows}, indent=1))


def beside(layers, options, found, ours, folder):
    """Have MetaSchedule search as long, and time the winners of both."""
    searched, peer = {"slipway": ours}, None
    if options.peer:
        peer = MetaSchedule(options.peer)
        try:
            done = peer.search(layers, options.seconds, options.population)
            searched["metaschedule"] = done["trials"], done["seconds"]
        except PeerError as error:
            print(f"MetaSchedule: {error}")
            peer.close()
            peer = None
    else:
        print(f"MetaSchedule skipped: name a Python that has apache-tvm by --peer or {PEER}")
    try:
        rows = compare_beside(layers, *found, peer, folder)
    finally:
        if peer is not None:
            peer.close()
    print_beside(rows, searched)
    if options.json:
        Path(options.json).write_text(json.dumps({"searched": searched, "rows": rows}, indent=1))


def print_table(rows, searched, trials):
    print("| layer | untuned ms | tuned / untuned | middle half |")
    print("| --- | ---: | ---: | ---: |")
    for row in rows:
        low, high = row["quartiles"]
        print(
            f"| {row['layer']} | {row['untuned_ms']:.4f} | {row['ratio']:.2f} | "
            f"{low:.2f}..{high:.2f} |{' WRONG: ' + row['wrong'] if row['wrong'] else ''}"
        )
    mean = statistics.geometric_mean(row["ratio"] for row in rows)
    print(
        f"geometric mean {mean:.3f} ({1 / mean:.2f} times as fast), slowest "
        f"{max(row['ratio'] for row in rows):.2f}, {trials} trials in {searched:.0f} s of search"
    )


if __name__ == "__main__":
    main()
