"""`relay.create_executor`: every kind gives the same values."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ExecutionError, TargetError
from slipway.runtime import container

X = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.ones(3, np.float32)


def module():
    x, b = relay.var("x", shape=(2, 3)), relay.var("b", shape=(3,))
    return tvm.IRModule.from_expr(relay.Tuple((relay.nn.relu(x - 2.0) + b, relay.exp(x))))


@pytest.mark.parametrize("kind", ["graph", "vm", "debug", "aot"])
def test_every_kind_agrees(kind):
    run = relay.create_executor(kind, mod=module(), device=tvm.cpu(0), target="llvm").evaluate()
    for first, second in (run(X, B), run(X, b=B)):
        np.testing.assert_allclose(first.numpy(), np.maximum(X - 2, 0) + 1)
        np.testing.assert_allclose(second.numpy(), np.exp(X), rtol=1e-5)


def test_parameters_are_bound():
    run = relay.create_executor("graph", mod=module(), params={"b": B}).evaluate()
    np.testing.assert_allclose(run(X)[0].numpy(), np.maximum(X - 2, 0) + 1)


def test_the_vm_compiles_control_flow(monkeypatch):
    """The references are not asked; functions that the branches call are inlined."""
    monkeypatch.setattr("slipway.compiler.create_executor.interpret", None)
    x, flag = relay.var("x", shape=(4, 2000)), relay.var("flag", shape=(), dtype="bool")
    v = relay.var("v", shape=(4, 2000))
    double = relay.GlobalVar("double")
    main = relay.Function((x, flag), relay.If(flag, relay.Call(double, (x,)), relay.exp(x)))
    mod = tvm.IRModule({"double": relay.Function((v,), v + v), "main": main})
    run = relay.create_executor("vm", mod=mod).evaluate()
    data = np.full((4, 2000), 0.5, np.float32)
    for flag in (True, False):
        wanted = data * 2 if flag else np.exp(data)
        np.testing.assert_allclose(run(data, np.array(flag)).numpy(), wanted, rtol=1e-5)


def test_control_flow_runs_in_the_vm():
    x, flag = relay.var("x", shape=(3,)), relay.var("flag", shape=(), dtype="bool")
    mod = tvm.IRModule.from_expr(
        relay.Function((x, flag), relay.If(flag, relay.exp(x), relay.negative(x)))
    )
    run = relay.create_executor("vm", mod=mod).evaluate()
    assert run(B, np.array(False)).numpy().tolist() == [-1, -1, -1]


def test_an_expression_without_inputs_gives_its_value():
    found = relay.create_executor("debug").evaluate(relay.const(2.0) * relay.const(3.0))
    assert float(found.numpy()) == 6


def test_mistakes_are_named():
    run = relay.create_executor("graph", mod=module()).evaluate()
    with pytest.raises(ExecutionError, match="'b' is missing"):
        run(X)
    with pytest.raises(ExecutionError, match="no input 'c'"):
        run(X, c=B)
    with pytest.raises(TargetError, match="no executor 'grph'"):
        relay.create_executor("grph")


@pytest.mark.parametrize(
    ("kind", "container_of"),
    [("graph", list), ("aot", list), ("debug", container.ADT), ("vm", container.ADT)],
)
def test_a_tuple_is_what_classic_tvm_makes_of_it(kind, container_of):
    x = relay.var("x", shape=(3,))
    pair = relay.Tuple([relay.nn.relu(x), relay.Tuple([x + x, x])])
    run = relay.create_executor(kind, mod=relay.Function([x], pair)).evaluate()
    given = np.array([-1, 2, 3], "float32")
    first, inner = result = run(given)
    assert isinstance(result, container_of)
    assert isinstance(inner, container_of)
    assert container_of is list or result.tag == 0
    np.testing.assert_array_equal(first.numpy(), np.maximum(given, 0))
    np.testing.assert_array_equal(inner[0].numpy(), 2 * given)
