"""A model in three lines: compiled, called, checked, saved, loaded, carried to a device."""

import json
import tracemalloc
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import slipway
from slipway import relay, rpc
from slipway.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    DeviceError,
    ExecutionError,
    ModelError,
    TargetError,
)

DIGITS = Path(str(files("slipway"))) / "models" / "digits"


@pytest.fixture(scope="module")
def digits():
    return slipway.compile(DIGITS / "digits.onnx", quiet=True)


@pytest.fixture(scope="module")
def images():
    with np.load(DIGITS / "digits_test.npz") as stored:
        return stored["images"][:5], stored["logits"][:5]


def two_in_two_out():
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["a", "b"], ["the sum"]),
            helper.make_node("ReduceMax", ["a"], ["top"], keepdims=0),
        ],
        "g",
        [value("a", TensorProto.FLOAT, [2, 3]), value("b", TensorProto.FLOAT, [2, 3])],
        [value("the sum", TensorProto.FLOAT, [2, 3]), value("top", TensorProto.FLOAT, [])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.fixture(scope="module")
def pair():
    return slipway.compile(two_in_two_out(), quiet=True)


def test_it_is_called_in_every_way(digits, images):
    image, logits = images[0][:1], images[1][0]
    name = digits.inputs[0].name
    for result in (digits(image), digits({name: image}), digits(**{name: image.tolist()})):
        np.testing.assert_allclose(result[0], logits, atol=1e-4)
    assert digits.inputs[0].shape == image.shape
    assert [spec.dtype for spec in digits.outputs] == ["float32"]


def test_batches_run_one_after_the_other(digits, images):
    np.testing.assert_allclose(digits(images[0]), images[1], atol=1e-4)
    assert digits(images[0][:0]).shape == (0, *images[1].shape[1:])


def test_several_outputs_have_the_models_names(pair):
    a, b = np.arange(6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")
    found = pair(a, b=b)
    assert list(found) == ["the sum", "top"]
    np.testing.assert_array_equal(found["the sum"], a + b)
    assert found["top"] == 5
    pair(b, b)
    assert found["top"] == 5  # results are the caller's


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, x: m(), r"inputs are missing: a: float32\[2, 3\]; b"),
        (lambda m, x: m(x, x, x), "3 inputs are given and the model has 2"),
        (lambda m, x: m(x, c=x), "no input 'c'. Its inputs: a"),
        (lambda m, x: m.check(m, tolerence=1), "no such option: .*mean 'tolerance'"),
        (lambda m, x: m.profile(x, x, nubmer=1), "option: number, repeat.*mean 'number'"),
        (lambda m, x: m.benchmark(repat=1), "option: number, repeat.*mean 'repeat'"),
        (lambda m, x: m.report("r.html", number=False), "option: path, numbers.*mean 'numbers'"),
        (lambda m, x: m(x, a=x, b=x), "'a' is given by position and by name"),
        (lambda m, x: m(x, x[0]), r"'b' is float32\[2, 3\], and .* shape \[3\]"),
        (lambda m, x: m(np.tile(x, (2, 1)), x), "different numbers of runs"),
        (lambda m, x: m(np.tile(x, (2, 1)), np.tile(x, (2, 1))), "the output top: float32"),
    ],
)
def test_wrong_inputs_are_explained(pair, call, words):
    with pytest.raises(ExecutionError, match=words):
        call(pair, np.ones((2, 3), "float32"))


def test_tensors_of_pytorch_are_taken():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 4), torch.nn.GELU()).eval()
    model = slipway.compile(net, example=torch.zeros(1, 2, 3), quiet=True)
    x = torch.randn(1, 2, 3, requires_grad=True)
    np.testing.assert_allclose(model(x), net(x).detach().numpy(), atol=1e-5)
    agreement = model.check()
    assert agreement
    assert agreement.reference.startswith("PyTorch")


def test_relay_is_taken():
    x = relay.var("x", shape=(4,))
    model = slipway.compile(relay.tanh(x), quiet=True)
    np.testing.assert_allclose(model([0, 1, 2, 3]), np.tanh(np.arange(4.0)), rtol=1e-6)
    with pytest.raises(ExecutionError, match="nothing is known to check against"):
        model.check()
    assert model.check(np.tanh)
    assert not model.check(np.sin)


