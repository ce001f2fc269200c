"""Whole models on this machine and on emulated devices, against onnxruntime.

The models are those of ``../shared/models/make_models.py`` beside the checkout; where that folder
is missing the tests are skipped, with the reason.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor

MAKER = Path(__file__).parents[2].parent / "shared" / "models" / "make_models.py"
QUICK = ("squeezenet1_1", "mobilenet_v2", "resnet18")
OTHERS = (
    "ds_cnn", "mobilenet_v3_small", "efficientnet_lite0", "resnet50", "unet", "vit_tiny", "bert",
    "lstm_tagger",
)  # fmt: skip
MODELS = [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]

pytestmark = pytest.mark.skipif(not MAKER.is_file(), reason=f"no {MAKER.name} beside the checkout")


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")

    @cache
    def make(name):
        subprocess.run([sys.executable, str(MAKER), str(folder), name], check=True)
        return folder / f"{name}.onnx"

    return make


@pytest.fixture(scope="session")
def reference(model_file):
    """Return feeds and onnxruntime's outputs of a model."""
    onnxruntime = pytest.importorskip("onnxruntime")

    @cache
    def run(name):
        session = onnxruntime.InferenceSession(model_file(name), providers=["CPUExecutionProvider"])
        rng = np.random.default_rng(0)
        feeds = {
            i.name: rng.standard_normal(i.shape).astype("float32")
            if i.type == "tensor(float)"
            else rng.integers(0, 100, i.shape)  # token numbers
            for i in session.get_inputs()
        }
        return feeds, session.run(None, feeds)

    return run


def build(path, target):
    mod, params = relay.frontend.from_onnx(str(path))
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target=target, params=params)


def check(model, reference):
    feeds, wanted = reference
    model.run(**feeds)
    model.run()  # again: the inputs must still be there
    assert model.get_num_outputs() == len(wanted)
    for index, want in enumerate(wanted):
        got = model.get_output(index).numpy()
        assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


@pytest.mark.parametrize("name", MODELS)
def test_model_runs_here(name, model_file, reference):
    lib = build(model_file(name), "llvm")
    check(graph_executor.GraphModule(lib["default"](tvm.cpu(0))), reference(name))


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64", "armv7", "riscv64"])
@pytest.mark.parametrize("name", MODELS)
def test_model_runs_on_a_device(name, architecture, device, model_file, reference, tmp_path):
    remote, target = device(architecture)
    artifact = tmp_path / "model.tar"
    build(model_file(name), target).export_library(artifact)
    remote.upload(artifact)
    loaded = remote.load_module("model.tar")
    check(graph_executor.GraphModule(loaded["default"](remote.cpu(0))), reference(name))
