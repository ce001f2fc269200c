"""Whole models as WebAssembly in node or in Chromium, one thread, beside onnxruntime-web.

    python -m benchmarks web [--chromium] [--models mobilenet_v2 ...] [--rounds 7] [--json FILE]

The models are those of ``../shared/models/make_models.py`` (or ``--folder`` of .onnx files).
onnxruntime-web is installed by npm under the cache folder.  Every engine runs the same numbers in a
process of its own, and they take turns, round after round.  A figure is the median over the rounds
of the processor time of a run, which other work on the machine changes little; the error is the
largest difference to onnxruntime-web's output relative to its largest element.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx

import slipway as tvm
from benchmarks.cpu import models_of
from slipway import relay
from slipway.toolchain.native import cache_dir

HERE = Path(__file__).parent
TARGETS = {"simd": "llvm -mtriple=wasm32", "relaxed": "llvm -mtriple=wasm32 -mattr=+relaxed-simd"}
FLAGS = {"relaxed": ["--experimental-wasm-relaxed-simd"]}
SECONDS = 0.4  # of one engine's turn


def onnxruntime_modules():
    """Return the folder node_modules with onnxruntime-web, installed at the first use."""
    folder = cache_dir() / "peers" / "onnxruntime-web"
    if not (folder / "node_modules" / "onnxruntime-web").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        subprocess.run(
            ["npm", "install", "--ignore-scripts", "onnxruntime-web"], cwd=folder, check=True
        )
    return folder / "node_modules"


class Engine:
    """An engine in its process."""

    def __init__(self, name, model, modules, flags=()):
        command = ["node", *flags, str(HERE / "web_worker.mjs"), name, str(model)]
        self.process = subprocess.Popen(
            [*command, tvm.libinfo.find_js_path()[0], str(modules)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.ready = self._answer()
        self.times = []
        self.count = 1

    def _answer(self):
        return json.loads(self.process.stdout.readline() or '{"error": "it died"}')

    def turn(self):
        """Run for about `SECONDS`."""
        self.process.stdin.write(f"run {self.count}\n")
        self.process.stdin.flush()
        self.times.append(self._answer()["ms"])
        self.count = max(1, round(1e3 * SECONDS / self.times[-1]))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def export(path, folder):
    """Compile a model for every target; returns the files by target."""
    function, params = relay.frontend.from_onnx(onnx.load(path))
    files = {}
    for name, target in TARGETS.items():
        files[name] = folder / f"{path.stem}_{name}.wasm"
        with tvm.transform.PassContext(opt_level=3):
            relay.build(function, target, params=params).export_library(str(files[name]))
    return files


def measure(path, rounds, start):
    """Return a row of the table; ``start(engine, file, flags)`` starts an engine."""
    with tempfile.TemporaryDirectory() as temporary:
        files = export(path, Path(temporary))
        engines = {
            name: start("slipway", file, FLAGS.get(name, ())) for name, file in files.items()
        }
        engines["onnxruntime-web"] = start("onnxruntime", path, ())
        row = {"model": path.stem, "bytes": files["simd"].stat().st_size}
        for name, engine in list(engines.items()):
            if "error" in engine.ready:
                row[name] = engine.ready["error"]
                engines.pop(name).close()
        for _ in range(rounds + 1):
            for engine in engines.values():
                engine.turn()
        for name, engine in engines.items():
            row[name] = statistics.median(engine.times[1:])
            engine.close()
    peer = engines.get("onnxruntime-web")
    if peer is not None:
        wanted = np.array(peer.ready["output"])
        for name in TARGETS:
            if name in engines:
                row[f"ratio_{name}"] = row[name] / row["onnxruntime-web"]
                apart = np.abs(np.array(engines[name].ready["output"]) - wanted).max()
                row[f"error_{name}"] = float(apart / np.abs(wanted).max())
    return row


def _shown(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", nargs="*", help="names; all by default")
    parser.add_argument("--folder", type=Path, help="a folder of .onnx files")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    parser.add_argument("--chromium", action="store_true", help="in pages, instead of node")
    options = parser.parse_args()
    modules = onnxruntime_modules()

    def start(engine, file, flags):
        if not options.chromium:
            return Engine(engine, file, modules, flags)
        from benchmarks._chromium import Page  # needs selenium and a browser

        return Page(engine, file, tvm.libinfo.find_js_path()[0], modules)

    rows = []
    print(
        "| model | simd128 ms | relaxed ms | onnxruntime-web ms | ratio | ratio, relaxed | error |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for path in models_of(options):
        row = measure(path, options.rounds, start)
        rows.append(row)
        columns = ["model", "simd", "relaxed", "onnxruntime-web", "ratio_simd", "ratio_relaxed"]
        cells = [_shown(row.get(name, "-")) for name in columns]
        print(
            "| " + " | ".join([*cells, f"{row.get('error_simd', float('nan')):.0e}"]) + " |",
            flush=True,
        )
    ratios = [row["ratio_simd"] for row in rows if "ratio_simd" in row]
    if ratios:
        print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0