def test_the_framework_agrees(digits, images):
    pytest.importorskip("onnxruntime")
    agreement = digits.check()
    assert agreement
    assert agreement.outputs[0].sqnr_db > 80
    assert "agrees" in str(agreement)
    wrong = digits.check(lambda image: np.zeros(digits.outputs[0].shape, "float32"))
    assert not wrong
    assert "DIFFERS" in str(wrong)


def test_saved_loaded_and_carried(digits, images, tmp_path):
    want = digits(images[0])
    (tmp_path / ".m.tar.part").mkdir()  # of a process that was killed while it saved
    for path in (digits.save(tmp_path / "m.tar"), digits.save(tmp_path / "m.so")):
        loaded = slipway.load(path)
        np.testing.assert_array_equal(loaded(images[0]), want)
        assert loaded.inputs == digits.inputs
    assert sorted(p.name for p in tmp_path.iterdir()) == [".m.tar.part", "m.so", "m.tar"]
    with rpc.LocalSession() as session:
        there = slipway.load(tmp_path / "m.tar").on(session)
        np.testing.assert_array_equal(there(images[0]), want)
        assert there.benchmark(number=1, repeat=1).mean > 0
        assert there.where != digits.where
    with pytest.raises(ExecutionError, match=r"saved as \.tar"):
        slipway.load(tmp_path / "m.tar").save(tmp_path / "n.so")


def test_a_loaded_model_reads_its_file_once_and_copies_its_parameters_once(tmp_path):
    weights = np.random.default_rng(0).standard_normal((2048, 512)).astype("float32")  # 4 MB
    x = relay.var("x", shape=(1, 512))
    made = slipway.compile(relay.nn.dense(x, relay.const(weights)).as_function(), quiet=True)
    saved = made.save(tmp_path / "dense.tar")
    row = np.ones((1, 512), "float32")
    slipway.load(saved)(row)  # what is loaded once in a process is not the model's
    tracemalloc.start()
    model = slipway.load(saved)
    saved.unlink()
    result, held = model(row), tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(result, made(row), rtol=1e-5)
    assert held[0] < 1.2 * weights.nbytes, "the file's bytes are kept beside the parameters"
    assert held[1] < 2.2 * weights.nbytes, "besides the file and the parameters there is a copy"


def test_a_server_by_its_address(digits, images):
    server = rpc.Server("127.0.0.1", 0)
    try:
        there = digits.on(f"127.0.0.1:{server.port}")
        np.testing.assert_array_equal(there(images[0][:1]), digits(images[0][:1]))
    finally:
        server.terminate()


def test_a_model_for_another_processor_is_carried_but_not_called(tmp_path, images):
    model = slipway.compile(DIGITS / "digits.onnx", "raspberry-pi/4b-aarch64", quiet=True)
    with pytest.raises(ExecutionError, match="this machine is"):
        model(images[0][:1])
    loaded = slipway.load(model.save(tmp_path / "pi.tar"))
    assert loaded.inputs == model.inputs
    with pytest.raises(ArtifactError, match="aarch64"):
        loaded(images[0][:1])


