"""Whole networks from PyTorch, compiled, against torch."""

import pytest
from compare import assert_same, compiled, expected

from models import MODELS, make

QUICK = ("gpt step",)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.long]) for n in MODELS]
)
def test_model(name):
    module, inputs = make(name)
    assert_same(compiled(module, inputs), expected(module, inputs))
