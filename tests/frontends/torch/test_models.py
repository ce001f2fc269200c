"""Whole networks from PyTorch, compiled, against torch."""

import pytest
from compare import assert_same, compiled, expected

from models import MODELS, make


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_model(name):
    module, inputs = make(name)
    assert_same(compiled(module, inputs), expected(module, inputs))
