"""Layer norms: one axis alone, which has no rows, and rows of vectors."""

import pytest
from kernel_check import TARGETS, run, var

from slipway import relay


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(512,), (3, 512)])
def test_a_norm_with_a_cast_behind_it(target, shape):
    norm = relay.nn.layer_norm(var("x", *shape), var("g", shape[-1]), var("b", shape[-1]))
    run(relay.cast(norm, "float64"), target)
