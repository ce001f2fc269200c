"""How far outputs are from a reference's, and what is said of quantised ones."""

import numpy as np
import pytest

import slipway
from slipway.deploy.agreement import QUANTISED, agreement_of
from slipway.errors import ExecutionError


def beside(got, wanted, tolerance=1e-4):
    return agreement_of({"y": got}, {"y": wanted}, "numpy", tolerance)


def test_values_on_a_grid_are_so_many_steps_apart():
    wanted = np.arange(-40, 60, dtype="float32") * np.float32(0.037)
    got = wanted.copy()
    got[[3, 70]] += np.float32(0.037) * np.array([1, -2], "float32")
    found = beside(got, wanted)
    assert not found
    assert found.outputs[0].steps == 2
    assert "2 steps of its quantisation" in str(found)
    assert QUANTISED in str(found)
    assert beside(got, wanted, tolerance=0.05).outputs[0].steps is None


@pytest.mark.parametrize("wanted", [
    np.random.default_rng(0).standard_normal(500).astype("float32"),
    np.array([0, 1, 0, 1], "float32"),
    np.zeros(9, "float32"),
])  # fmt: skip
def test_other_values_have_no_grid(wanted):
    found = beside(wanted + np.float32(0.5), wanted)
    assert not found
    assert found.outputs[0].steps is None
    assert QUANTISED not in str(found)


@pytest.mark.parametrize("name", ["pretrainedResnet_quant", "kws_ref_model_float32"])
def test_a_file_of_tflite_agrees_with_the_kernels_whose_rounding_is_documented(shared, name):
    pytest.importorskip("ai_edge_litert")
    assert slipway.compile(shared / "models/tflite" / f"{name}.tflite").check()


def test_a_file_that_litert_does_not_read_is_no_raw_error(shared):
    pytest.importorskip("ai_edge_litert")
    model = slipway.compile(shared / "models/tflite/person_detect.tflite")
    with pytest.raises(ExecutionError, match=r"LiteRT does not read person_detect\.tflite"):
        model.check()
