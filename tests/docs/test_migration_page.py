"""What the page on migration tells users of TensorFlow Lite Micro: its commands and its C."""

import ctypes
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slipway
from slipway import relay

ROOT = Path(__file__).parents[2]
PART = (ROOT / "docs/migration.md").read_text().partition("## From TensorFlow Lite Micro")[2]


def write_array(path, data):
    """C source with a model in an array, as TFLM's script writes it."""
    rows = ",\n    ".join(",".join(map(hex, data[i : i + 12])) for i in range(0, len(data), 12))
    path.write_text(
        f'#include "{path.stem}.h"\n\nalignas(16) const unsigned char g_{path.stem}[] = {{\n'
        f"    {rows}\n}};\nconst unsigned int g_{path.stem}_size = {len(data)};\n"
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory, shared):
    """The folder in which the page's commands ran."""
    folder = tmp_path_factory.mktemp("tflm")
    model = shared / "models/tflite/hello_world_int8.tflite"
    write_array(folder / "model_data.cc", model.read_bytes())
    path = os.pathsep.join(p for p in (str(ROOT / "src"), os.environ.get("PYTHONPATH")) if p)
    (block,) = re.findall(r"^```\n(.*?)^```", PART, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+#.*", "", line) for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path}, timeout=280, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return folder


def test_the_function_computes_the_sine(made, shared):
    """With the bits of this machine's code, and LiteRT's but for two steps: it rounds otherwise."""
    Interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed: apt-get install gcc")
    (block,) = re.findall(r"^```c\n(.*?)^```", PART, re.MULTILINE | re.DOTALL)
    (made / "sine.c").write_text(block)
    header = next((made / "hello").rglob("tvmgen_hello.h"))
    sources = sorted(map(str, (made / "hello").rglob("hello_lib*.c")))
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-O1",
        "-std=c99",
        "-Wall",
        "-Werror",
        f"-I{header.parent}",
    ]
    subprocess.run([*command, "sine.c", *sources, "-lm", "-o", "sine.so"], cwd=made, check=True)
    sine = ctypes.CDLL(str(made / "sine.so")).sine
    sine.restype, sine.argtypes = ctypes.c_float, [ctypes.c_float]
    angles = [i / 10 for i in range(63)]
    assert max(abs(sine(a) - math.sin(a)) for a in angles) < 0.2
    model = (shared / "models/tflite/hello_world_int8.tflite").read_bytes()
    mod, params = relay.frontend.from_tflite(model, dense_rounding="double")  # as TFLM rounds
    here = slipway.compile(mod, params=params, quiet=True)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    (scale, zero), (step, out_zero) = given["quantization"], result["quantization"]
    for angle in angles:
        value = np.array([[max(-128, min(127, math.floor(angle / scale + 0.5) + zero))]], "int8")
        assert sine(angle) == pytest.approx((int(here(value)[0, 0]) - out_zero) * step, abs=1e-6)
        interpreter.set_tensor(given["index"], value)
        interpreter.invoke()
        found = int(interpreter.get_tensor(result["index"])[0, 0])
        assert abs(sine(angle) - (found - out_zero) * step) < 2.01 * step
