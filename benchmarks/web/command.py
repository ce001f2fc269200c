"""Whole models as WebAssembly in node or in Chromium, beside onnxruntime-web and LiteRT.js.

    python -m benchmarks web [--chromium] [--threads N] [--models mobilenet_v2 ...] [--json FILE]

The models are those of ``../shared/models/make_models.py`` and ``../shared/models/tflite``, or of
``--folder``; onnxruntime-web runs the .onnx files, LiteRT.js the .tflite files.  npm installs both
under the cache folder.  Every engine runs the same numbers in a process of its own, of the node in
PATH, and they take turns, round after round.  A figure is the median over the rounds of the
milliseconds of a run: for one thread of the processor, for several of the clock.  ``--best`` takes
the smallest of many short turns instead, for a machine that is busy: other work slows its caches
and its clock, but not in all turns; in pages by the clock, because their processor time comes in
steps of 10 ms.  The error is
the largest difference to the peer's output relative to its largest element.

With ``--chromium`` three more columns: what a page fetches until it can run (compressed by gzip),
and the milliseconds from the navigation to the first inference with empty caches, from a server on
the same machine (median of ``--starts``).  Pages begin with V8's first compiler, node does not.
"""

import argparse
import functools
import itertools
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
TFLITE = HERE.parents[2] / "shared" / "models" / "tflite"
ATTRIBUTES = {"simd128": "", "relaxed": "+relaxed-simd"}
RELAXED = "--experimental-wasm-relaxed-simd"  # of node 20; newer ones have it, and refuse the flag
# Without V8's first compiler, whose code runs for seconds while its second waits for a processor.
STEADY = "--no-liftoff"
FLAGS = {"simd128": (STEADY,), "relaxed": (STEADY, RELAXED), "peer": (STEADY, RELAXED)}
PACKAGES = {"onnxruntime": "onnxruntime-web", "litert": "@litertjs/core"}
SECONDS = 0.4  # of one engine's turn
SHORT_SECONDS = 0.05
SHORT_SHARES = 8  # in place of each
CLOCK_SECONDS = 0.01  # of a turn that nothing else should interrupt


def peer_of(path):
    """Return the name of the engine that runs such a file in a page."""
    return "litert" if path.suffix == ".tflite" else "onnxruntime"


def modules_of(peer):
    """Return the folder node_modules with a peer, installed at the first use."""
    package = PACKAGES[peer]
    folder = cache_dir() / "peers" / package.split("/")[-1]
    if not (folder / "node_modules" / package).is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        subprocess.run(["npm", "install", "--ignore-scripts", package], cwd=folder, check=True)
    return folder / "node_modules"


@functools.cache
def knows(flag):
    """Return whether this node takes a flag."""
    return subprocess.run(["node", flag, "--eval", "0"], capture_output=True).returncode == 0


