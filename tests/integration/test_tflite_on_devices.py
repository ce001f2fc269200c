"""Integer TFLite models on emulated devices give the bytes of TensorFlow Lite Micro."""

import json
import subprocess

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc
from slipway.contrib import graph_executor
from slipway.toolchain import emulators, native

TARGETS = {
    "aarch64": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon",
    "armv7": "llvm -mtriple=armv7l-none-linux-gnueabihf -mcpu=cortex-a53 -mattr=+neon",
    "riscv64": "llvm -mtriple=riscv64-unknown-linux-gnu",
}
MODELS = (
    "ad01_int8", "hello_world_int8", "kws_ref_model", "micro_speech_quantized", "person_detect",
    "pretrainedResnet_quant", "str_ww_ref_model", "vww_96_int8",
)  # fmt: skip


def pseudo_random(seed, count):
    """The bytes of golden_tflm.json: a linear congruential generator's top bytes."""
    out = bytearray()
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(seed >> 24)
    return np.frombuffer(bytes(out), np.int8)


@pytest.mark.parametrize("architecture", TARGETS)
def test_integer_models_on_a_device(architecture, shared, tmp_path):
    folder = shared / "models" / "tflite"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    emulator = emulators.find(architecture)
    if emulator is None:
        pytest.skip(emulators.install_hint(architecture))
    golden = json.loads((folder / "golden_tflm.json").read_text())["models"]
    server = native.build_device_server(architecture)
    with subprocess.Popen(
        [*emulator, str(server), "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            port = int(process.stderr.readline().rsplit(":", 1)[1])
            with rpc.connect("127.0.0.1", port) as remote:
                for name in MODELS:
                    path = folder / f"{name}.tflite"
                    found = run_on(remote, path, TARGETS[architecture], golden, tmp_path)
                    assert found == golden[path.name]["outputs"]
        finally:
            process.kill()


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
