"""Caches of halves: what joins is rounded as NumPy rounds, and sums stay those of float32."""

import ml_dtypes
import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.tile import vector_registers
from slipway.compiler.kernels import lower_kernel
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.relay.ops.nn.cached_attention import (
    CACHED_ATTENTION,
    SLOPED_ATTENTION,
    CachedAttentionAttrs,
)
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.target import Target

HEADS, SHARED, SIZE, BLOCKS = 4, 2, 16, 3
KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
PLACES = {"k": (SHARED, BLOCKS, SIZE, 16), "v": (SHARED, BLOCKS * 16, SIZE)}


def built(caches, target):
    n = relay.Dim("n", 1, 8)
    given = [
        relay.var("query", shape=(n, HEADS, SIZE)), relay.var("key", shape=(n, SHARED, SIZE)),
        relay.var("value", shape=(n, SHARED, SIZE)),
        *(relay.var(name, shape=shape, dtype=caches) for name, shape in PLACES.items()),
        relay.var("position", shape=(1,), dtype="int32"),
    ]  # fmt: skip
    made = relay.Function(given, relay.nn.cached_attention(*given))
    return GraphModule(relay.build(made, target=target)["default"](cpu()))


@pytest.mark.parametrize(
    ("caches", "target"),
    [("float16", "llvm -mcpu=native"), ("float16", "llvm -mcpu=x86-64"), ("float16", "c"),
     ("bfloat16", "llvm -mcpu=native"), ("bfloat16", "c")],
)  # fmt: skip
def test_halves(caches, target):
    """Prompt, steps and a prompt more; keys beyond float16 are its largest number, not infinite."""
    module = built(caches, target)
    rng = np.random.default_rng(0)
    kind = KINDS[caches]
    keys, values = (np.zeros(shape, kind) for shape in PLACES.values())
    position = 0
    for rows in (7, 1, 1, 8, 2):
        query, key, value = (
            rng.standard_normal((rows, heads, SIZE), dtype=np.float32) for heads in (4, 2, 2)
        )
        if position == 7:
            key[0, 0, 0], value[0, 1, 3] = 1e6, -7e4
            query[0, :, 0] = 1e-6
        index = np.array([position], np.int32)
        module.run(query=query, key=key, value=value, position=index)
        given = (query, key, value, keys, values, index)
        want = CACHED_ATTENTION.evaluate(CachedAttentionAttrs(), *given)
        found = module.get_output(0).numpy()
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5)
        for r in range(rows):
            limit = 65504 if caches == "float16" else np.inf
            at = position + r
            keys[:, at // 16, :, at % 16] = np.clip(key[r], -limit, limit)
            values[:, at] = np.clip(value[r], -limit, limit)
        position += rows


@pytest.mark.parametrize(("core", "lanes"), [("haswell", 8), ("skylake-avx512", 16)])
def test_sums_of_values_stay_in_registers(core, lanes):
    """A vector of values and a weight lie beside them: how many there are, the target says."""
    target = Target(f"llvm -mcpu={core} -mtriple=x86_64-linux-gnu")
    shapes = ((16, 4, 128), (16, 1, 128), (16, 1, 128), (1, 2, 128, 16), (1, 32, 128))
    given = [relay.var(f"x{i}", shape=shape) for i, shape in enumerate(shapes)]
    given.append(relay.var("position", shape=(1,), dtype="int32"))
    function = relay.Function(given, relay.nn.cached_attention(*given))
    lowered = lower_kernel("kernel", function.with_attr("Primitive", 1), target)
    buffers = [n.buffer for n in walk(lowered.body) if isinstance(n, S.Allocate)]
    (sums,) = (b.shape[0].value // lanes for b in buffers if b.name == "mixed")
    assert vector_registers(target) // 4 <= sums <= vector_registers(target) - 2


@pytest.mark.parametrize("target", ["llvm -mcpu=native", "llvm -mcpu=x86-64", "c"])
def test_slopes(target):
    """A prompt and steps, in tiles of rows whose heads have other slopes."""
    n = relay.Dim("n", 1, 8)
    given = [
        relay.var("query", shape=(n, HEADS, SIZE)), relay.var("key", shape=(n, SHARED, SIZE)),
        relay.var("value", shape=(n, SHARED, SIZE)),
        *(relay.var(name, shape=shape) for name, shape in PLACES.items()),
        relay.var("position", shape=(1,), dtype="int32"),
    ]  # fmt: skip
    slopes = np.array([0.5, 0.25, 0.125, 2.0], np.float32)
    made = relay.nn.sloped_cached_attention(*given, relay.const(slopes))
    module = GraphModule(relay.build(relay.Function(given, made), target=target)["default"](cpu()))
    rng = np.random.default_rng(0)
    keys, values = (np.zeros(shape, np.float32) for shape in PLACES.values())
    position = 0
    for rows in (7, 1, 1, 8, 2):
        query, key, value = (
            rng.standard_normal((rows, heads, SIZE), dtype=np.float32) for heads in (4, 2, 2)
        )
        index = np.array([position], np.int32)
        module.run(query=query, key=key, value=value, position=index)
        want = SLOPED_ATTENTION.evaluate(
            CachedAttentionAttrs(), query, key, value, keys, values, index, slopes
        )
        found = module.get_output(0).numpy()
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5)
        for r in range(rows):
            at = position + r
            keys[:, at // 16, :, at % 16], values[:, at] = key[r], value[r]
        position += rows
