"""docs/operators.md says of every operator what the registry has; the tool wrote it."""

import re
from pathlib import Path

import pytest

from slipway import relay
from slipway.relay.op_registry import load_ops
from tools import generate_operator_docs as tool

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
AGAIN = "run: python tools/generate_operator_docs.py"


@pytest.fixture(scope="module")
def text():
    return PAGE.read_text(encoding="utf-8")


def test_every_operator_is_in_the_page_as_it_is(text):
    """All but the last column, for which the importers run the examples of their tests."""
    assert text.startswith(tool.HEAD), AGAIN
    said = {line.rpartition(" | ")[0] for line in text.splitlines() if line.startswith("| `")}
    made = {line.rpartition(" | ")[0] for line in tool.operators({}) if line.startswith("| `")}
    assert made <= said, f"{AGAIN}\n" + "\n".join(sorted(made - said))
    own = text.partition("\n## ONNX\n")[0]
    assert set(re.findall(r"^\| `([\w.]+)` \|", own, re.MULTILINE)) == set(load_ops())


def test_formats_operators_are_those_of_the_importers(text):
    for line in (*tool.onnx_operators(), *tool.torch_operators()):
        assert f"\n{line}\n" in text, AGAIN


def test_names_of_relay_build_calls(text):
    made_by_importers = set(re.findall(r"`(vision\.\w+)`", tool.HEAD))
    lacking = set()
    for name in load_ops():
        found = relay
        for part in name.split("."):
            found = getattr(found, part, None)
        if not callable(found):
            lacking.add(name)
    assert lacking == made_by_importers
