"""What is shipped, on a GPU of NVIDIA's that is at hand for minutes: right or wrong, and how long.

    python -m benchmarks.gpu.nvidia --prepare FOLDER [--arch sm_90a] [--model resnet50]   # anywhere
    python -m benchmarks.gpu.nvidia FOLDER [--seconds 420] [--record FILE]                # there

The first compiles the cases of ``gpu_static`` and a model of ``make_models.py``, and keeps a sample
of what the processor makes of the same random inputs.  The second needs no compiler: each case has
a process of its own, since a kernel that faults takes the process's device with it, and a line of
JSON in the record as soon as it is known.  Times are the device's, of a run without copies; where
torch has the GPU, products and convolutions are timed beside cuBLAS and cuDNN, and the model beside
``torch.compile`` (with torchvision).  Exits with 1 where a case is wrong, failed or was not begun.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import slipway as tvm
from benchmarks.gpu_static import CASES
from slipway import relay
from slipway.contrib import graph_executor
from slipway.target import Target
from slipway.toolchain import native

ROOT = Path(__file__).parents[2]
MODELS = ROOT.parent / "shared" / "models"
SAMPLE = 65536  # elements of a result that are kept
CASE_S = 150.0
# What counts most comes first.
FIRST = ("dense 4096^3 float16", "dense 1024x1024x1024", "Winograd 64x56x56 3x3")


def case_names(only=""):
    rest = [name for name in CASES if name not in FIRST]
    return [name for name in (*FIRST, *rest) if only in name]


def inputs(body):
    """Return the arrays of a case by name: the same anywhere."""
    made = {}
    for number, var in enumerate(relay.analysis.free_vars(body)):
        kind, random = var.type_annotation, np.random.default_rng(number)
        shape = [int(n) for n in kind.shape]
        if "int" in kind.dtype:
            made[var.name_hint] = random.integers(-100, 101, shape).astype(kind.dtype)
        else:
            made[var.name_hint] = random.standard_normal(shape, "float32").astype(kind.dtype)
    return made


def compiled(body, target):
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    return relay.build(module, target=target)


def ran(library, device, given):
    """Return a module that has run, and its result."""
    module = graph_executor.GraphModule(library["default"](device))
    module.run(**given)
    return module, module.get_output(0).numpy()


def expected_of(name, body, given):
    """Return the processor's result; of products NumPy's, which are exact for bytes."""
    if name.startswith("dense"):
        wide = "float64" if given["x"].dtype == np.int8 else "float32"
        return given["x"].astype(wide) @ given["w"].astype(wide).T
    return ran(compiled(body, Target("llvm -mcpu=native")), tvm.cpu(0), given)[1]


def sampled(result):
    flat = np.asarray(result).reshape(-1)
    return flat[:: max(1, flat.size // SAMPLE)].astype("float64")


def model_of(name):
    """Return a model of the maker: its file, and its inputs."""
    sys.path[:0] = [str(MODELS)]
    import make_models

    model = make_models.make(name)
    return model, make_models.example_inputs(model)


def prepare(folder, arch, model=None, only=""):
    """Compile the cases whose name holds `only`, and a model, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    target = Target(f"cuda -arch={arch}", host="llvm")
    index = []

    def keep(name, kind, library, expected, given):
        number = len(index)
        library.export_library(str(folder / f"case{number}.tar"))
        np.save(folder / f"case{number}.npy", sampled(expected))
        np.savez(folder / f"case{number}.npz", **given)
        index.append({"case": name, "dtype": kind})
        print(f"prepared {name}", flush=True)

    for name in case_names(only):
        body = CASES[name]()
        given = inputs(body)
        kind = str(next(iter(given.values())).dtype)
        keep(name, kind, compiled(body, target), expected_of(name, body, given), {})
    if model is not None:
        file, given = model_of(model)
        mod, params = relay.frontend.from_onnx(file)
        here = relay.build(mod, target="llvm -mcpu=native", params=params)
        made = relay.build(mod, target=target, params=params)
        keep(model, "model", made, ran(here, tvm.cpu(0), given)[1], given)
    kept = native.host_runtime()  # for a machine without a compiler
    name = f"{kept.parent.name}/{kept.name}"
    (folder / "cache" / "runtime" / kept.parent.name).mkdir(parents=True, exist_ok=True)
    shutil.copy(kept, folder / "cache" / "runtime" / name)
    (folder / "index.json").write_text(json.dumps({"arch": arch, "cases": index}, indent=1))


TOLERANCES = {"float32": 1e-4, "float16": 2e-3, "int8": 0.0, "model": 1e-4}


