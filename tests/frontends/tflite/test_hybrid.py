"""Data that hybrid operators quantise while they run."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.frontends.tflite.hybrid import quantized_rows
from slipway.relay.analysis import post_order_visit

# The largest magnitude 127 is stored as it is: halves, what is next to them, and zeros.
HALVES = [127.0, -0.5, 0.5, -0.49999997, 0.49999997, 1.5, -1.5, -126.5, 126.5, -0.0, 2.5, -2.5]
ROWS = np.array([HALVES, [-0.0, 0.0] * 6, [-3e38, 1e38, 1] * 4, [1e-45, 0, -1e-45] * 4], "float32")


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_halves_go_away_from_zero_and_a_row_of_zeros_has_the_scale_one(target):
    x = relay.var("x", shape=ROWS.shape)
    rows = quantized_rows(x, symmetric=True)
    function = relay.Function([x], relay.Tuple([rows.data, rows.scales]))
    found = []
    post_order_visit(function, lambda e: found.append(e.op.name) if _is_operator(e) else None)
    assert found.count("max") == 1  # it is read once for its range
    assert "min" not in found
    lib = relay.build(tvm.IRModule.from_expr(function), target)
    run = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=ROWS)
    data, scales = (run.get_output(i).numpy() for i in (0, 1))
    bound = np.abs(ROWS).max(1, keepdims=True)
    safe = np.where(bound == 0, np.float32(1), bound)
    np.testing.assert_array_equal(
        scales, np.where(bound == 0, np.float32(1), safe / np.float32(127))
    )
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = ROWS * (np.float32(127) / safe)
        wide = scaled.astype("float64")
        away = np.trunc(wide + np.copysign(0.5, wide))
    np.testing.assert_array_equal(data, np.clip(np.nan_to_num(away), -127, 127))
    assert data[0, 1:5].tolist() == [-1, 1, 0, 0]  # as C's round()


def _is_operator(expr):
    return isinstance(expr, relay.Call) and hasattr(expr.op, "name")
