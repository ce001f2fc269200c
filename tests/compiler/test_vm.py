"""`relay.vm.compile` and `runtime.vm.VirtualMachine`: scripts of classic TVM that use them."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ExecutionError, NotAvailableError
from slipway.runtime.vm import VirtualMachine

X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)
B = np.ones(3, np.float32)


def pair():
    x, b = relay.var("x", shape=(2, 3)), relay.var("b", shape=(3,))
    return tvm.IRModule.from_expr(relay.Tuple((relay.nn.relu(x - 2.0) + b, relay.exp(x))))


def test_a_tuple_with_parameters():
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldScaleAxis"]):
        exe = relay.vm.compile(pair(), target="llvm", params={"b": B})
    vm = VirtualMachine(exe, tvm.cpu())
    vm.set_input("main", x=tvm.nd.array(X))
    first, second = vm.run()
    np.testing.assert_allclose(first.numpy(), np.maximum(X - 2, 0) + 1)
    np.testing.assert_allclose(second.numpy(), np.exp(X), rtol=1e-5)
    again = vm.invoke("main", X + 1)
    np.testing.assert_allclose(again[1].numpy(), np.exp(X + 1), rtol=1e-5)
    np.testing.assert_allclose(vm.get_outputs()[1].numpy(), np.exp(X + 1), rtol=1e-5)
    np.testing.assert_allclose(second.numpy(), np.exp(X), rtol=1e-5)  # its own memory


def test_one_result_and_inputs_in_order():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    vm = VirtualMachine(relay.vm.compile(relay.Function([x, y], x - y)), [tvm.cpu(0)])
    np.testing.assert_array_equal(vm.run(B, 2 * B).numpy(), -B)
    np.testing.assert_array_equal(vm.get_outputs()[0].numpy(), -B)


def test_open_sizes_and_branches():
    x = relay.var("x", shape=(relay.Any(), 2))
    vm = VirtualMachine(relay.vm.compile(relay.Function([x], relay.nn.relu(x))), tvm.cpu())
    for rows in (1, 3):
        given = np.full((rows, 2), -1, np.float32)
        np.testing.assert_array_equal(vm.run(given).numpy(), np.zeros((rows, 2)))
    x, flag = relay.var("x", shape=(3,)), relay.var("flag", shape=(), dtype="bool")
    chosen = relay.Function((x, flag), relay.If(flag, relay.exp(x), relay.negative(x)))
    vm = VirtualMachine(relay.vm.compile(chosen), tvm.cpu())
    np.testing.assert_array_equal(vm.run(B, np.array(False)).numpy(), -B)


def test_mistakes_are_named():
    exe = relay.vm.compile(pair())
    vm = VirtualMachine(exe, tvm.cpu())
    with pytest.raises(ExecutionError, match="call run first"):
        vm.get_outputs()
    with pytest.raises(ExecutionError, match="no function 'other'"):
        vm.invoke("other", X)
    with pytest.raises(ExecutionError, match="'b' is missing"):
        vm.run(X)
    with pytest.raises(ExecutionError, match=r"not on cuda\(0\)"):
        VirtualMachine(exe, tvm.cuda())
    with pytest.raises(ExecutionError, match=r"takes what relay\.vm\.compile returns, not str"):
        VirtualMachine("model.so", tvm.cpu())
    with pytest.raises(NotAvailableError, match=r"relay\.vm\.compile"):
        relay.vm.VMCompiler()
