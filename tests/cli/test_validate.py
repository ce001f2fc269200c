"""`slipway validate`, and `run --dump-tensors`: numbers of a whole dataset, and of each layer."""

import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, save
from typer.testing import CliRunner

import slipway
from slipway import rpc
from slipway.cli.app import app
from slipway.cli.exit_codes import LIMIT, USAGE, code_of
from slipway.deploy.validate import OutputQuality, Validation, classes_of
from slipway.errors import ExecutionError

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Thirteen pictures, and as labels what ONNX Runtime says, but for three of them."""
    rng = np.random.default_rng(1)
    session = onnxruntime.InferenceSession(str(DIGITS))
    (given,) = session.get_inputs()
    pictures = rng.random((13, *given.shape[1:])).astype("float32")
    outputs = [session.run(None, {given.name: p[None]})[0] for p in pictures]
    labels = np.array([o.argmax() for o in outputs])
    labels[:3] = (labels[:3] + 1) % 10
    path = tmp_path_factory.mktemp("data") / "set.npz"
    np.savez(path, labels=labels, **{given.name: pictures})
    return path


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    return slipway.compile(DIGITS, quiet=True).save(tmp_path_factory.mktemp("m") / "digits.tar")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_shares_and_decibels_of_all_samples(dataset):
    done = run("validate", DIGITS, "--dataset", dataset, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    found = json.loads(done.stdout)
    assert found["samples"] == 13
    assert found["top1"] == found["reference_top1"] == pytest.approx(10 / 13)
    assert found["same_top1"] == 1.0
    (output,) = found["outputs"]
    assert output["sqnr_db"] == "inf" or output["sqnr_db"] > 80
    assert output["cosine"] == pytest.approx(1.0)
    assert output["largest_error"] < 1e-4


def test_it_runs_on_a_device_and_limits_have_an_exit_code(dataset, artifact):
    with rpc.Server("127.0.0.1", 0, silent=True) as server:
        words = ["validate", artifact, "--dataset", dataset, "--reference", "none"]
        words += ["--rpc-host", "127.0.0.1", "--rpc-port", server.port]
        done = run(*words, "--min-top1", "0.7")
        assert done.exit_code == 0, (done.output, done.exception)
        assert "76.92% of 13 samples have the label's class" in done.stdout
        assert run(*words, "--min-top1", "0.8").exit_code == LIMIT


def test_another_model_as_the_reference_is_told_by_its_numbers(dataset, tmp_path):
    """As the float model is that of a quantised one: the same inputs and outputs."""
    import onnx

    other = onnx.load(DIGITS)
    weight = max(other.graph.initializer, key=lambda t: np.prod(t.dims))
    values = onnx.numpy_helper.to_array(weight) * 1.05
    weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    save(other, tmp_path / "other.onnx")
    words = ["validate", DIGITS, "--dataset", dataset, "--reference", tmp_path / "other.onnx"]
    found = json.loads(run(*words, "--json").stdout)
    assert 5 < found["outputs"][0]["sqnr_db"] < 60
    assert run(*words, "--min-sqnr", "90").exit_code == LIMIT


def test_batches_are_padded_and_folders_joined(tmp_path):
    """Two inputs, four rows a run, ten samples in two files: the last run has two of its own."""
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (4, 3)) for n in ("a", "b")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 3))]
    graph = helper.make_graph([helper.make_node("Sub", ["a", "b"], ["y"])], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    save(model, tmp_path / "sub.onnx")
    rng = np.random.default_rng(2)
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, rows in enumerate((7, 3)):
        a, b = rng.random((2, rows, 3)).astype("float32")
        np.savez(folder / f"{number}.npz", a=a, b=b, labels=(a - b).argmax(axis=1))
    done = run("validate", tmp_path / "sub.onnx", "--dataset", folder, "--json")
    found = json.loads(done.stdout)
    assert (found["samples"], found["top1"]) == (10, 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: {"pixels": a["x"], "labels": a["labels"]}, "has no array"),
        (lambda a: {**a, "labels": a["labels"][:5]}, "5 labels for 13 rows"),
        (lambda a: {**a, "x": a["x"].astype("float64")}, "float64"),
        (lambda a: {**a, "x": a["x"][..., :3]}, "an axis more in front"),
    ],
)
def test_what_does_not_fit_is_said(dataset, artifact, tmp_path, change, words):
    with np.load(dataset) as stored:
        (name,) = set(stored.files) - {"labels"}
        arrays = change({"x": stored[name], "labels": stored["labels"]})
    np.savez(tmp_path / "d.npz", **{name if n == "x" else n: a for n, a in arrays.items()})
    done = run("validate", artifact, "--dataset", tmp_path / "d.npz", "--reference", "none")
    assert words in str(done.exception)


def test_an_artifact_asks_for_its_reference(artifact, dataset):
    assert "--reference" in str(run("validate", artifact, "--dataset", dataset).exception)


def test_every_layer_is_dumped_with_what_it_computed(artifact, tmp_path):
    """The last one is the output; a ReLU's is not negative, though its memory was used again."""
    words = ["--outputs", tmp_path / "o.npz", "--dump-tensors", tmp_path / "layers"]
    done = run("run", artifact, "--fill-mode", "ones", *words)
    assert done.exit_code == 0, (done.output, done.exception)
    dumped = sorted((tmp_path / "layers").iterdir())
    assert len(dumped) > 5
    with np.load(tmp_path / "o.npz") as outputs:
        np.testing.assert_array_equal(np.load(dumped[-1]), outputs["output_0"])
    module = slipway.load(artifact)
    module(np.ones(module.inputs[0].shape, "float32"))
    layers = module.executor.layer_values()
    for path, (_, _, value) in zip(dumped, layers, strict=True):
        np.testing.assert_array_equal(np.load(path), value.numpy())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y: (x, y.astype(str)), "numbers of classes"),
        (lambda x, y: (x, y + 0.5), "numbers of classes"),
        (lambda x, y: (x, y - 9), "whole ones from 0"),
        (lambda x, y: (x, y + 10), "scores of the classes 0 to 9"),
        (lambda x, y: (x, np.eye(10)[y]), "130 labels for 13 rows.*number of its class"),
        (lambda x, y: (x[:0], y[:0]), "no samples"),
    ],
)
def test_labels_that_can_be_none_are_refused(change, words, dataset, tmp_path):
    with np.load(dataset) as held:
        (name,) = set(held) - {"labels"}
        pictures, labels = change(held[name], held["labels"])
    np.savez(tmp_path / "other.npz", labels=labels, **{name: pictures})
    done = run("validate", DIGITS, "--dataset", tmp_path / "other.npz")
    assert isinstance(done.exception, ExecutionError)
    assert code_of(done.exception) == USAGE
    assert re.search(words, str(done.exception))


