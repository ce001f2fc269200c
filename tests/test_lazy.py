"""Facades: names that are looked up on first use, and functions that come late."""

import importlib
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

FACADE = """
from slipway.lazy import by_module, offer

_HOMES = {**by_module({"toy.math": "double half"}), "twice": "toy.math:double", "m": "toy.math"}
LATE = {"Makers": ("toy.math", "toy.other")}
__getattr__, __dir__ = offer(__name__, _HOMES, submodules=True)
"""
LOW = """
from slipway.lazy import Late

class Makers(Late, package="toy"):
    pass

MAKERS = Makers()
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package with a facade, of modules."""
    files = {
        "__init__": FACADE,
        "low": LOW,
        "math": "import toy.low\ndef double(x): return 2 * x\ndef half(x): return x / 2\n",
        "other": "def quarter(x): return x / 4\n",
        "lacking": "import a_library_that_nobody_has\n",
    }
    (tmp_path / "toy").mkdir()
    for name, text in files.items():
        (tmp_path / "toy" / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("toy")
    for name in [n for n in sys.modules if n.partition(".")[0] == "toy"]:
        del sys.modules[name]


def test_a_name_is_loaded_when_it_is_used(toy):
    assert dir(toy) == ["double", "half", "m", "twice"]
    assert "toy.math" not in sys.modules
    assert toy.twice is toy.double
    assert toy.m is sys.modules["toy.math"]
    assert "double" in vars(toy)  # found without the table from now on


def test_a_submodule_is_an_attribute(toy):
    assert toy.other.quarter(8) == 2


def test_an_unknown_name_is_an_attribute_error_with_a_suggestion(toy):
    with pytest.raises(AttributeError, match=r"module 'toy' has no attribute 'doubel'.*double"):
        toy.doubel  # noqa: B018
    assert not hasattr(toy, "_private")
    assert not hasattr(toy, "__wrapped__")


def test_a_library_that_a_submodule_lacks_is_named(toy):
    with pytest.raises(ModuleNotFoundError, match="a_library_that_nobody_has"):
        toy.lacking  # noqa: B018


def test_late_functions_are_found_in_the_modules_that_the_facade_lists(toy):
    makers = importlib.import_module("toy.low").MAKERS
    assert "toy.math" not in sys.modules
    assert makers.double(3) == 6
    assert makers.quarter(8) == 2
    assert "double" in vars(makers)
    with pytest.raises(AttributeError, match="Makers has no function 'tripel'"):
        makers.tripel(1)


def test_late_functions_are_found_by_many_threads_at_once(toy):
    makers = importlib.import_module("toy.low").MAKERS
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: makers.quarter(4), range(64))) == {1}


def test_what_tools_ask_every_object_for_is_compared_with_no_name(toy, monkeypatch):
    """A module among the names of a test, or of a notebook, is asked for ``__wrapped__``."""
    with pytest.raises(AttributeError, match="Did you mean 'double'"):
        toy.duble  # noqa: B018
    monkeypatch.setattr("slipway.classic.names.did_you_mean", lambda *_: pytest.fail("compared"))
    assert not hasattr(toy, "__wrapped__")
