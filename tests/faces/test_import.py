"""Importing the package is cheap and needs nothing of the compiler."""

import subprocess
import sys

import pytest

import slipway

COMPILER = ("llvmlite", "ziglang", "onnx", "tflite", "typer", "rich", "numpy", "tvm_ffi")


def test_import_loads_nothing():
    program = f"import sys, slipway; print([m for m in {COMPILER!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]", loaded.stdout + loaded.stderr


def test_import_takes_less_than_300_ms():
    command = [sys.executable, "-X", "importtime", "-c", "import slipway"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    (line,) = [line for line in report.splitlines() if line.endswith("| slipway")]
    assert int(line.split("|")[1]) < 300_000


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'relya'"):
        slipway.relya  # noqa: B018


def test_version():
    assert slipway.__version__.count(".") == 2


@pytest.mark.parametrize("name", dir(slipway))
def test_every_name_is_there(name):
    assert getattr(slipway, name) is not None


def test_functions_win_over_modules_of_their_name():
    """`tvm.build` is called; a module of that name would take its place once it is imported."""
    import slipway.relay.frontend
    import slipway.runtime.graph_executor

    assert callable(slipway.build)
    assert callable(slipway.lower)
    assert callable(slipway.relay.build)
