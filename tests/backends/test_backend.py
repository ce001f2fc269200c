"""Which backend serves a target; adding one is adding a folder."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, te
from slipway.backends import backend as registry
from slipway.backends.backend import backends, compile_target
from slipway.errors import TargetError
from slipway.target import Target
from slipway.target.kinds import KINDS

TARGETS = {
    "llvm": "cpu",
    "c": "cpu",
    "hexagon": "cpu",
    "llvm -mtriple=thumbv7em-none-eabi": "cpu",
    "c -mtriple=arm-none-eabi -mcpu=cortex-m4": "micro",
    "c -keys=arm_cpu -mcpu=cortex-m7": "micro",
}


@pytest.mark.parametrize("target", TARGETS)
def test_one_backend_serves_a_target(target):
    assert [b.name for b in backends() if b.serves(Target(target))] == [TARGETS[target]]


def test_a_target_without_backend_is_refused():
    with pytest.raises(TargetError, match="no code generator for kernels on nvptx"):
        compile_target("nvptx", None, "kernels")


@pytest.fixture
def toy(monkeypatch):
    """The toy backend of this folder, registered as a package outside of Slipway would do it."""
    from toy_backend import backend as module

    monkeypatch.setitem(KINDS, module.KIND.name, module.KIND)
    registry.register_backend(module.BACKEND)
    yield module.BACKEND
    registry.unregister_backend(module.BACKEND)


def test_a_backend_of_ones_own_runs_kernels(toy):
    a = te.placeholder((5, 7), name="a")
    b = te.compute((5, 7), lambda i, j: te.exp(a[i, j]) + 1.0, name="b")
    function = tvm.build(te.create_schedule(b.op), [a, b], target="toy")
    x = np.random.default_rng(0).normal(size=(5, 7)).astype("float32")
    out = tvm.nd.array(np.zeros((5, 7), "float32"))
    function(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), np.exp(x) + 1, rtol=2e-6)
    assert "toy" in function.get_source("c")


def test_a_backend_of_ones_own_runs_a_model(toy):
    rng = np.random.default_rng(1)
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.const(rng.normal(size=(4, 3, 3, 3)).astype("float32"))
    body = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1)))
    body = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body)))
    module = tvm.IRModule.from_expr(relay.Function([x], body))
    data = rng.normal(size=(1, 3, 8, 8)).astype("float32")
    found = {}
    for target in ("toy", "llvm"):
        graph = relay.create_executor("graph", module, tvm.cpu(), target).evaluate()
        found[target] = graph(data).numpy()
    np.testing.assert_allclose(found["toy"], found["llvm"], rtol=1e-5)
    assert {"relu_of_toy"} & set(toy.used)  # its own strategy computed a kernel
    assert toy.steps == {"graph", "loops"}  # and its own passes ran


def test_a_backend_that_cannot_do_its_work_is_refused():
    class Nameless(registry.Backend):
        def serves(self, target):
            return False

    with pytest.raises(TargetError, match="Nameless lacks a method emit and a name"):
        registry.register_backend(Nameless())
    assert not [b for b in registry.backends() if isinstance(b, Nameless)]
