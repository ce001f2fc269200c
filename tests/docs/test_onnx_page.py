"""What docs/onnx.md says is not served: each operator of ONNX without a converter is named."""

import re
from pathlib import Path

import pytest

from slipway.frontends.onnx.converters import TABLE

onnx = pytest.importorskip("onnx")
REWRITTEN = {"CategoryMapper", "DictVectorizer", "ZipMap"}  # in operators/ml, before converters
PAGE = (Path(__file__).parents[2] / "docs" / "onnx.md").read_text(encoding="utf-8")


def test_every_operator_without_a_converter_is_named():
    known = {name.rpartition(".")[2] for name in TABLE.load()} | REWRITTEN
    missing, expanding = set(), set()
    for schema in onnx.defs.get_all_schemas():
        expands = schema.has_function or schema.has_context_dependent_function
        if schema.name not in known and not expands and not schema.deprecated:
            missing.add(schema.name)
        elif expands:
            expanding.add(schema.name)
    section = PAGE.partition("## What is not served\n")[2]
    named = set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", section, flags=re.DOTALL)))
    assert missing <= named
    assert not (named - {"Dropout"}) & (known | expanding)