class Engine:
    """An engine in its process."""

    wire_bytes = None  # a page's

    def __init__(self, name, model, modules, flags=(), threads=1):
        command = [
            "node",
            *filter(knows, flags),
            str(HERE / "worker.mjs"),
            name,
            str(model),
            str(threads),
        ]
        self.process = subprocess.Popen(
            [*command, tvm.libinfo.find_js_path()[0], str(modules)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.ready = self._answer()
        self.times = []
        self.walls = []
        self.count = 1

    def _answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):  # the peers write lines of their own
                return json.loads(line)
        return {"error": "it died"}

    def measure(self, seconds=SECONDS):
        """Run for about so long."""
        self.process.stdin.write(f"run {self.count}\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.times.append(answer["ms"])
        self.walls.append(answer["wall"])
        self.count = max(1, round(1e3 * seconds / max(answer["wall"], 1e-3)))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def export(path, folder, threads):
    """Compile a model for every set of instructions; returns the files by its name."""
    if path.suffix == ".tflite":
        function, params = relay.frontend.from_tflite(path.read_bytes())
    else:
        function, params = relay.frontend.from_onnx(onnx.load(path))
    files = {}
    for name, attribute in ATTRIBUTES.items():
        features = [*([attribute] if attribute else []), *(["+atomics"] if threads > 1 else [])]
        target = f"llvm -mtriple=wasm32{' -mattr=' if features else ''}{','.join(features)}"
        files[name] = folder / f"{path.stem}_{name}.wasm"
        with tvm.transform.PassContext(opt_level=3):
            relay.build(function, target, params=params).export_library(str(files[name]))
    return files


def measure(path, options, start):
    """Return a row of the table; ``start(engine, file, flags)`` starts an engine."""
    with tempfile.TemporaryDirectory() as temporary:
        files = export(path, Path(temporary), options.threads)
        begun = {name: ("slipway", file) for name, file in files.items()}
        begun["peer"] = (peer_of(path), path)
        engines = {name: start(*about, FLAGS[name]) for name, about in begun.items()}
        row = {"model": path.stem, "peer_name": peer_of(path)}
        for name, engine in list(engines.items()):
            if "error" in engine.ready:
                row[name] = engine.ready["error"]
                engines.pop(name).close()
        by_clock = options.threads > 1 or (options.best and options.chromium)
        short = CLOCK_SECONDS if by_clock else SHORT_SECONDS
        shares, *length = (SHORT_SHARES, short) if options.best else (1,)
        there_and_back = itertools.cycle([list(engines.values()), list(engines.values())[::-1]])
        for _ in range(options.rounds * shares + 1):
            # a pool that spins after its run slows the next engine: that is not always the same
            for engine in next(there_and_back):
                engine.measure(*length)
        first = {name: [engine.ready.get("first")] for name, engine in engines.items()}
        for name, engine in engines.items():
            times = engine.walls if by_clock else engine.times
            row[name] = (min if options.best else statistics.median)(times[1:])
            engine.close()
        for _ in range(options.starts - 1 if options.chromium else 0):
            for name in engines:
                again = start(*begun[name], FLAGS[name])
                first[name].append(again.ready["first"])
                again.close()
        for name, engine in engines.items():
            if options.chromium:
                row[f"first_{name}"] = statistics.median(first[name])
                row[f"bytes_{name}"] = engine.wire_bytes
    _compare(row, engines)
    return row


def _compare(row, engines):
    """Enter ratios and errors beside the peer, where it runs the model."""
    if "peer" not in engines:
        return
    wanted = np.array(engines["peer"].ready["output"])
    for name in set(ATTRIBUTES) & set(engines):
        row[f"ratio_{name}"] = row[name] / row["peer"]
        apart = np.abs(np.array(engines[name].ready["output"]) - wanted).max()
        row[f"error_{name}"] = float(apart / max(np.abs(wanted).max(), 1e-30))


def _cells(row, is_page):
    def shown(key, digits=2):
        value = row.get(key)
        return f"{value:.{digits}f}" if isinstance(value, float) else str(value or "-")

    cells = [
        row["model"],
        shown("simd128"),
        shown("relaxed"),
        shown("peer"),
        shown("ratio_simd128"),
    ]
    cells += [shown("ratio_relaxed"), f"{row.get('error_simd128', float('nan')):.0e}"]
    if is_page:
        for key, digits, scale in (("bytes", 2, 1e6), ("first", 0, 1)):
            pair = [row.get(f"{key}_{name}") for name in ("simd128", "peer")]
            cells.append(" / ".join("-" if v is None else f"{v / scale:.{digits}f}" for v in pair))
    return cells


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", nargs="*", help="names; all by default")
    parser.add_argument("--folder", type=Path, help="a folder of .onnx and .tflite files")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--starts", type=int, default=3, help="of pages, for the first inference")
    parser.add_argument("--best", action="store_true", help="the best of many short turns")
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    parser.add_argument(
        "--plain-peer", action="store_true", help="the peers run in a node without relaxed SIMD"
    )
    parser.add_argument("--chromium", action="store_true", help="in pages, instead of node")
    return parser.parse_args()


def _paths(options):
    """Return the models that were asked for."""
    tflite = sorted((options.folder or TFLITE).glob("*.tflite"))
    if options.models is not None:
        tflite = [path for path in tflite if path.stem in options.models]
        known = {path.stem for path in tflite}
        options.models = [name for name in options.models if name not in known]
    is_asked = options.models is None or options.models or options.folder
    return [*(models_of(options) if is_asked else []), *tflite]


def main():
    options = _options()

    def start(engine, file, flags):
        modules = modules_of(engine) if engine in PACKAGES else "-"
        if options.plain_peer and engine in PACKAGES:
            flags = tuple(flag for flag in flags if flag != RELAXED)
        if not options.chromium:
            return Engine(engine, file, modules, flags, options.threads)
        from benchmarks.web.chromium import Page  # needs selenium and a browser

        return Page(engine, file, tvm.libinfo.find_js_path()[0], modules, options.threads)

    rows = []
    heads = ["model", "simd128 ms", "relaxed ms", "peer ms", "ratio", "ratio, relaxed", "error"]
    heads += ["MB fetched, ours / peer", "ms to first, ours / peer"] if options.chromium else []
    print("| " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * (len(heads) - 1))
    for path in _paths(options):
        row = measure(path, options, start)
        rows.append(row)
        print("| " + " | ".join(_cells(row, options.chromium)) + " |", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    for peer in PACKAGES:
        ours = [row for row in rows if row["peer_name"] == peer and "ratio_simd128" in row]
        for name in ATTRIBUTES if ours else ():
            mean = np.exp(np.mean([np.log(row[f"ratio_{name}"]) for row in ours]))
            print(f"{PACKAGES[peer]}, {name}: geometric mean {mean:.2f} of {len(ours)} models")
    return 0
