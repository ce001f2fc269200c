"""The example model is what its README says, by a runtime that is not ours."""

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