def peer_ms(entry, given):
    """Return torch's name and time of the same; None where it has no GPU or no such call."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cudnn.allow_tf32 = False  # what is compared has all bits of a float
    there = {key: torch.from_numpy(value).cuda() for key, value in given.items()}
    name = entry["case"]
    if entry["dtype"] == "model":
        try:
            import torchvision
        except ImportError:
            return None
        network = torch.compile(getattr(torchvision.models, name)().eval().cuda())
        (image,) = there.values()
        label, call = "torch.compile", lambda: network(image)
    elif name.startswith("dense"):
        x, w = there["x"], there["w"].T
        label = "cuBLAS"
        call = (lambda: torch._int_mm(x, w)) if entry["dtype"] == "int8" else (lambda: x @ w)
    elif name.startswith("conv"):
        size = there["w"].shape[-1]
        label, stride = "cuDNN", 2 if name.endswith("s2") else 1
        call = lambda: torch.relu(torch.nn.functional.conv2d(  # noqa: E731
            there["x"], there["w"], padding=size // 2, stride=stride))  # fmt: skip
    else:
        return None
    with torch.inference_mode():
        for _ in range(3):
            call()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(20):
            call()
        end.record()
        end.synchronize()
    return {"peer": label, "peer_ms": begin.elapsed_time(end) / 20}


def judged(folder, number, rounds):
    """Return what a case does on the GPU of this machine."""
    entry = json.loads((folder / "index.json").read_text())["cases"][number]
    library = tvm.runtime.load_module(str(folder / f"case{number}.tar"))
    given = dict(np.load(folder / f"case{number}.npz"))
    if entry["dtype"] != "model":
        given = inputs(CASES[entry["case"]]())
    device = tvm.cuda(0)
    module, result = ran(library, device, given)
    expected = np.load(folder / f"case{number}.npy")
    worst = float(np.abs(sampled(result) - expected).max() / np.abs(expected).max())
    timer = module.benchmark(device, number=max(1, rounds), repeat=3)
    found = {"right": worst <= TOLERANCES[entry["dtype"]], "error": worst}
    found["ms"] = round(1e3 * float(np.min(timer.results)), 4)
    try:
        found.update(peer_ms(entry, given) or {})
    except Exception as error:  # a peer's trouble is not ours
        found["peer_problem"] = f"{type(error).__name__}: {error}"[:200]
    return found


def begun(folder, number, rounds, limit_s):
    """Let a process of its own judge a case."""
    words = [sys.executable, "-m", "benchmarks.gpu.nvidia", str(folder.resolve())]
    words += ["--one", str(number), "--rounds", str(rounds)]
    try:
        done = subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"not ended after {limit_s:.0f} s"}
    found = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not found:
        return {"problem": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(found[-1])


def about_device():
    device = tvm.cuda(0)
    if not device.exist:
        return {"problem": "no device: there is no cuda(0) here"}
    return {
        "device": device.device_name, "compute": device.compute_version,
        "driver": device.driver_version, "processors": device.multi_processor_count,
    }  # fmt: skip


def measure(folder, limit_s, rounds, record):
    """Judge all cases while there is time; return 1 where one is not right."""
    index = json.loads((folder / "index.json").read_text())
    end = time.monotonic() + limit_s
    rows = [about_device()]

    def note(row):
        print(json.dumps(row), flush=True)
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    note(rows[0])
    if "problem" in rows[0]:
        return 1
    for number, entry in enumerate(index["cases"]):
        left = end - time.monotonic()
        row = {"case": entry["case"], "arch": index["arch"]}
        if left <= 0:
            row["problem"] = "not begun: no time was left"
        else:
            row.update(begun(folder, number, rounds, min(left, CASE_S)))
        note(row)
        rows.append(row)
    return int(not all(row.get("right") for row in rows[1:]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", help="what --prepare made")
    parser.add_argument("--prepare", type=Path, metavar="FOLDER")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--model", default="resnet50", help="of make_models.py; '' for none")
    parser.add_argument("--only", default="", help="the cases whose name holds this word")
    parser.add_argument("--seconds", type=float, default=420.0, help="begin nothing after")
    parser.add_argument("--record", type=Path, default=Path("nvidia.jsonl"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.prepare is not None:
        prepare(args.prepare, args.arch, args.model or None, args.only)
        return 0
    if args.folder is None or not (args.folder / "index.json").is_file():
        parser.error("name a folder that --prepare made")
    if platform.machine() == "x86_64" and shutil.which("cc") is None:
        os.environ.setdefault("SLIPWAY_CACHE", str((args.folder / "cache").resolve()))
    if args.one is not None:
        print(json.dumps(judged(args.folder, args.one, args.rounds)))
        return 0
    return measure(args.folder, args.seconds, args.rounds, args.record)


if __name__ == "__main__":
    sys.exit(main())
