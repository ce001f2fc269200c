"""How long compiling takes, and where: one register-tiled convolution kernel, or whole models.

    python -m benchmarks compile_time [--profile]
    python -m benchmarks compile_time --models [NAME ...] [--folder FOLDER] [--repeat 5]

One kernel: processor time of this process (its threads together), in milliseconds: the least of
several repetitions.  Models: from reading the ONNX file to a module that has been run, each time
in a fresh process after its imports, by stage, medians of the repetitions in milliseconds of wall
time; first with an empty kernel cache, then with the one that this has filled.
"""

import argparse
import cProfile
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.cpu import models_of
from benchmarks.gemm import TARGET, conv2d
from slipway import te
from slipway.compiler.emit import build_module
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.transform.instruments import PassTimer
from slipway.transform.loop.pipeline import run_pipeline


def once(target, number):
    """Lower and compile one kernel; return the milliseconds of each step."""
    marks = [time.process_time()]
    s, args = conv2d()
    marks.append(time.process_time())
    func = te.lower(
        s, args, name=f"conv_{number}_{os.getpid()}"
    )  # another name: nothing comes from a cache
    marks.append(time.process_time())
    ready = run_pipeline(func, target)
    marks.append(time.process_time())
    build_module(ready, target).object_bytes()
    marks.append(time.process_time())
    return [(b - a) * 1e3 for a, b in pairwise(marks)]


def compile_model(path, cache):
    """Compile in a fresh process whose cache is the folder `cache`; return its report."""
    command = [sys.executable, "-m", "benchmarks.compile_time.worker", str(path)]
    environment = {**os.environ, "SLIPWAY_CACHE": str(cache)}
    environment.pop("SLIPWAY_KERNEL_CACHE", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{path.name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compile_models(paths, repeat):
    """Print a table of stages for each model, with an empty and with a filled kernel cache."""
    from slipway.toolchain.native import cache_dir, host_runtime

    host_runtime()
    heads = ()
    for path in paths:
        reports = {"cold": [], "warm": []}
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                if (cache_dir() / "runtime").is_dir():  # the runtime is no part of a model
                    shutil.copytree(cache_dir() / "runtime", Path(folder) / "runtime")
                for name in reports:
                    reports[name].append(compile_model(path, folder))
        if not heads:
            heads = tuple(reports["cold"][0])
            print("| model | cache | " + " | ".join(heads) + " |")
            print("| --- | --- |" + " ---: |" * len(heads))
        for name, runs in reports.items():
            row = [f"{statistics.median(run[head] for run in runs) * 1e3:.0f}" for head in heads]
            print(f"| {path.stem} | {name} | " + " | ".join(row) + " |", flush=True)


def main():
    """Print the table of steps, the table of passes, and a profile where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true", help="add the hottest functions")
    parser.add_argument("--models", nargs="*", help="compile models: these, or all")
    parser.add_argument("--folder", help="of .onnx files; made if not given")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    if options.models is not None:
        compile_models(models_of(options), options.repeat)
        return
    target = Target(TARGET)
    runs = [once(target, n) for n in range(8)]
    steps = [min(times) for times in zip(*runs, strict=True)]
    names = ("te program and schedule", "te.lower", "passes", "code generation")
    for name, spent in zip(names, steps, strict=True):
        print(f"{name:<26}{spent:>8.1f} ms")
    print(f"{'together':<26}{sum(steps):>8.1f} ms")
    timer = PassTimer()
    with PassContext(instruments=[timer]):
        for _ in range(5):
            run_pipeline(te.lower(*conv2d()), target)
    print("\n" + timer.render())
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(lambda: [run_pipeline(te.lower(*conv2d())) for _ in range(5)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(15)


if __name__ == "__main__":
    main()
