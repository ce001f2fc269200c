"""tir.trace: a packed function sees the values of an expression, and may change them."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ArgumentTypeError


def run(expression, dtype):
    a = te.placeholder((2, 3), dtype, name="a")
    b = te.compute(a.shape, lambda i, j: expression(i, j, a[i, j]), name="b")
    values = np.arange(6, dtype=dtype).reshape(2, 3)
    out = tvm.nd.array(np.zeros((2, 3), b.dtype))
    tvm.build(te.create_schedule(b.op), [a, b], "llvm")(tvm.nd.array(values), out)
    return values, out.numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_values_are_seen_and_pass_through(dtype):
    seen = []
    tvm.register_func("tests.trace", lambda *values: seen.append(values), override=True)
    values, out = run(lambda i, j, x: tvm.tir.trace([i, j, x], "tests.trace"), dtype)
    np.testing.assert_array_equal(out, values)
    assert seen == [(i, j, values[i, j]) for i in range(2) for j in range(3)]


def test_what_the_function_returns_is_the_value():
    tvm.register_func("tests.double", lambda x: 2 * x, override=True)
    values, out = run(lambda i, j, x: te.trace([x], "tests.double") + 1.0, "float32")
    np.testing.assert_array_equal(out, 2 * values + 1)


def test_the_default_prints(capsys):
    run(lambda i, j, x: tvm.trace([i, x]), "int32")
    assert "[TRACE] 1 5" in capsys.readouterr().out


def test_an_unknown_function_and_no_list_are_errors():
    with pytest.raises(Exception, match=r"'tests\.nowhere' is no function: register it"):
        run(lambda i, j, x: te.trace([x], "tests.nowhere"), "int32")
    for wrong in ([], 3):
        with pytest.raises(ArgumentTypeError, match="list of at least one"):
            te.trace(wrong)
