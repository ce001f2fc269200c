"""Products with the matrices of experts: floats and blocks, rows spread over them or on one."""

import numpy as np
import pytest

import slipway
from slipway import relay
from slipway.relay.ops.nn.block_dense import random_rows
from slipway.relay.ops.nn.expert_dense import EXPERT_DENSE, ExpertAttrs
from slipway.relay.ops.packed.block_formats import FORMATS, GROUP, decode
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

EXPERTS, EACH = 5, 2
TARGETS = ["llvm -mcpu=native", "llvm -mcpu=x86-64", "c"]


def built(weight, name, depth, shared, target):
    count = relay.Dim("n", 1, 32)
    x = relay.var("x", shape=(count, 1 if shared else EACH, depth))
    experts = relay.var("e", shape=(count, EACH), dtype="int32")
    product = relay.nn.expert_dense(x, relay.const(weight), experts, name)
    module = slipway.IRModule.from_expr(relay.Function([x, experts], product))
    library = relay.build(module, target=target)
    return library, GraphModule(library["default"](cpu()))


def rows_of(rng, rows, depth, shared):
    data = rng.standard_normal((rows, 1 if shared else EACH, depth)).astype("float32")
    spread = rng.integers(0, EXPERTS, (rows, EACH)).astype("int32")
    yield data, spread
    yield data, np.full_like(spread, 3)  # all of them on one
    yield data, spread * 100 - 1  # of which there are no such experts


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("units", "depth", "shared"), [(7, 19, True), (8, 64, False), (3, 1, True)]
)
def test_floats(units, depth, shared, target):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((EXPERTS, units, depth)).astype("float32")
    _, module = built(weight, "", depth, shared, target)
    for rows in (1, 2, 13):
        for data, experts in rows_of(rng, rows, depth, shared):
            module.run(x=data, e=experts)
            want = EXPERT_DENSE.evaluate(ExpertAttrs(), data, weight, experts)
            np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("name", "units"), [("q4_0", 24), ("q8_0", 64), ("q6_k", 5)])
def test_blocks(name, units, shared, target):
    """Half a step of the data's int8 for each element, by the magnitude of its weight."""
    rng = np.random.default_rng(1)
    blocks = 2 if FORMATS[name].size == GROUP else 1
    depth = blocks * FORMATS[name].size
    rows = random_rows(rng, name, EXPERTS * units, blocks)
    exact = decode(name, rows, np.float64).reshape(EXPERTS, units, depth)
    _, module = built(rows.reshape(EXPERTS, units, -1), name, depth, shared, target)
    for count in (1, 3, 20):
        for data, experts in rows_of(rng, count, depth, shared):
            module.run(x=data, e=experts)
            wide = np.broadcast_to(data, (count, EACH, depth))
            taken = exact[np.clip(experts, 0, EXPERTS - 1)]
            want = np.einsum("sjk,sjuk->sju", wide, taken)
            steps = np.abs(wide).reshape(count, EACH, -1, GROUP).max(-1).repeat(GROUP, -1) / 127
            bound = np.einsum("sjk,sjuk->sju", steps / 2 * 1.001 + 1e-5 * np.abs(wide), abs(taken))
            assert (np.abs(module.get_output(0).numpy() - want) <= bound + 1e-6).all()


def test_an_instruction_multiplies_the_bytes():
    weight = random_rows(np.random.default_rng(2), "q4_0", EXPERTS * 16, 2).reshape(EXPERTS, 16, -1)
    target = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod"
    count = relay.Dim("n", 1, 8)
    x = relay.var("x", shape=(count, 1, 64))
    experts = relay.var("e", shape=(count, EACH), dtype="int32")
    product = relay.nn.expert_dense(x, relay.const(weight), experts, "q4_0")
    library = relay.build(relay.Function([x, experts], product), target=target)
    assert "sdot" in library.get_lib().get_source("asm")
