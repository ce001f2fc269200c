"""Branches, loops and open sizes on other processors: emulated, through RPC, against NumPy."""

import numpy as np
import pytest

from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.dims import Dim
from slipway.relay.expr import Function, Tuple, Var
from slipway.relay.types import TensorType

RNG = np.random.default_rng(5)
W = (RNG.standard_normal((16, 16)) * 0.3).astype(np.float32)


def halves_until_small():
    """While the maximum is above one: x = x @ w / 2; then one of two ends, as a flag says."""
    kinds = TensorType((3, 16)), TensorType((), "int32")
    x, flag = relay.var("x", shape=(3, 16)), relay.var("flag", shape=(), dtype="bool")
    names = [[Var(name, kind) for name, kind in zip("xn", kinds, strict=True)] for _ in range(2)]
    (y, n), (z, m) = names
    going = Function((y, n), relay.greater(relay.max(relay.abs(y)), relay.const(np.float32(1))))
    stepped = relay.nn.dense(z, relay.const(W)) * relay.const(np.float32(0.5))
    body = Function((z, m), Tuple((stepped, m + relay.const(1, "int32"))))
    last, count = relay.while_loop(going, body, [x, relay.const(0, "int32")])
    ends = relay.If(flag, relay.nn.softmax(last), relay.nn.dense(last, relay.const(W)))
    return Function((x, flag), Tuple((ends, count)))


def expected(x, flag):
    count = 0
    while np.abs(x).max() > 1:
        x, count = x @ W.T / 2, count + 1
    if not flag:
        return x @ W.T, count
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True), count


@pytest.mark.parametrize(
    "architecture",
    ["aarch64", *(pytest.param(a, marks=pytest.mark.long) for a in ("armv7", "riscv64"))],
)
def test_control_flow_and_open_sizes_on_a_device(architecture, device, tmp_path):
    remote, target = device(architecture)

    def loaded(name, function):
        path = tmp_path / f"{name}.tar"
        relay.build(function, target=target).export_library(path)
        remote.upload(path)
        return graph_executor.GraphModule(remote.load_module(path.name)["default"](remote.cpu(0)))

    module = loaded("control", halves_until_small())
    for scale, flag in ((0.1, True), (9.0, False), (50.0, True)):
        x = (RNG.standard_normal((3, 16)) * scale).astype(np.float32)
        module.run(x=x, flag=np.array(flag))
        want, count = expected(x, flag)
        np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-4, atol=1e-5)
        assert module.get_output(1).numpy() == count
    rows = relay.var("x", shape=(Dim("n", 1, 3), 16))
    module = loaded("rows", relay.nn.relu(relay.nn.dense(rows, relay.const(W))).as_function())
    positions, size = relay.var("positions", shape=(8,), dtype="int32"), Dim("found", 0, 8)
    count = relay.sum(relay.cast(relay.greater_equal(positions, relay.const(0)), "int32"))
    values = relay.var("values", shape=(20,))
    chosen = relay.take(values, relay.sized(positions, count, size), mode="fast")
    found = loaded("found", Function((values, positions), relay.nn.softmax(chosen)))
    for size in (5, 0, 8, 1):  # values decide how many: told in the middle of a run
        x, at = RNG.standard_normal(20).astype(np.float32), np.full(8, -1, np.int32)
        at[:size] = RNG.integers(0, 20, size)
        found.run(values=x, positions=at)
        e = np.exp(x[at[:size]])
        np.testing.assert_allclose(found.get_output(0).numpy(), e / e.sum(), rtol=1e-4, atol=1e-5)
    for size in (1, 3):
        x = RNG.standard_normal((size, 16)).astype(np.float32)
        module.run(x=x)
        got = module.get_output(0).numpy()
        np.testing.assert_allclose(got, np.maximum(x @ W.T, 0), rtol=1e-4, atol=1e-5)
