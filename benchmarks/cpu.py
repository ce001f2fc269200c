"""Latency of whole models on this machine's CPU, untuned, beside the runtimes people use.

    python -m benchmarks cpu [--models mobilenet_v2 resnet18] [--threads 1 2] [--json FILE]
    python -m benchmarks cpu --peers --before CHECKOUT    # two versions of Slipway, interleaved

The models are those of ``../shared/models/make_models.py`` (or ``--folder`` of .onnx or .tflite
files; those have the peers litert and openvino).  Each peer is installed into a virtual environment
of its own under the cache folder.  All engines run the same inputs in processes of their own and
take turns, round after round; a figure is the median over the rounds of the mean time of a run, and
the ratio is of medians, to the best peer.
``--clock cpu`` gives processor time, which a machine that does other things changes least.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
MAKER = HERE.parent.parent / "shared" / "models" / "make_models.py"
# Idle threads of the engine before spin on a core that the next one needs: onnxruntime's for more
# than 30 ms, which costs the next one a fifth at two threads.
SETTLE_SECONDS = 0.3
# What is installed for each peer, in an environment of its own.
PEERS = {
    "onnxruntime": ["onnxruntime", "onnx"],
    "openvino": ["openvino", "onnx"],
    "litert": ["ai-edge-litert"],
    "apache-tvm": ["apache-tvm==0.27.*", "apache-tvm-ffi==0.1.14.post1", "onnx", "llvmlite"],
    "iree": ["iree-base-compiler[onnx]", "iree-base-runtime", "onnx"],
    "tinygrad": ["tinygrad", "onnx", "numpy"],
    "inductor": ["torch==2.13.0", "onnx2torch", "onnx", "setuptools"],
}


def peer_python(name):
    """Return the interpreter of a peer's environment, made and filled at the first use."""
    from slipway.toolchain.native import cache_dir

    folder = cache_dir() / "peers" / name
    python = folder / "bin" / "python"
    done = folder / ".installed"
    if not done.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        # A package on PYTHONPATH would count as installed, and is not there when the peer runs.
        alone = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        pip = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, *PEERS[name]], check=True, env=alone)
        done.touch()
    return str(python)


class Worker:
    """An engine in its process."""

    def __init__(self, engine, model, threads, target="llvm"):
        ours = engine.startswith("slipway")
        python = sys.executable if ours else peer_python(engine.removesuffix("-bfloat16"))
        environment = {**os.environ, "SLIPWAY_NUM_THREADS": str(threads)}
        if not ours:
            environment.pop("PYTHONPATH", None)
        engine, _, checkout = engine.partition("@")
        if checkout:
            from slipway.toolchain.native import cache_dir

            environment["PYTHONPATH"] = str(Path(checkout).resolve() / "src")
            environment["SLIPWAY_CACHE"] = str(cache_dir() / "before")
        self.process = subprocess.Popen(
            [python, str(HERE / "cpu_worker.py"), engine, str(model), str(threads), target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )
        self.ready = json.loads(self.process.stdout.readline() or '{"error": "it died"}')

    def request(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def measure(model, threads, engines, rounds, seconds, target="llvm"):
    """Return {engine: {"wall_ms", "cpu_ms", "prepare_s", "error"}} for one model.

    Slipway compiles it for `target`.
    """
    rows, workers = {}, {}
    for name in engines:
        try:
            workers[name] = Worker(name, model, threads, target)
        except (subprocess.CalledProcessError, OSError) as error:
            rows[name] = {"error": f"its environment could not be made: {error}"}
    try:
        running = {n: w for n, w in workers.items() if "error" not in w.ready}
        rows |= {n: {"error": w.ready["error"]} for n, w in workers.items() if n not in running}
        counts = {}
        for name, worker in running.items():
            once = worker.request("run 2")["wall_s"] / 2
            counts[name] = max(1, int(seconds / max(once, 1e-6)))
        samples = {name: [] for name in running}
        for _ in range(rounds):
            for name, worker in running.items():
                time.sleep(SETTLE_SECONDS if threads > 1 else 0)
                reply = worker.request(f"run {counts[name]}")
                samples[name].append([reply[k] / counts[name] * 1e3 for k in ("wall_s", "cpu_s")])
        for name, worker in running.items():
            wall, cpu = (statistics.median(column) for column in zip(*samples[name], strict=True))
            rows[name] = {"wall_ms": wall, "cpu_ms": cpu, "prepare_s": worker.ready["prepare_s"]}
        rows = {n: {**row, **difference(running, n)} for n, row in rows.items()}
    finally:
        for worker in workers.values():
            worker.close()
    return rows


def difference(running, name):
    """Return the largest difference of our outputs to a peer's, relative to the largest."""
    peer = next((p for p in ("onnxruntime", "litert") if p in running), None)
    if name != "slipway" or peer is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{n}.npz" for n in ("slipway", peer)]
        for engine, file in zip(("slipway", peer), files, strict=True):
            running[engine].request(f"output {file}")
        ours, theirs = (list(np.load(file).values()) for file in files)
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        a, b = (v.astype("float64") if v.dtype.kind in "bui" else v for v in (a, b))
        worst = max(worst, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)))
    return {f"error_to_{peer}": worst}


