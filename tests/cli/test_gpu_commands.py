"""Commands with a GPU's target, here on drivers for the processor."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import slipway

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


def command(*arguments):
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    words = [sys.executable, "-m", "slipway", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=env, timeout=240)


@pytest.mark.parametrize("kind", ["opencl", "vulkan"])
def test_a_model_is_compiled_run_and_profiled(kind, tmp_path):
    if not slipway.device(kind, 0).exist:
        pytest.skip(f"no {kind} device: apt-get install pocl-opencl-icd mesa-vulkan-drivers")
    made = tmp_path / "digits.tar"
    done = command("compile", DIGITS, "--target", kind, "-o", made)
    assert done.returncode == 0, done.stderr
    done = command("run", made)
    assert done.returncode == 0, done.stderr
    done = command("profile", made, "--json", "--number", "1", "--repeat", "1")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert all(operator["seconds"] > 0 for operator in report["operators"])


@pytest.mark.parametrize("target", ["opencl", "qualcomm/adreno-6xx"])
def test_a_choice_is_explained_without_a_device(target):
    done = command("explain", DIGITS, "--target", target, "--kernel", "conv", "--json")
    assert done.returncode == 0, done.stderr
    for each in json.loads(done.stdout):
        assert each["launches"]
        assert each["strategy"].startswith("threads.")
    done = command("explain", DIGITS, "--target", target)
    assert done.returncode == 0, done.stderr
    assert "A block of this target has 256 threads" in " ".join(done.stdout.split())
