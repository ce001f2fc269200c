"""What quantisation gains on this CPU: float32 beside int8, here and in onnxruntime.

    python -m benchmarks int8 [--models resnet18 mobilenet_v2] [--threads 1] [--activations uint8]

Each model is quantised by `slipway.quantize` (QDQ, int8, minmax of two random samples), and both
engines run the same two files, in processes of their own and in turns, as in `benchmarks.cpu`.
With ``--activations uint8`` it is quantised by onnxruntime, in the form that its kernels for x86
are made for.  ``--clock cpu`` gives processor time, for a machine that does other things too.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.cpu import measure, models_of
from benchmarks.quantization import by_onnxruntime, by_slipway, random_inputs

ENGINES = ["slipway", "onnxruntime"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=["resnet18", "mobilenet_v2"])
    parser.add_argument("--folder", help="folder of .onnx files")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--target", default="llvm", help="of Slipway")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each round and engine")
    parser.add_argument("--activations", choices=("int8", "uint8"), default="int8")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    arguments = parser.parse_args()
    clock = f"{arguments.clock}_ms"
    print(
        "| model | threads | float32 ms | int8 ms | faster | onnxruntime float32 | int8 | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for model in models_of(arguments):
            quantized = Path(folder) / model.name
            samples = random_inputs(model, 2, 0)
            if arguments.activations == "uint8":
                made = by_onnxruntime(model, samples, "minmax", False, unsigned=True)
            else:
                made = by_slipway(model, samples, "minmax", False)
            quantized.write_bytes(made)
            for threads in arguments.threads:
                times = []
                for file in (model, quantized):
                    found = measure(
                        file,
                        threads,
                        ENGINES,
                        arguments.rounds,
                        arguments.seconds,
                        arguments.target,
                    )
                    times.append([found[e].get(clock, float("nan")) for e in ENGINES])
                (real, peer_real), (ours, peer) = times
                print(
                    f"| {model.stem} | {threads} | {real:.3g} | {ours:.3g} | {real / ours:.2f}x "
                    f"| {peer_real:.3g} | {peer:.3g} | {ours / peer:.2f} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
