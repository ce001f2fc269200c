"""Networks in every form in which onnxruntime quantises them, beside onnxruntime.

    python -m benchmarks quantized_forms [--rounds 11] [--json FILE]

A small convolutional network with odd channels and a transformer encoder, of random weights, are
quantised statically as operators (QOperator) and as pairs (QDQ), per tensor and per channel, with
unsigned and signed activations, and dynamically.  Both sides run in turns on one thread; processor
time counts.  The last column is the largest difference of the outputs, over the largest output.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from pathlib import Path

os.environ["SLIPWAY_NUM_THREADS"] = "1"

import numpy as np
import onnx

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor


def networks(torch):
    """Return (name, module, shape of its input)."""
    nn = torch.nn

    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 24, 3, 2, 1)
            self.residual = nn.Conv2d(24, 24, 3, 1, 1)
            self.rest = nn.Sequential(
                nn.Conv2d(24, 24, 3, 1, 1, groups=24), nn.ReLU6(), nn.Conv2d(24, 50, 1), nn.ReLU(),
                nn.Conv2d(50, 50, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(50, 100, 3, 1, 1),
                nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(100, 37),
            )  # fmt: skip

        def forward(self, x):
            x = self.first(x).relu()
            return self.rest(x + self.residual(x))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.layers(x).mean(1))

    return [
        ("convolutions", Convolutions(), (1, 3, 96, 96)),
        ("encoder", Encoder(), (1, 64, 128)),
    ]


def forms(path, shape):
    """Yield (form, file) for the float model and each way to quantise it."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_dynamic,
        quantize_static,
    )

    class Samples(CalibrationDataReader):
        def __init__(self):
            rng = np.random.default_rng(0)
            self.left = [rng.standard_normal(shape).astype("float32") for _ in range(4)]

        def get_next(self):
            return {"x": self.left.pop()} if self.left else None

    yield "float32", path
    for form in QuantFormat:
        for per_channel in (False, True):
            for activations in (QuantType.QUInt8, QuantType.QInt8):
                each = "per channel" if per_channel else "per tensor"
                name = f"{form.name}, {each}, {activations.name[1:].lower()}"
                made = path.with_name(f"{name}.onnx".replace(", ", "_").replace(" ", "_"))
                quantize_static(
                    path, made, Samples(), quant_format=form, per_channel=per_channel,
                    activation_type=activations, weight_type=QuantType.QInt8,
                )  # fmt: skip
                yield name, made
    for weights in (QuantType.QInt8, QuantType.QUInt8):
        made = path.with_name(f"dynamic_{weights.name}.onnx")
        quantize_dynamic(path, made, weight_type=weights)
        yield f"dynamic, weights {weights.name[1:].lower()}", made


def compared(path, shape, rounds):
    """Return milliseconds of both sides, and how far the outputs are apart."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).standard_normal(shape).astype("float32")
    module, params = relay.frontend.from_onnx(onnx.load(path))
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(module, target="llvm -mcpu=native", params=params)
    model = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    model.run(x=x)
    ours, theirs = model.get_output(0).numpy(), peer.run(None, {"x": x})[0]
    times = ([], [])
    for _ in range(rounds):
        for number, run in enumerate((model.run, lambda: peer.run(None, {"x": x}))):
            start = time.process_time()
            for _ in range(3):
                run()
            times[number].append((time.process_time() - start) / 3 * 1e3)
    apart = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    return *map(statistics.median, times), apart


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    import torch

    torch.manual_seed(0)
    rows = []
    print("| network | form | ms | onnxruntime ms | ratio | apart |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, module, shape in networks(torch):
            path = Path(folder) / name / "model.onnx"
            path.parent.mkdir()
            torch.onnx.export(
                module.eval(), (torch.randn(shape),), str(path), input_names=["x"],
                opset_version=17, dynamo=False,
            )  # fmt: skip
            for form, file in forms(path, shape):
                ours, theirs, apart = compared(file, shape, options.rounds)
                rows.append({"network": name, "form": form, "ms": ours, "peer_ms": theirs})
                ratio = ours / theirs
                print(
                    f"| {name} | {form} | {ours:.2f} | {theirs:.2f} | {ratio:.2f} | {apart:.1g} |",
                    flush=True,
                )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
