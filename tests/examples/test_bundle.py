"""The bundle examples: a model in C, linked into a program and loaded by one."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slipway


def test_static_and_dynamic_bundles_read_digits(repository, tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    examples = repository / "examples" / "bundle"
    bundle = tmp_path / "bundle"
    subprocess.run([sys.executable, examples / "build_model.py", bundle], check=True)
    source, header = bundle / "digits_lib0.c", f"-I{bundle}"
    static, dynamic = tmp_path / "static", tmp_path / "dynamic"
    library = tmp_path / "digits.so"
    subprocess.run(["gcc", header, examples / "bundle_static.c", source, "-o", static], check=True)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
    subprocess.run(
        ["gcc", header, examples / "bundle_dynamic.c", "-ldl", "-o", dynamic], check=True
    )
    with np.load(Path(slipway.__file__).parent / "models/digits/digits_test.npz") as cases:
        names = sorted(cases.files)
        images = next(cases[n] for n in names if cases[n].ndim > 1)
        labels = next(cases[n] for n in names if cases[n].ndim == 1)
    right = 0
    for image, label in zip(images[:10], labels[:10], strict=True):
        data = np.ascontiguousarray(image, "float32").tobytes()
        answers = {
            subprocess.run(command, input=data, capture_output=True, check=True).stdout
            for command in ([static], [dynamic, library])
        }
        assert len(answers) == 1
        right += int(answers.pop()) == int(label)
    assert right >= 9