def test_sizes_left_open_are_asked_for_in_these_words(tmp_path):
    model = two_in_two_out()
    for tensor in (*model.graph.input, model.graph.output[0]):
        tensor.type.tensor_type.shape.dim[0].dim_param = "n"
    with pytest.raises(ModelError, match=r"Pass shapes=\{'a': \(1, 3\)"):
        slipway.compile(model, quiet=True)
    path = tmp_path / "open.onnx"
    onnx.save(model, path)
    made = slipway.compile(path, shapes={"a": [4, 3], "b": (4, 3)}, quiet=True)
    assert made(np.ones((4, 3), "float32"), np.ones((4, 3), "float32"))["the sum"].shape == (4, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: slipway.compile("nothing.onnx"), FileNotFoundError, "nothing.onnx"),
        (lambda m: slipway.compile("model.h5"), ModelError, "known: .onnx"),
        (lambda m: slipway.compile(3), ModelError, "int is no kind of model"),
        (lambda m: slipway.compile(DIGITS / "digits.onnx", "web/wasm"), TargetError, "in a page"),
        (lambda m: slipway.compile(DIGITS / "digits.onnx", "llwm"), TargetError, "llvm"),
        (lambda m: slipway.load("nothing.tar"), FileNotFoundError, "slipway compile"),
        (lambda m: slipway.load(DIGITS / "digits.onnx"), ArtifactError, "reads model files"),
        (lambda m: m.on("host:port"), ArgumentValueError, "no port"),
        (lambda m: m.on(""), ArgumentValueError, "no address"),
        (lambda m: m.on(np.zeros(9)), ArgumentValueError, "^ndarray is no address"),
        (lambda m: m.profile(np.zeros((1, 1, 8, 7), "float32")), ExecutionError, "has shape"),
        (lambda m: m.profile(number=0), ArgumentValueError, "number=0 is not from 1 to 100000"),
        (lambda m: m.benchmark(repeat=2.5), ArgumentTypeError, "repeat=2.5 is no whole number"),
        (lambda m: m.check(3), ExecutionError, "int is no kind of reference"),
        (lambda m: m.check(lambda x: (x, x)), ExecutionError, "gives 2 outputs"),
        (lambda m: m("a word"), ExecutionError, "what is given for it is <U6"),
        (lambda m: m(np.zeros((1, 1, 8, 8), "complex64")), ExecutionError, "'image' is float32"),
        (lambda m: m(np.array([None])), ExecutionError, "given for it is object"),
        (
            lambda m: slipway.compile(DIGITS / "digits.onnx", params={"imag": 1}, quiet=True),
            ModelError,
            "no parameter 'imag'. Did you mean 'image'",
        ),
    ],
)
def test_what_cannot_be_done_is_explained(digits, call, error, words):
    with pytest.raises(error, match=words):
        call(digits)


def test_a_model_of_a_microcontroller_says_where_it_runs(tmp_path):
    made = slipway.compile(DIGITS / "digits.onnx", "arm/cortex-m0", quiet=True)
    loaded = slipway.load(made.save(tmp_path / "m0.tar"))
    for model in (made, loaded):
        assert "m.on(" in repr(model)
        for request in (model, model.profile):
            with pytest.raises(ExecutionError, match=r"m\.on\('cortex-m0'.*`slipway micro create`"):
                request(np.zeros((1, 1, 8, 8), "float32"))


def test_it_shows_what_it_is(digits):
    text = repr(digits)
    for word in ("digits", "target", "float32", "bytes", "this machine"):
        assert word in text
        assert word in digits._repr_html_()
    assert digits.size == digits.artifact.stat().st_size
    image = np.zeros((1, 1, 8, 8), "float32")
    table = str(digits.profile(image, number=1, repeat=1))
    assert digits.benchmark(image=image, number=1, repeat=1).mean > 0
    assert "conv2d" in table
    assert "100.0%" in table or "s  all" in table


def test_a_reference_of_another_shape_differs_and_says_so(digits):
    found = digits.check(lambda image: image[:, 0, 0])
    assert not found
    assert "its shape is (1, 10) and not (1, 8)" in str(found)


def test_inputs_that_tell_different_sizes_of_one_dimension(tmp_path):
    model = two_in_two_out()
    for tensor in (*model.graph.input, model.graph.output[0]):
        tensor.type.tensor_type.shape.dim[0].dim_param = "n"
    made = slipway.compile(model, dims={"n": (1, 4)}, quiet=True)
    ones = np.ones((4, 3), "float32")
    assert made(ones[:2], ones[:2])["the sum"].shape == (2, 3)
    with pytest.raises(ExecutionError, match="different sizes of n: 'a' 2, 'b' 3"):
        made(ones[:2], ones[:3])


