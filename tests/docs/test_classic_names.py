"""The page of classic names is true, and a name that is not there says what the page says."""

import subprocess
import sys
from pathlib import Path

import pytest

import slipway
from slipway import classic_names

TOOL = Path(__file__).parents[2] / "tools" / "generate_classic_names.py"


def test_the_page_is_the_one_that_is_made():
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run python tools/{TOOL.name}\n{done.stderr}"


@pytest.mark.parametrize("module", ["", "te", "tir", "tir.transform", "transform", "contrib",
                                    "testing", "runtime"])  # fmt: skip
def test_a_name_that_is_nowhere_gets_no_advice(module):
    found = slipway
    for part in filter(None, module.split(".")):
        found = getattr(found, part)
    with pytest.raises(AttributeError, match="no attribute 'nonsense_xyz'"):
        found.nonsense_xyz  # noqa: B018


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: slipway.runtime.ObjectPath, "C\\+\\+ side"),
        (lambda: slipway.te.TensorComputeOp, "tensorize the loops"),
        (lambda: slipway.tir.transform.MakePackedAPI, "leave it out"),
        (lambda: slipway.runtime.DataType, "dtypes are strings"),
        (lambda: slipway.testing.Feature, "TVM's own tests"),
        (lambda: slipway.te.gradient, "no differentiation"),
    ],
)
def test_a_classic_name_says_what_to_use(use, words):
    with pytest.raises(AttributeError, match=words):
        use()


def test_rules_speak_of_listed_names():
    text = (TOOL.parent / "classic_names.txt").read_text()
    listed = {
        f"{module}.{name.rstrip('*')}"
        for module, _, names in (line.partition(": ") for line in text.splitlines())
        for name in names.split()
    }
    unknown = [name for name in classic_names.DIFFERENT if name not in listed]
    assert not set(unknown) - {"tvm.error.register_error"}, unknown
