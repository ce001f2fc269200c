"""The example model is what its README says, by a runtime that is not ours."""

import re
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

DIGITS = files("slipway") / "models" / "digits"


@pytest.fixture(scope="module")
def test_set():
    with np.load(str(DIGITS / "digits_test.npz")) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.fixture(scope="module")
def logits(test_set):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(DIGITS / "digits.onnx"))
    rows = [session.run(None, {"image": image[None]})[0] for image in test_set["images"]]
    return np.concatenate(rows)


def test_stored_logits_are_what_the_model_computes(test_set, logits):
    np.testing.assert_allclose(test_set["logits"], logits, rtol=1e-4, atol=1e-4)


def test_accuracy_is_the_stated_one(test_set, logits):
    right = int((logits.argmax(axis=1) == test_set["labels"]).sum())
    stated = (DIGITS / "README.md").read_text(encoding="utf-8")
    assert f"{right} of {len(logits)} held-out images" in stated
    assert right / len(logits) > 0.98


def test_batch_norm_is_left_for_the_compiler():
    onnx = pytest.importorskip("onnx")
    model = onnx.load(str(DIGITS / "digits.onnx"))
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("BatchNormalization") == 5
    assert operators.count("Conv") == 5


@pytest.mark.long
def test_training_script_makes_the_model(repository, tmp_path):
    pytest.importorskip("sklearn")
    script = repository / "examples" / "digits" / "train.py"
    done = subprocess.run(
        [sys.executable, script, "--out", tmp_path], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    accuracy = float(re.search(r"held-out images: ([\d.]+)%", done.stdout).group(1))
    assert accuracy > 98
    made = np.load(tmp_path / "digits_test.npz")
    shipped = np.load(str(DIGITS / "digits_test.npz"))
    np.testing.assert_array_equal(made["images"], shipped["images"])
