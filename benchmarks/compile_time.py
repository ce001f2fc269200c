"""How long it takes to lower and compile one register-tiled convolution kernel, and where.

Run ``python -m benchmarks.compile_time [--profile]`` from the repository's root.  Figures are
processor time of this process (its threads together), in milliseconds: the least of several
repetitions.
"""

import argparse
import cProfile
import os
import pstats
import time
from itertools import pairwise

from benchmarks.gemm import TARGET, conv2d
from slipway import te
from slipway.codegen.build import build_module
from slipway.passes.context import PassContext
from slipway.passes.instruments import PassTimer
from slipway.passes.pipeline import run_pipeline
from slipway.target import Target


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


def main():
    """Print the table of steps, the table of passes, and a profile where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true", help="add the hottest functions")
    options = parser.parse_args()
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