def test_random_words_are_in_the_vocabulary():
    """ONNX Runtime refuses an index outside of a table, so what is made up must be inside."""
    words = onnx.helper.make_tensor_value_info("words", onnx.TensorProto.INT64, [40])
    mask = onnx.helper.make_tensor_value_info("mask", onnx.TensorProto.INT64, [40, 1])
    table = np.arange(22, dtype="float32").reshape(11, 2)
    nodes = [
        onnx.helper.make_node("Gather", ["table", "words"], ["rows"]),
        onnx.helper.make_node("Cast", ["mask"], ["kept"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Mul", ["rows", "kept"], ["y"]),
    ]
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [40, 2])
    graph = onnx.helper.make_graph(
        nodes, "g", [words, mask], [y], [onnx.numpy_helper.from_array(table, "table")]
    )
    opset = onnx.helper.make_opsetid("", 17)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    made = slipway.compile(model, quiet=True)
    assert [spec.values for spec in made.inputs] == [(0.0, 10.0), None]
    assert made.check()


@pytest.mark.parametrize("target", ["opencl", "vulkan"])
def test_a_model_for_a_gpu_is_called_checked_reported_and_carried(target, tmp_path):
    if not slipway.device(target, 0).exist:
        pytest.skip(f"no {target} device: README names the packages that bring one")
    gpu = slipway.compile(DIGITS / "digits.onnx", target, quiet=True)
    here = slipway.compile(DIGITS / "digits.onnx", quiet=True)
    images = np.random.default_rng(0).random((3, 1, 8, 8), "float32")
    want = here(images)
    np.testing.assert_allclose(gpu(images), want, rtol=1e-4, atol=1e-4)
    assert gpu.check()
    assert gpu.benchmark(number=1, repeat=1).mean > 0
    assert len(gpu.profile(number=1, repeat=1).operators) >= 3
    page = gpu.report(tmp_path / "digits.html").read_text(encoding="utf-8")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["run_seconds"]
    assert all(layer["agrees"] for layer in data["layers"])
    loaded = slipway.load(gpu.save(tmp_path / "gpu.tar"))
    np.testing.assert_array_equal(loaded(images), gpu(images))
    with rpc.PopenSession() as session:  # a driver does not survive a fork
        np.testing.assert_array_equal(loaded.on(session)(images), gpu(images))


def test_a_model_for_a_device_that_is_not_here_says_so(tmp_path):
    if slipway.cuda(0).exist:
        pytest.skip("this machine has an NVIDIA GPU")
    model = slipway.compile(DIGITS / "digits.onnx", "cuda", quiet=True)
    with pytest.raises(DeviceError, match=r"libcuda\.so\.1"):
        model(np.zeros((1, 1, 8, 8), "float32"))
    page = model.report(tmp_path / "digits.html").read_text(encoding="utf-8")
    assert "its kernels are for cuda, and this machine has no such device" in page


def test_a_module_without_an_example_is_asked_for_one():
    torch = pytest.importorskip("torch")
    with pytest.raises(ModelError, match=r"a Linear does not say what it takes: pass example="):
        slipway.compile(torch.nn.Linear(2, 3), quiet=True)


def test_what_values_decide_is_as_long_as_what_is_found(tmp_path):
    """As onnxruntime's; from_onnx alone gives room and a count, which every executor runs."""
    values = np.array([3, 1, 2, 3, 1, 2, 7, 7, 7], np.float32)
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Unique", ["x"], ["y", "", "", "counts"]),
            onnx.helper.make_node("Mul", ["y", "y"], ["squares"]),
            onnx.helper.make_node("NonZero", ["x"], ["where"]),
        ],
        "found",
        [info("x", 1, [9])],
        [info("squares", 1, ["k"]), info("counts", 7, ["k"]), info("where", 7, [1, "n"])],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path / "found.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    model = slipway.compile(path, quiet=True)
    found = slipway.load(model.save(tmp_path / "found.tar"))(values)
    np.testing.assert_array_equal(found["squares"], [1, 4, 9, 49])
    np.testing.assert_array_equal(found["counts"], [2, 2, 2, 3])
    np.testing.assert_array_equal(found["where"], [np.arange(9)])
    assert model(np.zeros(9, np.float32))["where"].shape == (1, 0)
    assert all(o.agrees for o in model.check().outputs)


def test_a_model_may_be_given_as_bytes(shared):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    contents = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    model = slipway.compile(contents.SerializeToString())
    assert model(np.full((2, 3), -1, "float32")).max() == 0
    file = shared / "models/tflite/hello_world_int8.tflite"
    from_bytes, from_file = slipway.compile(file.read_bytes()), slipway.compile(file)
    given = np.array([[17]], "int8")
    assert from_bytes(given) == from_file(given)
    with pytest.raises(ModelError):
        slipway.compile(b"no model")
