"""Values of another dtype than a model's input."""

import warnings

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor
from slipway.errors import ExecutionError
from slipway.runtime.graph import input_values


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


def adder(dtype="float32"):
    a = te.placeholder((4,), dtype, name="a")
    b = te.compute((4,), lambda i: a[i] + a[i], name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm")


@pytest.mark.parametrize(("dtype", "wide"), [("float32", "float64"), ("int32", "int64")])
def test_a_kernel_takes_numpys_default_dtypes_and_writes_them(dtype, wide):
    kernel, values = adder(dtype), np.array([1, -2, 3, 4], wide)
    given, out = tvm.nd.array(values), tvm.nd.array(np.zeros(4, wide))
    with pytest.warns(UserWarning, match="is converted from") as said:
        kernel(given, out)
    assert "argument 0 (a) is converted" in str(said[0].message)
    np.testing.assert_array_equal(out.numpy(), 2 * values)
    assert (given.dtype, out.dtype) == (wide, wide)
    plain = np.zeros(4, wide)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has been said
        kernel(values, plain)
    np.testing.assert_array_equal(plain, 2 * values)
    assert kernel.time_evaluator("main", tvm.cpu(), number=1)(given, out).mean >= 0


def test_a_kernels_converted_input_keeps_its_digits():
    values = np.array([0.1, 0.2, 0.3, 0.7])
    given, out = tvm.nd.array(values), tvm.nd.empty((4,))
    with pytest.warns(UserWarning, match="is converted"):
        adder()(given, out)
    np.testing.assert_array_equal(given.numpy(), values)
    np.testing.assert_array_equal(out.numpy(), 2 * values.astype("float32"))


@pytest.mark.parametrize("value", [np.full(4, 1e300), np.arange(4), np.zeros(4, "float16")])
def test_a_kernel_refuses_what_would_lose_range_or_is_no_default(value):
    with pytest.raises(tvm.TVMError, match=r"argument 0 \(a\) has dtype"):
        adder()(tvm.nd.array(value), tvm.nd.empty((4,)))
    with pytest.raises(TypeError, match="got 1 arguments") as found:
        adder()(tvm.nd.empty((4,)))
    assert isinstance(found.value, tvm.TVMError)
