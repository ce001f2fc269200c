"""The programs under examples/te run, and their own assertions hold."""

import runpy
from pathlib import Path

import pytest

from slipway.ir import custom

FOLDER = Path(__file__).parents[2] / "examples" / "te"


@pytest.mark.parametrize("script", sorted(p.name for p in FOLDER.glob("*.py")))
def test_te_example(script, monkeypatch):
    monkeypatch.setattr(custom, "_RULES", {})  # rules of an example end with it
    runpy.run_path(str(FOLDER / script), run_name="__main__")