def test_a_folder_has_a_file_a_sample_with_its_label(dataset, tmp_path):
    with np.load(dataset) as held:
        (name,) = set(held) - {"labels"}
        for at, (picture, label) in enumerate(zip(held[name], held["labels"], strict=True)):
            np.savez(tmp_path / f"{at:02}.npz", labels=label, **{name: picture[None]})
    found = json.loads(run("validate", DIGITS, "--dataset", tmp_path, "--json").stdout)
    assert found["samples"] == 13
    assert found["top1"] == pytest.approx(10 / 13)


def test_what_is_no_number_passes_no_gate():
    quality = OutputQuality("y")
    quality.add(np.array([np.nan, 1.0]), np.array([0.5, 1.0]))
    assert quality.sqnr_db == -np.inf
    assert quality.cosine == 0
    found = Validation(outputs=[quality]).to_dict()["outputs"][0]
    assert (found["sqnr_db"], found["largest_error"]) == ("-inf", "inf")
    both = OutputQuality("z")  # the same on both sides, which shows nothing
    both.add(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))
    assert np.isnan(both.sqnr_db)
    assert np.isnan(both.cosine)
    found = Validation(outputs=[both]).to_dict()["outputs"][0]
    assert (found["sqnr_db"], found["cosine"], found["not_finite"]) == ("nan", "nan", 2)
    scores = np.array([[np.nan, 1.0], [0.0, 1.0]], "float32")
    assert classes_of(scores, 2, 2) == [-1, 1]


def test_values_that_are_no_numbers_on_both_sides_are_told(tmp_path):
    root = helper.make_node("Sqrt", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in "xy")
    model = helper.make_model(
        helper.make_graph([root], "g", [x], [y]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    save(model, tmp_path / "root.onnx")
    command = ("validate", tmp_path / "root.onnx", "--dataset", tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", x=np.full((3, 4), -1, "float32"))
    found = run(*command, "--min-sqnr", "10")
    assert found.exit_code == 4
    assert "y: 12 of 12 values are NaN or infinite in both" in found.stdout
    np.savez(tmp_path / "x.npz", x=np.float32([[-1, 4, 9, 16], [1, 2, 3, 4]]))
    found = run(*command, "--min-sqnr", "10")
    assert found.exit_code == 0
    assert "y: 1 of 8 values are" in found.stdout
