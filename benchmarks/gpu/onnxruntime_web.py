"""A case of `benchmarks.gpu` by onnxruntime-web's WebGPU provider, in headless Chromium.

    python -m benchmarks.gpu.onnxruntime_web [--only NAME] [--rounds N]

npm installs onnxruntime-web under the cache folder; ``pip install selenium onnxruntime`` and
``apt-get install chromium chromium-driver npm``.  A figure is the median over the rounds of the ms
of processor time of a run with its result, of all of Chromium's processes: SwiftShader's threads
are in one of them.  The error is of the first 4,096 elements.  Chromium is not Slipway's process,
so this is no contestant of the command's table.
"""

import argparse
import importlib.util
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

import slipway as tvm
from benchmarks.gpu.command import CASES
from benchmarks.gpu.iree import onnx_model


def missing():
    """Return the names of what this needs and the machine does not have."""
    modules = ("onnx", "onnxruntime", "selenium")
    found = [name for name in modules if importlib.util.find_spec(name) is None]
    programs = ("npm", "chromium", "chromedriver")
    return found + [name for name in programs if shutil.which(name) is None]


def numbers(shape):
    """Return the input that the page makes (`numbers` of benchmarks/web/engines.mjs)."""
    state, made = 12345, []
    for _ in range(int(np.prod(shape))):
        state = state * 48271 % 2147483647
        made.append(state / 2147483647 - 0.5)
    return np.array(made, "float32").reshape(shape)


def run_case(case, rounds):
    """Return the median ms of a run, and the error beside ONNX Runtime on the processor."""
    import onnxruntime

    from benchmarks.web.chromium import WebGPUPage
    from benchmarks.web.command import modules_of

    text = onnx_model(case).SerializeToString()
    session = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    (wanted,) = session.run(None, {given.name: numbers(case.arrays[0].shape)})
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "case.onnx")
        model.write_bytes(text)
        modules = modules_of("onnxruntime")
        page = WebGPUPage("webgpu", model, tvm.libinfo.find_js_path()[0], modules)
        try:
            if "error" in page.ready:
                raise SystemExit(f"onnxruntime-web: {page.ready['error']}")
            for _ in range(rounds + 1):
                page.measure()
        finally:
            page.close()
    output = np.array(page.ready["output"])
    error = np.abs(output - wanted.ravel()[: output.size]).max() / np.abs(wanted).max()
    return statistics.median(page.times[1:]), float(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="the cases whose name holds this word")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if lacks := missing():
        print(f"not installed: {', '.join(lacks)}")
        return 0
    for case in CASES:
        if args.only in case.name:
            took, error = run_case(case, args.rounds)
            print(f"  {case.name:26} {took:9.1f} ms, error {error:.1e}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
