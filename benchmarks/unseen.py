"""Networks of torchvision, timm and transformers that nothing in this tree mentions.

    python -m benchmarks unseen --python VENV/bin/python         # export, compile, compare
    python -m benchmarks unseen --networks swin_t gpt2 --timed   # and time, one thread
    python -m benchmarks unseen --timed --threads 1 2
    python -m benchmarks unseen --target opencl                  # compiled for a GPU's driver

VENV has torch, torchvision, timm, transformers, onnx and onnxscript; what it lacks is skipped, and
the reason printed.  Each network gets random weights and is exported twice, with `torch.export` and
as ONNX.  Both files are compiled, each in a process of its own, and their result is held against
what torch computes: the largest difference, relative to the largest element.  ONNX Runtime's
difference stands beside it.  `--timed` adds the latency beside ONNX Runtime and OpenVINO, with
one thread in processor time, which a busy machine changes least, with more in wall time.
"""

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import cpu
from benchmarks._unseen.eighth import NETWORKS as EIGHTH
from benchmarks._unseen.fifth import NETWORKS as FIFTH
from benchmarks._unseen.fourth import NETWORKS as FOURTH
from benchmarks._unseen.networks import NETWORKS as FIRST
from benchmarks._unseen.ninth import NETWORKS as NINTH
from benchmarks._unseen.seventh import NETWORKS as SEVENTH
from benchmarks._unseen.sixth import NETWORKS as SIXTH
from benchmarks._unseen.tenth import NETWORKS as TENTH
from benchmarks._unseen.third import NETWORKS as THIRD
from benchmarks.fuzz_graphs import campaign

NETWORKS = FIRST | THIRD | FOURTH | FIFTH | SIXTH | SEVENTH | EIGHTH | NINTH | TENTH
HERE = Path(__file__).parent
EXPORT_LIMIT_S = 600


def exported(name, folder, python, torchscript=False):
    """Write a network's files unless they are there; return {file: why it is missing}."""
    if (folder / f"{name}.npz").is_file() and (folder / f"{name}.json").is_file():
        return json.loads((folder / f"{name}.json").read_text())
    command = [python, str(HERE / "unseen_worker.py"), name, str(folder)]
    command += ["torchscript"] * torchscript
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=EXPORT_LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"pt2": "the export took too long", "onnx": "the export took too long"}
    said = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
    if not said:
        reason = (done.stderr.strip().splitlines() or ["it died"])[-1][:200]
        return {"pt2": reason, "onnx": reason}
    missing = json.loads(said[-1].removeprefix("SAID "))
    (folder / f"{name}.json").write_text(json.dumps(missing))
    return missing


def difference(got, want):
    """The largest difference, relative to the largest element."""
    if got.shape != want.shape:
        return f"shape {got.shape}, want {want.shape}"
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))


def ours(path, given, target="llvm"):
    """Import, compile and run a file here; return the first output and the seconds of the build."""
    from slipway import relay, transform
    from slipway.runtime import device
    from slipway.runtime.graph import graph_executor

    start = time.perf_counter()
    read = relay.frontend.from_onnx if path.suffix == ".onnx" else relay.frontend.from_pytorch
    mod, params = read(str(path))
    with transform.PassContext(opt_level=3):
        library = relay.build(mod, target=target, params=params)
    where = device("cpu" if target == "llvm" else target, 0)
    module = graph_executor.GraphModule(library["default"](where))
    seconds = time.perf_counter() - start
    for number, array in enumerate(given):
        module.set_input(number, array)
    module.run()
    return module.get_output(0).numpy(), seconds


def theirs(path, given):
    """The same by ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, given, strict=True)))[0], 0.0


def judged(path, run):
    """Return {"error", "seconds"} or {"refused": why}, from a process of its own."""

    def judge(_):
        arrays = np.load(path.with_suffix(".npz"))
        given = [arrays[f"in{i}"] for i in range(len(arrays.files) - 1)]
        if not arrays["out"].any():
            return json.dumps({"refused": "torch's own result is all zeros: nothing to compare"})
        try:
            got, seconds = run(path, given)
        except Exception as error:
            return json.dumps({"refused": f"{type(error).__name__}: {error}"[:600]})
        return json.dumps({"error": difference(got, arrays["out"]), "seconds": seconds})

    (found,) = campaign.isolated(judge, [0], limit_s=300)
    try:
        return json.loads(found.problem)
    except ValueError:
        return {"refused": found.problem}


def cell(row):
    """A row's error as text."""
    if "refused" in row:
        return "refused"
    return row["error"] if isinstance(row["error"], str) else f"{row['error']:.0e}"


def main():
    """Export, compile, compare, time."""
    from slipway.toolchain.native import cache_dir

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--python", default=sys.executable, help="one that has torch and the rest")
    parser.add_argument(
        "--folder", type=Path, help="of the exported files; in the cache by default"
    )
    parser.add_argument(
        "--torchscript", action="store_true", help="exported by TorchScript, judged in float64"
    )
    parser.add_argument("--target", choices=["llvm", "opencl", "vulkan"], default="llvm")
    parser.add_argument("--timed", action="store_true", help="time beside ONNX Runtime, OpenVINO")
    parser.add_argument("--threads", type=int, nargs="*", default=[1], help="for --timed")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    folder = options.folder or cache_dir() / "unseen"
    folder.mkdir(parents=True, exist_ok=True)
    columns = ["network", "torch.export", "ONNX", "onnxruntime", "build s"]
    if options.timed:
        clocks = [f"ms, threads: {threads}" for threads in options.threads]
        columns += [
            column
            for clock in clocks
            for column in (f"Slipway {clock}", "onnxruntime", "OpenVINO", "to best")
        ]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    notes, everything = [], {}
    for name in options.networks:
        missing = exported(name, folder, options.python, options.torchscript)
        notes += [f"{name}: no {kind} file: {why}" for kind, why in missing.items()]
        rows = {}
        here = partial(ours, target=options.target)
        for kind, run in (("pt2", here), ("onnx", here), ("peer", theirs)):
            path = folder / f"{name}.{'pt2' if kind == 'pt2' else 'onnx'}"
            rows[kind] = judged(path, run) if path.is_file() else None
            if rows[kind] and "refused" in rows[kind]:
                notes.append(f"{name}: {kind}: {rows[kind]['refused']}")
        cells = [cell(row) if row else "-" for row in rows.values()]
        seconds = (rows["onnx"] or rows["pt2"] or {}).get("seconds")
        cells.append(f"{seconds:.1f}" if seconds else "-")
        if options.timed:
            for threads in options.threads:
                cells += timed(folder / f"{name}.onnx", threads, options.rounds, rows)
        everything[name] = rows
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("\n" + "\n".join(notes))
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1))
    return 0


def timed(path, threads, rounds, rows):
    """Return the cells of the latencies, engines taking turns."""
    if not path.is_file():
        return ["-"] * 4
    engines = ["slipway", "onnxruntime", "openvino"]
    found = rows[f"timed, threads: {threads}"] = cpu.measure(path, threads, engines, rounds, 0.15)
    clock = "cpu_ms" if threads == 1 else "wall_ms"
    times = [found[e].get(clock) for e in engines]
    best = min((t for t in times[1:] if t), default=None)
    ratio = f"{times[0] / best:.2f}" if best and times[0] else "-"
    return [*(f"{t:.3g}" if t else "-" for t in times), ratio]


if __name__ == "__main__":
    sys.exit(main())
