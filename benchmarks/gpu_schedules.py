"""Random schedules for GPUs: compiled, run, and held against NumPy, many of them.

    python -m benchmarks gpu_schedules --count 1000                  # watched for races
    python -m benchmarks gpu_schedules --engine opencl --rare        # on a driver
    python -m benchmarks gpu_schedules --first 500 --seconds 600     # some, for ten minutes
    python -m benchmarks gpu_schedules --options="-arch=sm_80 -thread_warp_size=4"  # of a target

The schedules are those of ``tests/backends/gpu/random_schedules.py`` (tiles, threads, virtual
threads, shared and local memory, reductions) or, with ``--rare``, of ``random_vocabulary.py``
(double buffers, rows apart, factored and tuple reductions, narrow types, three axes of threads).
The engine "watched" runs the LLVM IR of the kernels on the processor, a fibre for each thread, and
tells of two accesses to one location, one of them writing, without a barrier between; "opencl" and
"vulkan" run on the first device of that kind, "wgsl" through wgpu.  A seed that ends the process is
counted as a crash: each engine's seeds run in processes of their own, ``--slice`` at a time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests" / "backends" / "gpu"
ENGINES = ("watched", "opencl", "vulkan", "wgsl")
START_S, SEED_S = 120, 60  # which a process has, on a loaded machine
FAILED = "seed {seed} ({what}): {problem}"


def device_of(engine, options):
    """Return the target and the simulator, or None, of an engine, and its device."""
    import run_kernels
    from simulated import SimulatedDevice
    from webgpu_device import WebGpuDevice

    import slipway as tvm
    from slipway.target import Target

    if engine in ("opencl", "vulkan"):
        run_kernels.current = (Target(f"{engine} {options}", host="llvm"), None)
        return tvm.device(engine, 0)
    folder = Path(tempfile.mkdtemp())
    simulator = WebGpuDevice(folder) if engine == "wgsl" else SimulatedDevice("ll", folder)
    run_kernels.current = (Target(f"{simulator.kind} {options}", host="llvm"), simulator)
    simulator.enter()
    return tvm.device(simulator.kind, 0)


def run_seeds(engine, rare, options, seeds):
    """Run seeds in this process; print a line for each that is wrong, racing or refused."""
    import numpy as np
    import run_kernels
    from random_schedules import draw
    from random_vocabulary import draw_rare

    device = device_of(engine, options)
    for seed in seeds:
        case = (draw_rare if rare else draw)(seed)
        print(f"begin {seed}", flush=True)
        problem = ""
        try:
            function = run_kernels.built(case.schedule, case.args, name=f"random_{seed}")
            rng = np.random.default_rng(seed)
            *inputs, out = case.args
            shapes = [[int(n) for n in t.shape] for t in inputs]
            values = [rng.uniform(-2, 2, shape).astype("float32") for shape in shapes]
            shape = tuple(int(n) for n in out.shape)
            found = run_kernels.run(function, device, values, shape)
            wanted = case.reference(*(v.astype("float64") for v in values))
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        except Exception as error:
            problem = " ".join(str(error).split())[:300] or type(error).__name__
        if problem:
            print(FAILED.format(seed=seed, what=case.what, problem=problem), flush=True)
        print(f"done {seed}", flush=True)
    sys.stdout.flush()
    os._exit(0)  # without the ends of objects that still lie on a simulated device


def run_slice(engine, rare, options, seeds):
    """Run seeds in a process; return how many ran, and what is wrong with the others."""
    ran, problems, left = 0, [], list(seeds)
    while left:
        command = [sys.executable, "-m", "benchmarks.gpu_schedules", "--engine", engine, "--seeds",
                 ",".join(map(str, left)), f"--options={options}",
                 *(["--rare"] if rare else [])]  # fmt: skip
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
            try:
                limit_s = START_S + SEED_S * len(left)
                done = subprocess.run(
                    command, stdout=said, stderr=complained, timeout=limit_s, check=False
                )
                ended = f"the process ended with {done.returncode}"
            except subprocess.TimeoutExpired:
                ended = f"the process was still there after {limit_s} s"
            said.seek(0)
            complained.seek(0)
            lines, tail = said.read().splitlines(), " ".join(complained.read().split())[-200:]
        finished = [int(line.split()[1]) for line in lines if line.startswith("done ")]
        problems += [line for line in lines if line.startswith("seed ")]
        ran += len(finished)
        left = left[len(finished) :]
        if left:  # the process ended in the midst of the first of them
            if not any(line == f"begin {left[0]}" for line in lines):
                raise SystemExit(f"{engine} does not start: {tail}")
            problems.append(f"seed {left[0]}: {ended}: {tail}")
            ran += 1
            left = left[1:]
    return ran, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", choices=ENGINES, default="watched")
    parser.add_argument("--rare", action="store_true", help="the rarer words of schedules")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin none after so long"
    )
    parser.add_argument("--options", default="", help="of the target: -thread_warp_size=8, say")
    parser.add_argument("--slice", type=int, default=50, help="seeds of one process")
    parser.add_argument("--seeds", help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path[:0] = [str(TESTS), str(TESTS.parents[2])]
    if args.seeds:
        run_seeds(args.engine, args.rare, args.options, map(int, args.seeds.split(",")))
        return 0
    begun, ran, wrong = time.monotonic(), 0, 0
    end = args.first + args.count
    for first in range(args.first, end, args.slice):
        if time.monotonic() - begun > args.seconds:
            break
        count, problems = run_slice(
            args.engine, args.rare, args.options, range(first, min(first + args.slice, end))
        )
        ran, wrong = ran + count, wrong + len(problems)
        for line in problems:
            print(line, flush=True)
        print(f"{args.engine}: {ran} schedules, {wrong} wrong, racing or refused", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
