"""The shared TFLite models: integer ones bit for bit, floating point ones to 1e-4."""

import json
import sys
from functools import cache

import numpy as np
import pytest
from litert import Peer, compiled, outputs, pseudo_random

from slipway.errors import ModelError
from slipway.frontends.tflite.reader import load_model

INTEGER = (
    "ad01_int8", "hello_world_int8", "kws_ref_model", "micro_speech_quantized", "person_detect",
    "pretrainedResnet_quant", "str_ww_ref_model", "vww_96_int8",
)  # fmt: skip
FLOAT = ("ad01_fp32", "kws_ref_model_float32", "pretrainedResnet", "vww_96_float")


@cache
def executor(path, **options):
    return compiled(path, **options)


@pytest.mark.parametrize("name", INTEGER)
def test_integer_model_equals_tflite_micro(name, tflite_models):
    golden = json.loads((tflite_models / "golden_tflm.json").read_text())["models"]
    path = tflite_models / f"{name}.tflite"
    shape = load_model(path).subgraphs[0].tensors[load_model(path).subgraphs[0].inputs[0]].shape
    for seed, wanted in golden[f"{name}.tflite"]["outputs"].items():
        data = pseudo_random(int(seed), int(np.prod(shape))).reshape(shape)
        assert outputs(executor(path), [data])[0].tobytes().hex() == wanted


@pytest.mark.parametrize("name", ["hello_world_int8", "kws_ref_model"])
def test_generated_c_gives_the_same_bytes(name, tflite_models):
    golden = json.loads((tflite_models / "golden_tflm.json").read_text())["models"]
    path = tflite_models / f"{name}.tflite"
    graph = load_model(path).subgraphs[0]
    shape = graph.tensors[graph.inputs[0]].shape
    made = compiled(path, "c")
    for seed, wanted in golden[path.name]["outputs"].items():
        data = pseudo_random(int(seed), int(np.prod(shape))).reshape(shape)
        assert outputs(made, [data])[0].tobytes().hex() == wanted


@pytest.mark.parametrize("name", INTEGER)
def test_integer_model_equals_litert(name, tflite_models):
    """LiteRT rounds matrix products once where TFLM rounds twice; the rest is the same."""
    path = tflite_models / f"{name}.tflite"
    peer, rng = Peer(path.read_bytes()), np.random.default_rng(7)
    for _ in range(20):
        inputs = peer.random_inputs(rng)
        (got,), (want,) = outputs(executor(path, dense_rounding="single"), inputs), peer(inputs)
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("name", FLOAT)
def test_float_model_agrees_with_litert(name, tflite_models):
    path = tflite_models / f"{name}.tflite"
    peer, rng = Peer(path.read_bytes()), np.random.default_rng(7)
    for _ in range(5):
        inputs = peer.random_inputs(rng)
        (got,), (want,) = outputs(executor(path), inputs), peer(inputs)
        assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


def test_model_may_be_a_path_bytes_or_an_object(tflite_models):
    path = tflite_models / "hello_world_int8.tflite"
    data = path.read_bytes()
    want = load_model(path)
    assert load_model(str(path)) is not None
    assert load_model(data).subgraphs[0].operators == want.subgraphs[0].operators
    tflite = pytest.importorskip("tflite")
    made = tflite.Model.GetRootAs(data, 0)
    assert load_model(made).subgraphs[0].operators == want.subgraphs[0].operators


@pytest.mark.parametrize("name", ["hello_world_int8", "kws_ref_model"])
def test_damaged_files_raise_model_errors(name, tflite_models):
    """Truncated and changed files are refused or read; no other error, no hanging."""
    data = (tflite_models / f"{name}.tflite").read_bytes()
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(200):
        changed = bytearray(data)
        if rng.integers(2):
            del changed[int(rng.integers(8, len(changed))) :]
        else:
            for at in rng.integers(8, min(len(changed), 4096), 6):
                changed[at] = int(rng.integers(256))
        try:
            load_model(bytes(changed))
        except ModelError:
            refused += 1
    assert refused > 50


def test_import_needs_no_other_package(tflite_models, monkeypatch):
    monkeypatch.setitem(sys.modules, "tflite", None)
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    assert load_model(tflite_models / "hello_world_int8.tflite").subgraphs
