"""VirtualMachineProfiler: the kernels of an executable and their times."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ArgumentValueError, ExecutionError
from slipway.runtime import profiler_vm

X = np.arange(16, dtype="float32").reshape(2, 8)


def profiler(body, *inputs):
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function(list(inputs), body)), "llvm")
    return profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())


def test_kernels_are_measured():
    x = relay.var("x", shape=(2, 8))
    hidden = relay.nn.dense(x, relay.const(np.ones((4, 8), "float32")))
    vm = profiler(relay.nn.softmax(hidden), x)
    with pytest.raises(ExecutionError, match="needs the inputs x"):
        vm.profile()
    for report in (vm.profile(X), vm.profile(x=X, func_name="main"), vm.profile()):
        assert [c["Name"] for c in report.calls] == vm.exe.primitive_ops
        assert all(c["Duration (us)"].microseconds > 0 for c in report.calls)
        assert list(report.device_metrics) == ["cpu(0)"]
    assert profiler_vm.enabled()
    np.testing.assert_allclose(vm.invoke("main", X).numpy(), np.full((2, 4), 0.25))
    assert vm.exe.primitive_ops[0] in vm.get_stat()
    with pytest.raises(ExecutionError, match="there is no function 'other'"):
        vm.profile(X, func_name="other")
    with pytest.raises(ArgumentValueError, match="leave out collectors"):
        vm.profile(X, collectors=[object()])


def test_a_model_of_open_sizes_is_one_kernel():
    x = relay.var("x", shape=(relay.Any(), 8))
    report = profiler(relay.concatenate([x, x], 0), x).profile(X)
    ((name, _, seconds),) = report
    assert name == "main"
    assert 0 < seconds < 1
