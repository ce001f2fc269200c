"""relay.transform: passes under classic names that are none of the compiler's steps."""

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.relay.testing import count_ops


def test_functions_that_nobody_calls_go():
    def one(value):
        x = relay.var("x", shape=(2,))
        return relay.Function([x], x + relay.const(value))

    x, used = relay.var("x", shape=(2,)), relay.GlobalVar("used")
    module = tvm.IRModule.from_expr(relay.Function([x], relay.Call(used, [x])))
    module["used"] = relay.Function([x], relay.Call(relay.GlobalVar("inner"), [x]))
    module["inner"], module["alone"] = one(1.0), one(2.0)
    left = relay.transform.RemoveUnusedFunctions()(module)
    assert sorted(name for name, _ in left.items()) == ["inner", "main", "used"]
    both = relay.transform.RemoveUnusedFunctions(["main", "alone"])(module)
    assert sorted(name for name, _ in both.items()) == ["alone", "inner", "main", "used"]


def test_shapes_that_constants_give_are_computed():
    x = relay.var("x", shape=(2, 6))
    size = relay.add(relay.const(np.array([1.0, 2.0], "float32")), relay.const(1.0))
    made = relay.transform.DynamicToStatic()(tvm.IRModule.from_expr(relay.sum(x) * size))
    assert count_ops(made["main"]) == {"sum": 1, "multiply": 1}


def test_a_sequence_prints_what_reaches_a_place(capsys):
    x = relay.var("x", shape=(2,))
    steps = [relay.transform.FoldConstant(), relay.transform.PrintIR(), relay.transform.FuseOps()]
    relay.transform.Sequential(steps)(tvm.IRModule.from_expr(relay.nn.relu(x)))
    assert "nn.relu(%x)" in capsys.readouterr().out