def models_of(arguments):
    folder = Path(arguments.folder) if arguments.folder else None
    if folder is None:
        from slipway.toolchain.native import cache_dir

        folder = cache_dir() / "models"
        folder.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(
            [sys.executable, str(MAKER), "--list"], check=True, capture_output=True, text=True
        ).stdout.split("\n")
        names = arguments.models or [line.split()[0] for line in listed if line.strip()]
        missing = [n for n in names if not (folder / f"{n}.onnx").is_file()]
        if missing:
            subprocess.run([sys.executable, str(MAKER), str(folder), *missing], check=True)
        return [folder / f"{n}.onnx" for n in names]
    found = sorted((*folder.glob("*.onnx"), *folder.glob("*.tflite")))
    return [p for p in found if not arguments.models or p.stem in arguments.models]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", help="names; all by default")
    parser.add_argument("--folder", help="folder of .onnx or .tflite files")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument(
        "--peers", nargs="*", default=[p for p in PEERS if p != "litert"], choices=list(PEERS)
    )
    parser.add_argument("--target", default="llvm", help="of Slipway")
    parser.add_argument("--before", metavar="CHECKOUT", help="race this checkout of Slipway too")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each round and engine")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()
    clock = f"{arguments.clock}_ms"
    before = f"slipway@{arguments.before}" if arguments.before else None
    engines = ["slipway", *([before] if before else []), *arguments.peers]
    everything = {}
    for threads in arguments.threads:
        said = f"{arguments.clock} ms a run, medians of {arguments.rounds} rounds"
        print(f"\nthreads: {threads}; {said}\n")
        last = "ratio to before | build s before |" if before else ""
        print(f"| model | {' | '.join(engines)} | ratio to best peer | error | build s | {last}")
        print("|---|" + "---|" * (len(engines) + 3 + 2 * bool(before)))
        refused, changes = [], []
        for model in models_of(arguments):
            rows = measure(
                model, threads, engines, arguments.rounds, arguments.seconds, arguments.target
            )
            everything[f"{model.stem}/{threads}"] = rows
            cells = [f"{rows[e][clock]:.3g}" if clock in rows[e] else "-" for e in engines]
            refused += [(e, model.stem, rows[e]["error"]) for e in engines if "error" in rows[e]]
            peers = [rows[e] for e in arguments.peers if clock in rows[e]]
            best = min((row[clock] for row in peers), default=0)
            ours = rows["slipway"]
            tail = ["-", ours.get("error", "")[:60], "-"]
            if clock in ours:
                ratio = f"{ours[clock] / best:.2f}" if best else "-"
                error = next((v for k, v in ours.items() if k.startswith("error_to_")), None)
                tail = [ratio, f"{error:.0e}" if error is not None else "-"]
                tail.append(f"{ours['prepare_s']:.1f}")
            if before and clock in ours and clock in rows[before]:
                changes.append(ours[clock] / rows[before][clock])
                tail += [f"{changes[-1]:.3f}", f"{rows[before]['prepare_s']:.1f}"]
            print(f"| {model.stem} | " + " | ".join([*cells, *tail]) + " |", flush=True)
        if changes:
            mean = statistics.geometric_mean(changes)
            print(f"\ngeometric mean of the ratios to before: {mean:.3f}")
        for engine, name, reason in refused:
            print(f"\n{engine} did not run {name}: {reason}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(everything, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
