"""Fused attention in the vectors of other processors, and on none: emulated, against NumPy."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.runtime.graph.graph_executor import GraphModule


def several():
    """Several attentions: masks, odd sizes, shared heads, keys in chunks."""

    def var(name, *shape):
        return relay.var(name, shape=shape)

    first = [var(f"{n}1", 1, length, 3, 12) for n, length in (("q", 37), ("k", 50), ("v", 50))]
    second = [var("q2", 2, 2, 21, 8), var("k2", 2, 1, 9, 8), var("v2", 2, 1, 9, 20)]
    long = [var("q3", 1, 33, 1, 4), var("k3", 1, 2700, 1, 4), var("v3", 1, 2700, 1, 4)]
    results = [
        relay.nn.attention(*first, var("bias", 1, 3, 37, 50)),
        relay.nn.attention(*second, causal_mask="TopLeft", layout="BNSH"),
        relay.nn.attention(*long, causal_mask="BottomRight"),
    ]
    params = [*first, results[0].args[3], *second, *long]
    return relay.Function(params, relay.concatenate([relay.reshape(r, (-1,)) for r in results], 0))


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64", "armv7", "riscv64"])
def test_attention_on_a_device(architecture, device, tmp_path):
    remote, target = device(architecture)
    function = several()
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(function), target=target)
    lib.export_library(tmp_path / "attention.tar")
    remote.upload(tmp_path / "attention.tar")
    loaded = remote.load_module("attention.tar")
    module: GraphModule = graph_executor.GraphModule(loaded["default"](remote.cpu(0)))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.checked_type.shape).astype("float32") for p in function.params]
    for param, array in zip(function.params, arrays, strict=True):
        module.set_input(param.name_hint, array)
    module.run()
    wanted = interpret(relay.transform.InferType()(function)["main"], *arrays)
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=0, atol=5e-6)
