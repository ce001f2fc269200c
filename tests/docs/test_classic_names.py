"""The page of classic names is true, and a name that is not there says what the page says."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import slipway
from slipway.classic import names as classic_names
from slipway.errors import NotAvailableError

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
        (lambda: slipway.te.TensorComputeOp, "returns a ComputeOp"),
        (lambda: slipway.tir.transform.MakePackedAPI, "leave it out"),
        (lambda: slipway.testing.Feature, "TVM's own tests"),
        (lambda: slipway.relay.transform.gradient, "no differentiation"),
    ],
)
def test_a_classic_name_says_what_to_use(use, words):
    with pytest.raises(AttributeError, match=words):
        use()


def look_up(module, name):
    """Return what a module has under a name, or the text of why there is none."""
    try:
        found = importlib.import_module(f"slipway{module.removeprefix('tvm')}")
        return getattr(found, name)
    except AttributeError as error:
        return f"no name: {error}"
    except ImportError:  # as attributes, one by one
        found = slipway
    try:
        for part in [*module.split(".")[1:], name]:
            found = getattr(found, part)
    except AttributeError as error:
        return f"no name: {error}"
    return found


def test_every_name_of_classic_tvm_is_there_or_says_what_to_use():
    lines = (Path(__file__).parent / "classic_public_names.txt").read_text().splitlines()
    names = [(m, n) for m, _, names in (x.partition(": ") for x in lines) for n in names.split()]
    assert len(names) > 4000
    without = []
    for module, name in names:
        try:
            found = look_up(module, name)
        except NotAvailableError:
            continue
        if isinstance(found, str) and found.startswith("no name"):
            explained = "not there" in found or "Did you mean" in found
            without += [] if explained else [f"{module}.{name}: {found}"]
    assert not without, "\n".join(without[:40])


@pytest.mark.parametrize(
    ("module", "name", "home"),
    [
        ("relay.op.tensor", "add", "relay"),
        ("relay.op.nn.nn", "conv2d", "relay.nn"),
        ("autotvm.task.space", "ConfigEntity", "autotvm.task"),
        ("te.operation", "compute", "te"),
        ("tir.op", "call_extern", "tir"),
        ("rpc.client", "connect_tracker", "rpc"),
        ("topi.nn.dense", "dense", "topi.nn"),
        ("runtime.ndarray", "cpu", "runtime"),
    ],
)
def test_a_module_that_classic_tvm_divides_has_the_names_of_its_package(module, name, home):
    one = getattr(importlib.import_module(f"slipway.{module}"), name)
    assert one.__name__ == name
    other = getattr(importlib.import_module(f"slipway.{home}"), name)
    assert callable(other)
    if isinstance(other, ModuleType):  # topi.nn.dense is a module and that function
        a = slipway.te.placeholder((2, 3))
        assert other(a, a).shape == one(a, a).shape
    else:
        assert one is other


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("relay.op.contrib.cudnn", "not called from this library"),
        ("relay.collage", "pattern table"),
        ("contrib.hexagon.build", "accelerator"),
    ],
)
def test_importing_a_module_that_is_not_there_says_what_to_use(module, words):
    with pytest.raises(ModuleNotFoundError, match=words) as caught:
        importlib.import_module(f"slipway.{module}")
    assert caught.value.name.startswith("slipway.")


def test_a_module_that_never_was_is_just_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'slipway.contibr'$"):
        importlib.import_module("slipway.contibr")


def test_rules_speak_of_listed_names():
    text = (TOOL.parent / "classic_names.txt").read_text()
    listed = {
        f"{module}.{name.rstrip('*')}"
        for module, _, names in (line.partition(": ") for line in text.splitlines())
        for name in names.split()
    }
    unknown = [name for name in classic_names.DIFFERENT if name not in listed]
    assert not set(unknown) - {"tvm.error.register_error"}, unknown


def test_tests_that_are_excepted_stand_on_the_page_with_their_reasons(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    made = importlib.import_module("classic_internals").exceptions()
    page = (TOOL.parents[1] / "docs" / "classic_scripts.md").read_text(encoding="utf-8")
    assert f"exceptions of tools/classic_internals.py -->\n\n{made}\n\n<!-- end" in page
