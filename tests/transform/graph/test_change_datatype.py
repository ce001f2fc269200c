"""Models in other floats."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay.frontend.change_datatype import ChangeDatatype

X = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
W = np.linspace(-2, 1, 12, dtype="float32").reshape(4, 3)


def model():
    x, n = relay.var("x", shape=(2, 3)), relay.var("n", shape=(2, 4), dtype="int32")
    y = relay.nn.dense(x, relay.const(W), out_dtype="float32") + relay.const(1.5)
    y = relay.nn.relu(y) + relay.cast(n, "float32")
    return tvm.IRModule.from_expr(relay.Function([x, n], y))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_variables_constants_and_attributes_change_and_integers_do_not(dtype):
    n = np.arange(8, dtype="int32").reshape(2, 4)
    made = ChangeDatatype("float32", dtype)(model())
    assert "float32" not in str(made)
    assert "int32" in str(made)
    got = relay.create_executor("graph", mod=made).evaluate()(X.astype(dtype), n).numpy()
    assert got.dtype == dtype
    want = np.maximum(X.astype("float64") @ W.T.astype("float64") + 1.5, 0) + n
    np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "float16" else 1e-6)


def test_a_function_is_visited_alone():
    main = relay.transform.InferType()(model())["main"]
    made = tvm.IRModule.from_expr(ChangeDatatype("float32", "float64").visit(main))
    assert relay.transform.InferType()(made)["main"].ret_type.dtype == "float64"
    assert main.ret_type.dtype == "float32"
