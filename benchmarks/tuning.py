"""What a search of two minutes gains on layers that no schedule was fitted to.

    python -m benchmarks tuning [--seconds 120] [--only NAME ...] [--turns 41] [--json FILE]
                                [--database FILE] [--target TARGET] [--layouts-only]
                                [--core cortex-a53] [--transfer FILE]

Thirty layers of odd channels, skinny products, depthwise and grouped convolutions, each a model of
one layer with plain inputs and outputs, share the seconds: first their layouts, then the kernels
that come of them.  Then each model compiled with what was found and without tuning run in turns, in
a process of their own; the ratio is the median of the turns', with the middle half of them.
Outputs are held against the operators' NumPy definitions before a candidate may win, and once more
at the end.  One thread.  With --core all is timed by the clock of a modelled core, without noise.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ["SLIPWAY_NUM_THREADS"] = "1"

import numpy as np

from slipway import relay
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning.database import Database
from slipway.tuning.layout_search import tune_layouts
from slipway.tuning.layouts import extract_layouts
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.runner import LocalRunner, ModelledRunner, NodeRunner
from slipway.tuning.space import candidate_of
from slipway.tuning.task import extract_tasks
from slipway.tuning.transfer import transfer
from slipway.tuning.tune import Budget, tune_tasks
from slipway.tuning.whole_model import check_model

# name: (kind, data shape, weight shape, stride, groups, dtype); products have no stride
LAYERS = {
    "conv3x3_19_45": ("conv", (1, 19, 51, 51), (45, 19, 3, 3), 1, 1, "float32"),
    "conv3x3_37_37": ("conv", (1, 37, 29, 29), (37, 37, 3, 3), 1, 1, "float32"),
    "conv3x3_70_110_s2": ("conv", (1, 70, 39, 39), (110, 70, 3, 3), 2, 1, "float32"),
    "conv3x3_5_24": ("conv", (1, 5, 121, 121), (24, 5, 3, 3), 1, 1, "float32"),
    "conv5x5_21_33": ("conv", (1, 21, 27, 27), (33, 21, 5, 5), 1, 1, "float32"),
    "conv7x7_3_20_s4": ("conv", (1, 3, 161, 161), (20, 3, 7, 7), 4, 1, "float32"),
    "conv1x7_44": ("conv", (1, 44, 19, 19), (44, 44, 1, 7), 1, 1, "float32"),
    "conv3x3_260_260_7": ("conv", (1, 260, 7, 7), (260, 260, 3, 3), 1, 1, "float32"),
    "conv1x1_6_90": ("conv", (1, 6, 63, 63), (90, 6, 1, 1), 1, 1, "float32"),
    "conv1x1_90_6": ("conv", (1, 90, 63, 63), (6, 90, 1, 1), 1, 1, "float32"),
    "conv1x1_200_50_13": ("conv", (1, 200, 13, 13), (50, 200, 1, 1), 1, 1, "float32"),
    "conv1x1_11_11": ("conv", (1, 11, 101, 101), (11, 11, 1, 1), 1, 1, "float32"),
    "conv1x1_530_70_s2": ("conv", (1, 530, 15, 15), (70, 530, 1, 1), 2, 1, "float32"),
    "depthwise5x5_54": ("conv", (1, 54, 43, 43), (54, 1, 5, 5), 1, 54, "float32"),
    "depthwise5x5_110_s2": ("conv", (1, 110, 31, 31), (110, 1, 5, 5), 2, 110, "float32"),
    "depthwise3x3_23": ("conv", (1, 23, 97, 97), (23, 1, 3, 3), 1, 23, "float32"),
    "depthwise7x7_70": ("conv", (1, 70, 21, 21), (70, 1, 7, 7), 1, 70, "float32"),
    "grouped3x3_6x11": ("conv", (1, 66, 27, 27), (66, 11, 3, 3), 1, 6, "float32"),
    "grouped3x3_4x20": ("conv", (1, 80, 25, 25), (120, 20, 3, 3), 1, 4, "float32"),
    "grouped1x1_3x30": ("conv", (1, 90, 33, 33), (60, 30, 1, 1), 1, 3, "float32"),
    "dense_1_900_333": ("dense", (1, 900), (333, 900), 1, 1, "float32"),
    "dense_3_700_1001": ("dense", (3, 700), (1001, 700), 1, 1, "float32"),
    "dense_7_129_2050": ("dense", (7, 129), (2050, 129), 1, 1, "float32"),
    "dense_45_60_1100": ("dense", (45, 60), (1100, 60), 1, 1, "float32"),
    "dense_210_333_70": ("dense", (210, 333), (70, 333), 1, 1, "float32"),
    "dense_900_20_9": ("dense", (900, 20), (9, 20), 1, 1, "float32"),
    "matmul_5x61x43x77": ("batch_matmul", (5, 61, 43), (5, 77, 43), 1, 1, "float32"),
    "matmul_12x50x20x50": ("batch_matmul", (12, 50, 20), (12, 50, 20), 1, 1, "float32"),
    "int8_conv3x3_30_54": ("conv", (1, 30, 35, 35), (54, 30, 3, 3), 1, 1, "int8"),
    "int8_dense_20_300_150": ("dense", (20, 300), (150, 300), 1, 1, "int8"),
}


def module_of(layer):
    """Return a layer as a module of relay, and its weights."""
    kind, data_shape, weight_shape, stride, groups, dtype = layer
    data = relay.var("data", shape=data_shape, dtype=dtype)
    weight = relay.var("weight", shape=weight_shape, dtype=dtype)
    out = "int32" if dtype == "int8" else dtype
    if kind == "conv":
        body = relay.nn.conv2d(
            data,
            weight,
            strides=(stride, stride),
            padding=tuple(k // 2 for k in weight_shape[2:]),
            groups=groups,
            channels=weight_shape[0],
            kernel_size=weight_shape[2:],
            out_dtype=out,
        )
    elif kind == "dense":
        body = relay.nn.dense(data, weight, out_dtype=out)
    else:
        body = relay.nn.batch_matmul(data, weight, out_dtype=out)
    rng = np.random.default_rng(0)
    values = (
        rng.integers(-127, 128, weight_shape).astype("int8")
        if dtype == "int8"
        else rng.standard_normal(weight_shape).astype(dtype)
    )
    params = {} if kind == "batch_matmul" else {"weight": values}
    return IRModule.from_expr(relay.Function([data, weight], body)), params


def tasks_of(layer, target):
    """Return the kernels of a layer that can be computed in more than one way."""
    module, params = module_of(layer)
    return extract_tasks(module, target, params)


def quartiles(ratios):
    """Return the median of the turns' ratios, and the ends of the middle half."""
    ordered = sorted(ratios)
    count = len(ordered)
    return statistics.median(ordered), ordered[count // 4], ordered[(3 * count) // 4]


def layer_bench(layer, target, runner, folder):
    """Return what times a layer as a model of its own."""
    module, params = module_of(layer)
    return ModelBench(module, target, params, runner, folder)


def compared(layer, target, database, turns, runner, folder):
    """Return milliseconds without tuning, and the best's ratio to it, in a fresh process."""
    before, after = candidate_of("before", {}), candidate_of("after", {})
    with layer_bench(layer, target, runner, folder) as bench:
        paths = {before: bench.build([])}
        with database:
            module, params = module_of(layer)
            paths[after] = folder / f"after{target.upload_suffix}"
            relay.build(module, target, params=params).export_library(str(paths[after]))
        times = bench.times(paths, turns)
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
    parser.add_argument("--turns", type=int, default=41, help="of the comparison")
    parser.add_argument("--target", help="default: this machine, or the core")
    parser.add_argument("--core", help="a modelled core: cortex-a53, -a72, -a76; or node")
    parser.add_argument("--database", help="keep the trials here, and go on with what it has")
    parser.add_argument("--transfer", metavar="FILE", help="no search: trials of another target")
    parser.add_argument("--layouts-only", action="store_true", help="search no kernels")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    unknown = sorted(set(options.only or ()) - set(LAYERS))
    if unknown:
        parser.error(f"no layer {', '.join(unknown)}; there are {', '.join(LAYERS)}")
    layers = {name: LAYERS[name] for name in options.only or LAYERS}
    runner = LocalRunner()
    if options.core:
        runner = NodeRunner() if options.core == "node" else ModelledRunner(options.core)
    given = options.target or (runner.target if options.core else "llvm -mcpu=native")
    target, rows = Target(given), []
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
        for name, layer in layers.items():
            milliseconds, ratio, wrong = compared(
                layer, target, database, options.turns, runner, Path(folder)
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
