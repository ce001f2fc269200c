"""Softplus keeps the digits of a small exponential, compiled too; Mish is still a quotient."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.ir.function import IRModule
from slipway.relay.visit import post_order
from slipway.transform.graph.exact_softplus import exact_softplus


def softplus(x, dtype="float32"):
    one, zero = relay.const(1, dtype), relay.const(0, dtype)
    tail = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), one))
    return relay.add(relay.maximum(x, zero), tail)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_two_units_in_the_last_place(dtype):
    lowest = {"float16": -9, "float32": -85, "float64": -600}[dtype]
    data = np.append(np.linspace(lowest, 20, 2001), [np.inf, -np.inf, np.nan]).astype(dtype)
    x = relay.var("x", shape=data.shape, dtype=dtype)
    library = relay.build(IRModule.from_expr(softplus(x, dtype)), "llvm")
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
def test_what_is_no_softplus_stays(other):
    x = relay.var("x", shape=(4,))
    function = IRModule.from_expr(other(x))["main"]
    names = [e.op.name for e in post_order(exact_softplus(function).body) if hasattr(e, "op")]
    assert "subtract" not in names


def test_it_is_one_kernel():
    x = relay.var("x", shape=(64,))
    library = relay.build(IRModule.from_expr(softplus(x)), "llvm")
    assert library.graph_json.count('"tvm_op"') == 1
