"""How long a fresh process takes to its first result: imports, loading a .tar, one call.

    python -m benchmarks first_run [--models NAME ...] [--folder FOLDER] [--repeat 5]

Beside ONNX Runtime, which imports itself, makes a session of the model's file and runs it.  Both
import NumPy before, run on one thread, and take turns.  Medians of the repetitions in
milliseconds of processor time, which other work on the machine changes least; "first" is what came
with the process before its imports.  The table ends with the ratio of the sums without it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from benchmarks.cpu import models_of
from benchmarks.cpu_worker import describe

MARKS = """
import json, sys, time
import numpy as np
marks = [time.process_time()]
inputs, path = json.loads(sys.argv[1])
data = {name: np.ones(shape, dtype) for name, shape, dtype in inputs}
"""
SLIPWAY = """
import slipway
load = slipway.load
marks.append(time.process_time())
model = load(path)
marks.append(time.process_time())
model(**data)
"""
ONNXRUNTIME = """
import onnxruntime
marks.append(time.process_time())
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
marks.append(time.process_time())
session.run(None, data)
"""
END = """
marks.append(time.process_time())
print(json.dumps(marks))
"""
PROGRAMS = {"Slipway": SLIPWAY, "ONNX Runtime": ONNXRUNTIME}


def seconds(program, argument):
    """Run a program in a fresh process; return the seconds of its import, loading and call."""
    environment = {**os.environ, "SLIPWAY_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", MARKS + program + END, json.dumps(argument)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{argument[-1]}: {done.stderr[-2000:]}")
    marks = json.loads(done.stdout.splitlines()[-1])
    return [after - before for before, after in pairwise(marks)]


def rows(path, folder, repeat):
    """Compile a model, and return {who: medians of its seconds}."""
    artifact = Path(folder) / f"{path.stem}.tar"
    command = [sys.executable, "-m", "slipway", "compile", str(path), "-o", str(artifact)]
    subprocess.run(command, check=True, capture_output=True)
    inputs = describe(str(path))
    runs = {who: [] for who in PROGRAMS}
    for _ in range(repeat + 1):  # the first one fills caches of files and of bytecode
        for who, program in PROGRAMS.items():
            file = artifact if who == "Slipway" else path
            runs[who].append(seconds(program, [inputs, str(file)]))
    return {
        who: [statistics.median(column) for column in zip(*taken[1:], strict=True)]
        for who, taken in runs.items()
    }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", help="names; all by default")
    parser.add_argument("--folder", help="of .onnx files; made if not given")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    print("| model | who | import | load | first call | together | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for path in models_of(options):
        with tempfile.TemporaryDirectory() as folder:
            found = rows(path, folder, options.repeat)
        theirs = sum(found["ONNX Runtime"])
        for who, taken in found.items():
            cells = [f"{part * 1e3:.0f}" for part in (*taken, sum(taken))]
            ratio = f"**{sum(taken) / theirs:.2f}**" if who == "Slipway" else ""
            print(f"| {path.stem} | {who} | {' | '.join(cells)} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
