"""Pain 13: an error is a stack of C++ functions, not a cause."""

import os
import subprocess
import sys

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.errors import SlipwayError


@pytest.mark.parametrize(
    ("wrong", "words"),
    [  # what was asked, what is wrong with it, what would be right
        (
            lambda: relay.transform.InferType()(
                slipway.IRModule.from_expr(
                    relay.add(relay.var("a", shape=(3, 4)), relay.var("b", shape=(5, 4)))
                )
            ),
            ["add", "(3, 4)", "(5, 4)"],
        ),
        (lambda: slipway.target.Target("llvm -mcpu=cortex-a73x"), ["cortex-a73x"]),
        (
            lambda: slipway.compile(
                slipway.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(2, 3)))), quiet=True
            )(x=np.zeros((3, 2), "float32")),
            ["'x'", "[3, 2]", "[2, 3]"],
        ),
        (lambda: slipway.load(__file__), ["test_error_without_a_cause.py", ".tar"]),
        (lambda: slipway.rpc.connect("127.0.0.1", 1), ["127.0.0.1:1", "Start it with"]),
    ],
    ids=["types", "target", "input", "file", "device"],
)
def test_it_is_one_paragraph_with_the_values(wrong, words):
    with pytest.raises(SlipwayError) as told:
        wrong()
    text = str(told.value)
    assert "\n\n" not in text
    assert "0x" not in text  # no address of an object
    assert len(text) < 600
    for word in words:
        assert word in text


def test_the_command_line_prints_it_without_a_traceback(tmp_path):
    (tmp_path / "m.onnx").write_bytes(os.urandom(64))
    done = subprocess.run(
        [sys.executable, "-m", "slipway", "compile", str(tmp_path / "m.onnx")],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 5
    (line,) = [line for line in done.stderr.splitlines() if line]
    assert line.startswith("slipway: error: ")
    assert "m.onnx" in line
