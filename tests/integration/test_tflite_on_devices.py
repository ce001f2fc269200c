"""Integer TFLite models on emulated devices give the bytes of TensorFlow Lite Micro."""

import json

import numpy as np
import pytest
from litert import pseudo_random

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor

MODELS = (
    "ad01_int8", "hello_world_int8", "kws_ref_model", "micro_speech_quantized", "person_detect",
    "pretrainedResnet_quant", "str_ww_ref_model", "vww_96_int8",
)  # fmt: skip


@pytest.mark.parametrize("architecture", ["aarch64", "armv7", "riscv64"])
def test_integer_models_on_a_device(architecture, device, shared, tmp_path):
    folder = shared / "models" / "tflite"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    remote, target = device(architecture)
    golden = json.loads((folder / "golden_tflm.json").read_text())["models"]
    for name in MODELS:
        path = folder / f"{name}.tflite"
        assert run_on(remote, path, target, golden, tmp_path) == golden[path.name]["outputs"]


def run_on(remote, path, target, golden, folder):
    """Build for the device, upload, and run every input of the golden file."""
    mod, params = relay.frontend.from_tflite(path)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target, params=params)
    artifact = folder / f"{path.stem}.tar"
    lib.export_library(artifact)
    remote.upload(artifact)
    model = graph_executor.GraphModule(remote.load_module(artifact.name)["default"](remote.cpu(0)))
    shape = mod["main"].params[0].checked_type.shape
    found = {}
    for seed in golden[path.name]["outputs"]:
        model.set_input(0, pseudo_random(int(seed), int(np.prod(shape))).reshape(shape))
        model.run()
        found[seed] = model.get_output(0).numpy().tobytes().hex()
    return found
