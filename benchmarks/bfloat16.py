"""Whole models in bfloat16, beside themselves in float32 and beside OpenVINO.

    python -m benchmarks bfloat16 [--models resnet18 bert] [--threads 1]

The models of `benchmarks.cpu`, converted by ToMixedPrecision("bfloat16"); OpenVINO runs with the
hint bf16.  All four take turns in processes of their own.  The error is the largest difference of
an engine's bfloat16 outputs to its float32 ones, relative to the largest of those.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.cpu import Worker, measure, models_of

LOW = "-bfloat16"
ENGINES = ("slipway", "slipway" + LOW, "openvino", "openvino" + LOW)


def error(model, engine):
    """Return the error of `engine` in bfloat16."""
    outputs = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (engine, engine + LOW):
            worker = Worker(name, model, 1)
            worker.request(f"output {folder}/{name}.npz")
            worker.close()
            outputs.append(list(np.load(Path(folder) / f"{name}.npz").values()))
    pairs = zip(*outputs, strict=True)
    return max(float(np.abs(low - wide).max() / np.abs(wide).max()) for wide, low in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", help="names; all by default")
    parser.add_argument("--folder", help="folder of .onnx files")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    print("| model | float32 | bfloat16 | faster | OpenVINO bf16 | ratio | error | theirs |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for model in models_of(arguments):
        rows = measure(model, arguments.threads, ENGINES, arguments.rounds, 0.1)
        wide, low, _, theirs = (rows[name].get("wall_ms", float("nan")) for name in ENGINES)
        ours, other = error(model, "slipway"), error(model, "openvino")
        print(f"| {model.stem} | {wide:.3g} | {low:.3g} | {wide / low:.2f} | {theirs:.3g} "
              f"| {low / theirs:.2f} | {ours:.1e} | {other:.1e} |", flush=True)  # fmt: skip
