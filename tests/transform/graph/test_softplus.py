"""Mish takes one exponential, in every form of softplus, which keeps the digits of a small one."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.transform.graph.softplus import exact_softplus, tanh_of_softplus

DTYPES = ["float16", "float32", "float64"]


def const(value, dtype="float32"):
    return relay.const(value, dtype)


def stable(x, t="float32"):
    tail = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), const(1, t)))
    return relay.add(relay.maximum(x, const(0, t)), tail)


FORMS = {
    "stable": stable,
    "swapped": lambda x: relay.add(
        relay.log(relay.add(const(1), relay.exp(relay.negative(relay.abs(x))))),
        relay.maximum(const(0), x),
    ),
    "plain": lambda x: relay.log(relay.add(const(1), relay.exp(x))),
    "threshold": lambda x: relay.where(relay.greater(x, const(20)), x, stable(x)),
}
OTHERS = {
    "another addend": lambda x: relay.log(relay.add(const(2), relay.exp(x))),
    "another maximum": lambda x: relay.add(relay.maximum(x, const(1)), stable(x).args[1]),
    "another variable": lambda x: relay.add(
        relay.maximum(relay.abs(x), const(0)), stable(x).args[1]
    ),
    "a low threshold": lambda x: relay.where(relay.greater(x, const(1)), x, stable(x)),
    "scaled": lambda x: relay.multiply(stable(relay.multiply(x, const(2))), const(0.5)),
}


def mish(softplus, dtype="float32", size=4001):
    x = relay.var("x", shape=(size,), dtype=dtype)
    return IRModule.from_expr(relay.multiply(x, relay.tanh(softplus(x))))["main"]


def names(function):
    return {e.op.name for e in post_order(function.body) if isinstance(e, relay.Call)}


@pytest.mark.parametrize("form", FORMS)
def test_one_exponential(form):
    assert not names(tanh_of_softplus(mish(FORMS[form]))) & {"tanh", "log", "where"}


@pytest.mark.parametrize("form", OTHERS)
def test_what_is_no_softplus_stays(form):
    function = mish(OTHERS[form])
    assert tanh_of_softplus(function) is function


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_values_are_nearer(dtype):
    function = mish(lambda x: stable(x, dtype), dtype)
    low = -9 if dtype == "float16" else -80
    x = np.linspace(low, 80, 4001).astype(dtype)
    x[x == 0] = 1
    true = np.longdouble(x)
    true = true * np.tanh(np.log1p(np.exp(true)))
    with np.errstate(over="ignore"):
        before = np.abs(interpret(function, x) - true)
        after = np.abs(interpret(tanh_of_softplus(function), x) - true)
    step = np.finfo(dtype).eps
    assert (after / np.abs(true)).max() < 6 * step
    assert after.sum() <= before.sum()


def test_compiled():
    function = mish(FORMS["threshold"])
    x = np.linspace(-100, 100, 4001).astype("float32")
    true = np.float64(x) * np.tanh(np.log1p(np.exp(np.float64(x))))
    got = {}
    for target in ("llvm", "llvm -strict=1"):
        got[target] = slipway.compile(function, target, quiet=True)(x)
        np.testing.assert_allclose(got[target], true, atol=2e-6, rtol=1e-5)
    small = x < -20  # there 1 + exp(x) is 1
    assert (got["llvm"][small] != 0).any()
    assert not (got["llvm -strict=1"][small] != 0).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_units_in_the_last_place(dtype):
    lowest = {"float16": -9, "float32": -85, "float64": -600}[dtype]
    data = np.append(np.linspace(lowest, 20, 2001), [np.inf, -np.inf, np.nan]).astype(dtype)
    x = relay.var("x", shape=data.shape, dtype=dtype)
    library = relay.build(IRModule.from_expr(stable(x, dtype)), "llvm")
    module = slipway.contrib.graph_executor.GraphModule(library["default"](slipway.cpu(0)))
    module.run(x=data)
    found = module.get_output(0).numpy()
    assert [str(v) for v in found[-3:]] == ["inf", "0.0", "nan"]
    wanted = np.logaddexp(0, data[:-3].astype("float64"))
    np.testing.assert_allclose(found[:-3], wanted, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: relay.log(relay.add(relay.const(1.0), relay.exp(x))),  # exp(x) may be infinite
        lambda x: relay.log(relay.add(relay.const(2.0), relay.exp(relay.negative(relay.abs(x))))),
        lambda x: relay.log(relay.exp(relay.negative(relay.abs(x)))),
    ],
)
def test_other_logarithms_stay(other):
    x = relay.var("x", shape=(4,))
    function = IRModule.from_expr(other(x))["main"]
    names = [e.op.name for e in post_order(exact_softplus(function).body) if hasattr(e, "op")]
    assert "subtract" not in names


def test_an_exact_softplus_is_one_kernel():
    x = relay.var("x", shape=(64,))
    library = relay.build(IRModule.from_expr(stable(x)), "llvm")
    assert library.graph_json.count('"tvm_op"') == 1
