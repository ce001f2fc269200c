"""BERT and ViT: every attention in one kernel, nothing transposed, and what that saves in memory.

The models are made by ``../shared/models/make_models.py`` beside the checkout.
"""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

from slipway import relay
from slipway.compiler.graph import plan_storage
from slipway.compiler.optimize import optimize
from slipway.compiler.relay_build import kernel_graph
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.transform.graph.attention.layouts import ATTENTIONS

MAKER = Path(__file__).parents[2].parent / "shared" / "models" / "make_models.py"
pytestmark = pytest.mark.skipif(not MAKER.is_file(), reason=f"no {MAKER.name} beside the checkout")


@cache
def maker():
    pytest.importorskip("onnx")
    spec = importlib.util.spec_from_file_location("make_models", MAKER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_models"] = module  # its dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@cache
def encoder(length, layers=1, words=100):
    """Return BERT's encoder as relay: fewer layers and words, the same shapes in between."""
    made = maker()
    b = made.Builder("encoder")
    ids = b.input("input_ids", (1, length), made.I64)
    mask = b.input("attention_mask", (1, length), made.I64)
    m = b.op("Unsqueeze", [mask.name, b.ints(1, 2)], (1, 1, 1, length))
    m = b.op("Cast", [m.name], m.shape, to=made.F32)
    m = b.op("Sub", [b.scalar(1.0), m.name], m.shape)
    m = b.op("Mul", [m.name, b.scalar(-10000.0)], m.shape)
    y = b.embedding(ids, words, 384)
    for _ in range(layers):
        y = b.layer_norm(b.add(y, b.attention(y, 12, m)), 1e-12)
        y = b.layer_norm(b.add(y, b.mlp(y, 4 * 384)), 1e-12)
    b.output(y, "last_hidden_state")
    return relay.frontend.from_onnx(b.model())


def operators(mod, params):
    with PassContext(opt_level=3):
        done = optimize(mod, params, Target("llvm"), layout_lanes=16)["main"]
    calls = post_order(done.body)
    return [c.op.name for c in calls if isinstance(c, relay.Call) and isinstance(c.op, relay.Op)]


@pytest.mark.parametrize("name", ["bert", "vit_tiny"])
def test_attention_of_the_models_is_in_one_piece(name):
    found = operators(*relay.frontend.from_onnx(maker().make(name)))
    assert sum(found.count(n) for n in ATTENTIONS) == {"bert": 6, "vit_tiny": 12}[name]
    assert not set(found) & {"nn.softmax", "nn.batch_matmul"}
    # ViT turns its patches once, from channels of an image to tokens.
    assert found.count("transpose") == {"bert": 0, "vit_tiny": 1}[name]


def peak_bytes(length, **options):
    """The arena of activations, planned."""
    mod, params = encoder(length)
    with PassContext(opt_level=3, **options):
        return plan_storage(kernel_graph(mod, Target("llvm"), params)).plan.size_bytes


def test_activations_grow_with_the_length_and_not_its_square():
    parts = {n: peak_bytes(n, disabled_pass=["FuseAttention"]) for n in (128, 512)}
    fused = {n: peak_bytes(n) for n in (128, 512, 2048)}
    scores = 12 * 512 * 512 * 4
    assert parts[512] > scores
    assert fused[512] < 0.5 * parts[512]
    assert fused[512] < 4.1 * fused[128]
    assert fused[2048] < 4.1 * fused[512]
