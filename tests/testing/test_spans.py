"""Importers inside of the classic helpers, which change nothing here."""

import pytest

import slipway as tvm


@pytest.mark.parametrize("helper", ["enable_span_filling", "disable_span_filling"])
def test_graphs_are_the_same_inside(helper):
    x = tvm.relay.var("x", shape=(2, 3))
    outside = tvm.IRModule.from_expr(tvm.relay.exp(x))
    with getattr(tvm.testing, helper)():
        inside = tvm.IRModule.from_expr(tvm.relay.exp(x))
    assert tvm.ir.structural_equal(inside, outside)
