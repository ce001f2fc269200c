"""relay.analysis.get_calibration_data: what functions for another compiler take and return."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import SlipwayError

DATA = np.linspace(-1, 1, 12, dtype="float32").reshape(2, 6)


def module(calls=1):
    """Return a module whose "main" calls a function for another compiler, with two results."""
    a, b, x = (relay.var(n, shape=(2, 6)) for n in "abx")
    body = relay.Tuple([a * b, relay.sum(a, axis=1)])
    func = relay.Function([a, b], body).with_attr({"Compiler": "other", "global_symbol": "f"})
    mod, name = tvm.IRModule(), relay.GlobalVar("f")
    mod[name] = func
    result = relay.tanh(x)
    for _ in range(calls):
        result = relay.TupleGetItem(relay.Call(name, [relay.negative(result), x]), 0)
    mod["main"] = relay.Function([x], relay.exp(result))
    return mod


def test_inputs_and_outputs_of_a_function():
    mod = module()
    ((name, values),) = relay.analysis.get_calibration_data(mod, {"x": DATA}).items()
    assert name.name_hint == "f"
    first = -np.tanh(DATA)
    for got, wanted in zip(values["inputs"], (first, DATA), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)
    for got, wanted in zip(values["outputs"], (first * DATA, first.sum(1)), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5)


def test_what_has_no_data():
    x = relay.var("x", shape=(2, 6))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.tanh(x)))
    assert relay.analysis.get_calibration_data(mod, {"x": DATA}) == {}
    with pytest.raises(SlipwayError, match="'x' is missing"):
        relay.analysis.get_calibration_data(module(), {})
    with pytest.raises(SlipwayError, match="'f' is called twice"):
        relay.analysis.get_calibration_data(module(2), {"x": DATA})
