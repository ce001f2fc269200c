"""Models and single operators on 1 to 16 threads of a machine that is not here, modelled.

    python -m benchmarks threads [--models resnet18] [--cases conv/ matmul/] [--threads 1 2 4 8 16]

The tasks of each launch run one after the other on this machine, each timed in processor time
(``task_times.c`` stands in the place of the pool).  What a run would take on so many cores is
what is in no task, the longest task of each launch, and for each launch what handing it over costs:
``--launch-us``.  Caches and memory that cores share are not modelled.  Cases are those of
``_sweep_cases``; a row is marked where a number of threads takes longer than a smaller one.
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

from benchmarks._operator_models import make_model
from benchmarks._sweep_cases import CASES
from benchmarks.cpu import models_of
from benchmarks.cpu_worker import describe, feeds_of

SOURCE = Path(__file__).parent / "task_times.c"
LAUNCHES, TASKS = 16384, 16  # as there
SLOWER = 1.03  # by which a larger number of threads may take longer: what single figures vary by


def launcher(folder):
    """Compile the launcher, and let every library that is loaded from now on call it."""
    from slipway.runtime.libraries import library

    file = folder / "task_times.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(file)]
    subprocess.run(command, check=True)
    found = ctypes.CDLL(str(file))
    loaded = []
    made = library.DsoLibrary.__init__

    def remember(self, *arguments, **named):
        made(self, *arguments, **named)
        loaded.append(self)

    library.DsoLibrary.__init__ = remember
    return found, loaded


def take_over(found, loaded):
    """Point the slots of the libraries at the launcher."""
    address = ctypes.cast(found.launch, ctypes.c_void_p).value
    for library in loaded:
        if slot := library.address("__slipway_parallel_launch"):
            ctypes.c_void_p.from_address(slot).value = address


def modelled_us(found, run, threads, runs, launch_us):
    """Return the microseconds of a run on so many threads: the least of `runs` of each part."""
    ctypes.c_int32.in_dll(found, "threads").value = threads
    count = ctypes.c_int32.in_dll(found, "launches")
    found.clock_ns.restype = ctypes.c_int64
    looks = min(found.clock_ns() for _ in range(20))
    table = ((ctypes.c_int64 * TASKS) * LAUNCHES).in_dll(found, "task_ns")
    times = np.ctypeslib.as_array(table)
    run()
    alone, tasks = np.inf, None
    for _ in range(runs):
        count.value = 0
        start = time.thread_time_ns()
        run()
        spent = time.thread_time_ns() - start
        each = times[: count.value, :threads].copy() if threads > 1 else np.zeros((0, 1))
        alone = min(alone, spent - each.sum() - looks * each.size)
        tasks = each if tasks is None else np.minimum(tasks, each)
    longest = tasks.max(axis=1).sum() if tasks.size else 0
    return (alone + longest - looks * len(tasks)) / 1e3 + len(tasks) * launch_us


def loaded_model(path, folder):
    """Compile a file, and load what was exported; return the function that runs it."""
    import slipway as tvm
    from slipway import relay
    from slipway.contrib import graph_executor

    mod, params = relay.frontend.from_onnx(str(path))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm", params=params)
    file = folder / "model.so"
    library.export_library(str(file))
    model = graph_executor.GraphModule(tvm.runtime.load_module(str(file))["default"](tvm.cpu(0)))
    model.set_input(**feeds_of(describe(path)))
    return model.run


def chosen(arguments, folder):
    """Yield (name, file) of the models and the cases."""
    if arguments.models or not arguments.cases:
        for path in models_of(arguments):
            yield path.stem, path
    names = [n for n in CASES if any(n.startswith(p) for p in arguments.cases or [])]
    for name in names[:: arguments.every]:
        path = folder / "case.onnx"
        onnx.save(make_model(CASES[name]), path)
        yield name, path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", help="names; all by default, where no --cases")
    parser.add_argument("--folder", help="folder of .onnx files")
    parser.add_argument("--cases", nargs="*", help="beginnings of names of the sweep's cases")
    parser.add_argument("--every", type=int, default=1, help="take one of so many cases")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2, 3, 4, 6, 8, 12, 16])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--launch-us", type=float, default=3.0)
    arguments = parser.parse_args()
    print(f"| model, us | {' | '.join(map(str, arguments.threads))} | |")
    print("| --- |" + " ---: |" * len(arguments.threads) + " --- |")
    slower = count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found, loaded = launcher(folder)
        for name, path in chosen(arguments, folder):
            loaded.clear()
            run = loaded_model(path, folder)
            take_over(found, loaded)
            row = [
                modelled_us(found, run, threads, arguments.runs, arguments.launch_us)
                for threads in arguments.threads
            ]
            worse = [
                t for i, t in enumerate(arguments.threads) if row[i] > SLOWER * min(row[: i + 1])
            ]
            count, slower = count + 1, slower + bool(worse)
            said = f"slower with {', '.join(map(str, worse))}" if worse else ""
            print(f"| {name} | {' | '.join(f'{us:.3g}' for us in row)} | {said} |", flush=True)
    print(f"\n{slower} of {count} are slower with more threads somewhere")
    return 0


if __name__ == "__main__":
    sys.exit(main())
