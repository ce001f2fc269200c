"""Whole models on the drivers of this machine's GPUs, beside ONNX Runtime: one record, one table.

    python -m benchmarks gpu_models --record models.jsonl              # all, on OpenCL and Vulkan
    python -m benchmarks gpu_models --record models.jsonl --models resnet18 unet --engines vulkan

The models are those of ``../shared/models/make_models.py``, and its .tflite files of bytes.  Each
runs in a process of its own; what the record has is not run again, so that a stopped run goes on.
The error of a float model is the largest difference from ONNX Runtime, in parts of its largest
element; bytes must be those of the processor's kernels.  Times are processor time of one run and
its result, the median: drivers here run kernels on the processor, with as many threads as they
like, and ONNX Runtime has one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ENGINES = ("opencl", "vulkan")
MODELS = Path(__file__).parents[1].parent / "shared" / "models"
LIMIT_S = 1800.0


def names():
    """The float models of the maker, and the files of bytes."""
    said = subprocess.run(
        [sys.executable, str(MODELS / "make_models.py"), "--list"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = sorted(path.name for path in (MODELS / "tflite").glob("*.tflite"))
    return [*said.stdout.split(), *files]


def median_ms(run, runs):
    """Milliseconds of processor time of a run, after one that does not count."""
    run()
    times = []
    for _ in range(runs):
        before = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - before))
    return statistics.median(times)


def built(mod, params, target, given):
    """Compile a model for a kind of device; return a function that runs it on `given`."""
    import slipway as tvm
    from slipway import relay
    from slipway.contrib import graph_executor

    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target=target, params=params)
    device = tvm.device("cpu" if target == "llvm" else target, 0)
    module = graph_executor.GraphModule(library["default"](device))

    def run():
        module.run(**given)
        return [module.get_output(k).numpy() for k in range(module.get_num_outputs())]

    return run


def onnx_model(name, engine, runs):
    """What became of a model of floats."""
    sys.path[:0] = [str(MODELS)]
    import make_models
    import onnxruntime

    from slipway import relay

    model = make_models.make(name)
    given = make_models.example_inputs(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    wanted = session.run(None, given)
    run = built(*relay.frontend.from_onnx(model), engine, given)
    pairs = zip(run(), wanted, strict=True)
    error = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs)
    peer = median_ms(lambda: session.run(None, given), runs)
    return {"error": error, "ms": median_ms(run, runs), "onnxruntime_ms": peer}


def tflite_file(name, engine, runs):
    """What became of a file of bytes; None for one of floats."""
    from slipway import relay
    from slipway.frontends.tflite.importer import initial_state

    path = MODELS / "tflite" / name
    mod, params = relay.frontend.from_tflite(path)
    rng = np.random.default_rng(0)
    given = initial_state(path)
    for var in mod["main"].params:
        kind = var.type_annotation
        if var.name_hint in params or var.name_hint in given:
            continue
        if "int" not in kind.dtype:
            return None
        info = np.iinfo(kind.dtype)
        shape = [int(n) for n in kind.shape]
        given[var.name_hint] = rng.integers(info.min, info.max + 1, shape).astype(kind.dtype)
    wanted = built(mod, params, "llvm", given)()
    run = built(mod, params, engine, given)
    same = all(np.array_equal(a, b) for a, b in zip(run(), wanted, strict=True))
    return {"same": same, "ms": median_ms(run, runs)}


def judged(name, engine, runs):
    """What became of a model, in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.gpu_models", "--one", name, "--engines", engine]
    try:
        done = subprocess.run(
            [*words, "--runs", str(runs)], capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"problem": f"longer than {LIMIT_S:g} s"}
    found = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not found:
        return {"problem": (done.stderr.strip().splitlines() or ["it died"])[-1][:200]}
    return json.loads(found[-1])


def table(rows):
    """The record as a table, the engines beside each other."""
    engines = sorted({row["engine"] for row in rows})
    head = [
        "model",
        "onnxruntime ms",
        *(f"{e} {what}" for e in engines for what in ("error", "ms")),
    ]
    lines = [head, ["---"] * len(head)]
    for name in dict.fromkeys(row["model"] for row in rows):
        of = {row["engine"]: row for row in rows if row["model"] == name}
        peers = [row["onnxruntime_ms"] for row in of.values() if "onnxruntime_ms" in row]
        cells = [name, f"{min(peers):.1f}" if peers else ""]
        for engine in engines:
            row = of.get(engine, {})
            error = row.get("problem", "")
            if "error" in row:
                error = f"{row['error']:.1e}"
            elif "same" in row:
                error = "same bytes" if row["same"] else "OTHER BYTES"
            cells += [error, f"{row['ms']:.1f}" if "ms" in row else ""]
        lines.append(cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--models", nargs="*", help="some of them; all without")
    parser.add_argument("--record", type=Path, help="a line of JSON for each; goes on where it is")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        judge = tflite_file if args.one.endswith(".tflite") else onnx_model
        print(json.dumps(judge(args.one, args.engines[0], args.runs) or {"floats": True}))
        return 0
    rows = []
    if args.record is not None and args.record.is_file():
        rows = [json.loads(line) for line in args.record.read_text().splitlines()]
    known = {(row["model"], row["engine"]) for row in rows}
    for name in args.models or names():
        for engine in args.engines:
            if (name, engine) in known:
                continue
            found = judged(name, engine, args.runs)
            if found.get("floats"):
                break
            rows.append({"model": name, "engine": engine, **found})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            if args.record is not None:
                args.record.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(table(rows))
    wrong = [row for row in rows if row.get("error", 0) > 1e-4 or row.get("same") is False]
    return int(bool(wrong) or any("problem" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
