"""Slipway's post-training quantisation beside onnxruntime's static quantiser, on the same data.

    python -m benchmarks quantization MODEL.onnx ...  [--calibration 8] [--samples 32]

Each quantised model runs in onnxruntime; SQNR (dB, of the model's first output) and top-1
agreement are against the real model.  Inputs are normal random numbers, so the figures compare
quantisers, not models.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import slipway
from slipway.frontends.onnx.quantize.report import signal_to_noise_db


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # Without fusions onnxruntime computes what the file says, to the last bit.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def random_inputs(model, count, seed):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        sample = {}
        for entry in onnx.load(model).graph.input:
            shape = [d.dim_value or 1 for d in entry.type.tensor_type.shape.dim]
            sample[entry.name] = rng.standard_normal(shape).astype(np.float32)
        found.append(sample)
    return found


def _activation(kinds, wide, unsigned):
    if unsigned:
        return kinds.QUInt8
    return kinds.QInt16 if wide else kinds.QInt8


def by_onnxruntime(model, samples, method, wide, unsigned=False):
    from onnxruntime import quantization as ort

    class Reader(ort.CalibrationDataReader):
        def __init__(self):
            self.samples_left = iter(samples)

        def get_next(self):
            return next(self.samples_left, None)

    kinds = {
        "minmax": ort.CalibrationMethod.MinMax,
        "percentile": ort.CalibrationMethod.Percentile,
        "entropy": ort.CalibrationMethod.Entropy,
    }
    with tempfile.TemporaryDirectory() as folder:
        plain, target = Path(folder, "plain.onnx"), Path(folder, "quantised.onnx")
        ort.shape_inference.quant_pre_process(str(model), str(plain), skip_symbolic_shape=True)
        ort.quantize_static(
            str(plain), str(target), Reader(), quant_format=ort.QuantFormat.QDQ, per_channel=True,
            activation_type=_activation(ort.QuantType, wide, unsigned),
            weight_type=ort.QuantType.QInt8, calibrate_method=kinds[method],
            extra_options={"ActivationSymmetric": wide},
        )  # fmt: skip
        return target.read_bytes()


def by_slipway(model, samples, method, wide):
    made = slipway.quantize(
        model, samples, method=method, activations="int16" if wide else "int8", report=False
    )
    return made.onnx.SerializeToString()


def measure(quantised, wanted, samples):
    run = session(quantised)
    given = [run.run(None, s)[0] for s in samples]
    same = np.mean([np.argmax(a) == np.argmax(b) for a, b in zip(wanted, given, strict=True)])
    return signal_to_noise_db(np.stack(wanted), np.stack(given)), float(same)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--calibration", type=int, default=8)
    parser.add_argument("--samples", type=int, default=32)
    args = parser.parse_args()
    print("| model | activations | calibration | Slipway dB | top-1 | onnxruntime dB | top-1 |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for model in args.models:
        calibration = random_inputs(model, args.calibration, 0)
        samples = random_inputs(model, args.samples, 1)
        real = session(model.read_bytes())
        wanted = [real.run(None, s)[0] for s in samples]
        for wide, method in (
            (False, "minmax"), (False, "percentile"), (False, "entropy"), (True, "minmax"),
        ):  # fmt: skip
            row = [model.stem, "int16" if wide else "int8", method]
            for quantise in (by_slipway, by_onnxruntime):
                try:
                    made = quantise(model, calibration, method, wide)
                    noise, same = measure(made, wanted, samples)
                    row += [f"{noise:.1f}", f"{same:.0%}"]
                except Exception as error:  # a quantiser that fails is a result too
                    row += [type(error).__name__, ""]
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
