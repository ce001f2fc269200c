"""Latency of single operators and short chains on this CPU, beside the better of two runtimes.

    python -m benchmarks operators [--only conv softmax/rows] [--threads 1 2] [--json FILE]

The models are listed in ``_operator_cases``.  Each engine is one process, which loads one model
after the other; engines take turns on the same inputs, round after round, and a figure is the
median over the rounds of the mean time of a run.  "of limit" is the share of what binds: the
measured rate of multiply-adds, or of memory traffic for operands that are read and written once.
Small operands stay in the caches between runs, so that such a share can exceed 100%.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from math import prod
from pathlib import Path

import onnx

from benchmarks._operator_cases import CASES
from benchmarks._operator_models import make_model
from benchmarks.cpu import Worker, difference

PEERS = ("onnxruntime", "openvino")
GOAL = 1.05  # of the better peer's time
# Idle threads of the engine before spin for about a millisecond.
SETTLE_SECONDS = 0.02
ITEM_BYTES = {1: 4, 2: 1, 3: 1, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 16: 2}


def shapes_of(model):
    """Return {name: (shape, bytes an item)} of all values of a model."""
    graph = model.graph
    found = {w.name: (tuple(w.dims), ITEM_BYTES[w.data_type]) for w in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.tensor_type
        found[value.name] = tuple(d.dim_value for d in kind.shape.dim), ITEM_BYTES[kind.elem_type]
    return found


def work_of(model):
    """Return (arithmetic operations of products, bytes of inputs, weights and outputs)."""
    shapes, flops = shapes_of(model), 0
    for node in model.graph.node:
        ins = [shapes.get(name, ((), 0))[0] for name in node.input]
        out = shapes.get(node.output[0], ((), 0))[0]
        transposed = any(a.name == "transA" and a.i for a in node.attribute)
        if node.op_type == "Conv":
            flops += 2 * prod(out) * prod(ins[1][1:])
        elif node.op_type == "ConvTranspose":
            flops += 2 * prod(ins[0]) * prod(ins[1][1:])
        elif node.op_type in ("Gemm", "MatMul"):
            flops += 2 * prod(out) * ins[0][0 if transposed else -1]
        elif node.op_type in ("LSTM", "GRU"):
            flops += 2 * prod(ins[0][:2]) * (prod(ins[1]) + prod(ins[2]))
    gathers = any(node.op_type == "Gather" for node in model.graph.node)
    ends = [value.name for value in (*model.graph.input, *model.graph.output)]
    read = [] if gathers else [w.name for w in model.graph.initializer]
    return flops, sum(prod(shapes[n][0]) * shapes[n][1] for n in (*ends, *read))


def limits_of(threads):
    """Return (operations, bytes) per second that this machine reaches with so many threads."""
    import slipway
    from slipway.inspect.limits import Probes
    from slipway.target import Target

    slipway.runtime.set_num_threads(threads)
    probes = Probes(Target("llvm"), slipway.cpu(0), lambda module: module, threads)
    return probes.flops(), probes.levels()[-1].copy


def measure(path, workers, rounds, seconds, settle):
    """Return {engine: {"us"} or {"error"}} for one model, with the difference of the outputs."""
    rows = {name: worker.request(f"load {path}") for name, worker in workers.items()}
    running = {name: w for name, w in workers.items() if "error" not in rows[name]}
    counts = {}
    for name, worker in running.items():
        once = min(worker.request("run 1")["wall_s"] for _ in range(2))
        counts[name] = max(1, int(seconds / max(once, 1e-6)))
    samples = {name: [] for name in running}
    for _ in range(rounds):
        for name, worker in running.items():
            time.sleep(settle)
            samples[name].append(
                worker.request(f"run {counts[name]}")["wall_s"] / counts[name] * 1e6
            )
    for name, values in samples.items():
        rows[name] = {"us": statistics.median(values), **difference(running, name)}
    return rows


def chosen(patterns):
    return [n for n in CASES if not patterns or any(n.startswith(p) for p in patterns)]


def line_of(name, rows, work, limits):
    """Return the row of the table, and the ratio to the better peer (None where unknown)."""
    ours = rows["slipway"]
    cells = [f"{rows[e]['us']:.3g}" if "us" in rows[e] else "-" for e in rows]
    if "us" not in ours:
        return f"| {name} | " + " | ".join(cells) + f" | {ours['error'][:70]} | | | |", None
    best = min((rows[e]["us"] for e in PEERS if "us" in rows.get(e, {})), default=None)
    ratio = ours["us"] / best if best else None
    seconds = ours["us"] / 1e6
    flops, size = work
    rate = f"{flops / seconds / 1e9:.0f} GFLOP/s" if flops else f"{size / seconds / 1e9:.1f} GB/s"
    share = f"{max(flops / limits[0], size / limits[1]) / seconds:.0%}"
    error = ours.get("error_to_onnxruntime")
    shown = "-" if ratio is None else f"{ratio:.2f}" + (" !" if ratio > GOAL else "")
    tail = [shown, rate, share, "-" if error is None else f"{error:.0e}"]
    return f"| {name} | " + " | ".join([*cells, *tail]) + " |", ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="beginnings of names, such as: conv/ softmax")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--target", default="llvm", help="of Slipway")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.008, help="of each round and engine")
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()
    engines = ["slipway", *arguments.peers]
    everything = {}
    with tempfile.TemporaryDirectory() as folder:
        names = chosen(arguments.only)
        files = {name: Path(folder) / f"{name.replace('/', '.')}.onnx" for name in names}
        work = {}
        for name, file in files.items():
            model = make_model(CASES[name])
            work[name] = work_of(model)
            onnx.save(model, file)
        for threads in arguments.threads:
            limits = limits_of(threads)
            print(
                f"\nthreads: {threads}; us a run, medians of {arguments.rounds} rounds; "
                f"{limits[0] / 1e9:.0f} GFLOP/s, {limits[1] / 1e9:.1f} GB/s\n"
            )
            print("| operator | " + " | ".join(engines) + " | ratio | rate | of limit | error |")
            print("|---|" + "---|" * (len(engines) + 4))
            workers = {}
            ratios = []
            try:
                for engine in engines:
                    workers[engine] = Worker(engine, "-", threads, arguments.target)
                for name, file in files.items():
                    settle = SETTLE_SECONDS if threads > 1 else 0
                    rows = measure(file, workers, arguments.rounds, arguments.seconds, settle)
                    everything[f"{name}/{threads}"] = rows
                    line, ratio = line_of(name, rows, work[name], limits)
                    ratios.append(ratio)
                    print(line, flush=True)
            finally:
                for worker in workers.values():
                    worker.close()
            known = [r for r in ratios if r is not None]
            behind = sum(r > GOAL for r in known)
            print(f"\n{behind} of {len(known)} above {GOAL}; ", end="")
            print(f"geometric mean {statistics.geometric_mean(known):.2f}" if known else "")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(everything, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
