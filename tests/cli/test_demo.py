"""The demo does what it says: on an emulated board, on this machine, with a model of the user's."""

import os
import re
import shutil
import subprocess
import sys

import pytest

import slipway

MODELS = ("mobilenet_v2", "resnet18", "squeezenet1_1")
DEVICES = ("aarch64", "armv7", "riscv64", "x86_64")


def demo(*arguments, timeout=280, status=0, **environment):
    command = [sys.executable, "-m", "slipway", "demo", *map(str, arguments)]
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_digits_on_an_emulated_board(qemu):
    emulator = qemu("aarch64")
    done = demo()
    assert f"emulated by {emulator.rpartition('/')[2]}" in done.stdout
    accuracies = re.findall(
        r"^ *(device|host|reference) .* (\d+\.\d+)% ", done.stdout, re.MULTILINE
    )
    assert accuracies == [("device", "98.61"), ("host", "98.61"), ("reference", "98.61")]
    assert re.search(r"Time per run, measured on the device: [\d.]+ (µs|ms)", done.stdout)
    for part in ("model (digits.onnx)", "library (lib.so)", "device server", "Slowest layers"):
        assert part in done.stdout
    assert "agrees with the reference to 1e-04" in done.stdout


def test_without_an_emulator_this_machine_plays_the_device():
    done = demo(PATH="/nonexistent")
    assert "apt-get install qemu-user-static" in done.stderr
    assert "this machine" in done.stdout
    assert done.stdout.count("98.61%") == 3


@pytest.mark.parametrize("target", ["opencl", "vulkan"])
def test_a_gpu_beside_the_processor(target):
    if not slipway.device(target, 0).exist:
        pytest.skip(f"no {target} device: README names the packages that bring one")
    done = demo("--target", target)
    assert f"digits.onnx on {target} (" in done.stdout
    assert done.stdout.count("98.61%") == 3
    assert f"{target} agrees with the reference to 1e-04" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "llvm"), "processors are --device aarch64"),
        (("--target", "opencl", "--device", "web"), "name two devices"),
        (("--target", "metal"), "metal"),
    ],
)
def test_what_is_no_gpu_of_this_machine(words, said):
    done = subprocess.run(
        [sys.executable, "-m", "slipway", "demo", *words], capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip
    assert done.returncode not in (0, 3)
    assert said in done.stderr


def test_node_plays_a_browser():
    if shutil.which("node") is None:
        pytest.skip("no node: apt-get install nodejs")
    done = demo("--device", "web")
    assert "emulated by node" in done.stdout
    assert done.stdout.count("98.61%") == 3
    for part in ("artifact (digits.wasm)", "device server", "Slowest layers"):
        assert part in done.stdout


def test_without_node_there_is_no_browser_to_play():
    done = demo("--device", "web", PATH="/nonexistent", status=7)
    assert "apt-get install nodejs" in done.stderr


def test_it_takes_a_model(repository):
    path = repository / "src" / "slipway" / "models" / "digits" / "digits.onnx"
    done = demo("--model", path, "--device", "x86_64")
    assert "reference (onnxruntime" in done.stdout
    assert "agrees with the reference" in done.stdout


def test_it_takes_a_tflite_model(shared):
    pytest.importorskip("tflite")
    path = shared / "models" / "tflite" / "kws_ref_model.tflite"
    done = demo("--model", path, "--device", "x86_64")
    assert "x86_64 agrees with the host to 1e-04" in done.stdout


@pytest.fixture(scope="session")
def models(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    maker = shared / "models" / "make_models.py"
    subprocess.run([sys.executable, maker, folder, *MODELS], check=True, capture_output=True)
    return folder


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", MODELS)
def test_models_agree_with_onnxruntime(models, qemu, model, device):
    if device != "x86_64":
        qemu({"armv7": "arm"}.get(device, device))
    done = demo("--model", models / f"{model}.onnx", "--device", device, timeout=880)
    assert f"{device} agrees with the reference to 1e-04" in done.stdout
