"""Values of another dtype than a model's input."""

import warnings

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import ExecutionError
from slipway.runtime import input_values


def model(dtype):
    x = relay.var("x", shape=(4,), dtype=dtype)
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.add(x, x))), "llvm")
    return graph_executor.GraphModule(lib["default"](tvm.cpu(0)))


@pytest.fixture(autouse=True)
def nothing_said_yet():
    input_values._WARNED.clear()


def outcome(m, value):
    m.set_input("x", value)
    m.run()
    return m.get_output(0).numpy()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", np.array([0.1, -2, np.inf, np.nan])),
        ("float32", np.array([1, 2, -3, 2**24])),
        ("float32", np.array([0.5, 1, 2, 3], "float16")),
        ("float32", np.array([True, False, True, True])),
        ("int32", np.array([1, -2, 3, 2**30 - 1])),
        ("int8", np.array([1.0, -2.0, 3.0, 63.0])),
        ("uint8", np.array([0, 1, 2, 127])),
        ("int64", np.array([0, 1, 2, 127], "uint16")),
    ],
)
def test_values_are_converted_with_one_warning(dtype, value):
    m = model(dtype)
    with pytest.warns(UserWarning, match=rf"'x' is converted from \w+ to {dtype}"):
        first = outcome(m, value)
    np.testing.assert_array_equal(first, value.astype(dtype) + value.astype(dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(outcome(m, tvm.nd.array(value)), first)
        m.set_input(0, value.astype(dtype))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", np.array([1e39, 0, 0, 0])),
        ("float32", np.array([0, 0, 0, 2**24 + 1])),
        ("float16", np.array([0.1, 0, 0, 0], "float32")),
        ("int32", np.array([0.5, 0, 0, 0])),
        ("int32", np.array([np.nan, 0, 0, 0])),
        ("int32", np.array([2**31, 0, 0, 0])),
        ("int8", np.array([-129, 0, 0, 0])),
        ("uint8", np.array([-1, 0, 0, 0])),
        ("uint8", np.array([3e9, 0, 0, 0])),
    ],
)
def test_values_that_do_not_fit_are_refused(dtype, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ExecutionError, match=f"'x' has dtype {dtype} in this model, got"):
            model(dtype).set_input("x", value)


def test_another_shape_stays_an_error():
    with pytest.raises(ExecutionError, match="shape"):
        model("float32").set_input("x", np.zeros((3, 4), "float32"))
