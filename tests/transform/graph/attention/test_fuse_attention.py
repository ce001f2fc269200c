"""FuseAttention: the ways models write attention, and what must stay in its parts."""

import math

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.graph import attention_lanes
from slipway.compiler.optimize import optimize
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.transform.graph.attention.fuse_attention import fuse_attention
from slipway.transform.graph.attention.layouts import ATTENTIONS

B, N, S, T, H = 2, 3, 16, 20, 8
SCALE = relay.const(1 / math.sqrt(H))
ROOT = relay.const(math.sqrt(math.sqrt(H)))


def var(name, *shape, dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def calls(function):
    """Return the operators called in a function or in its kernels."""
    return [
        e.op.name
        for e in post_order(function.body)
        if isinstance(e, relay.Call) and isinstance(e.op, relay.Op)
    ]


def operands(rows=S):
    """Variables as dense layers give them, and their transposes to (B, N, length, H)."""
    q = var("q", B, rows, N * H)
    k, v = var("k", B, T, N * H), var("v", B, T, N * H)
    return [relay.transpose(relay.reshape(x, (B, -1, N, H)), (0, 2, 1, 3)) for x in (q, k, v)]


def product(a, b):
    """MatMul of four axes as importers write it."""
    flat = relay.nn.batch_matmul(
        relay.reshape(a, (B * N, *a.checked_type.shape[2:])),
        relay.reshape(b, (B * N, *b.checked_type.shape[2:])),
        transpose_b=False,
    )
    return relay.reshape(flat, (B, N, a.checked_type.shape[2], b.checked_type.shape[3]))


def turned(x):
    return relay.transpose(x, (0, 1, 3, 2))


def merged(x):
    shape = x.checked_type.shape
    return relay.reshape(relay.transpose(x, (0, 2, 1, 3)), (B, shape[2], N * H))


def attention(change=lambda s: s, before=lambda q, k: (q, k), after=lambda p: p, rows=S):
    """softmax(change(q k^T)) v, with the result's heads concatenated again."""
    q, k, v = operands(rows=rows)
    q, k = before(q, k)
    exponentials = relay.nn.softmax(change(product(q, turned(k))), axis=-1)
    return merged(product(after(exponentials), v))


def fused(body):
    """Optimise for a processor with vectors; compare the values; return the module's operators."""
    function = IRModule.from_expr(body)["main"]
    done = optimize(IRModule.from_expr(function), target=Target("llvm"), opt_level=3)["main"]
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 2, p.checked_type.shape).astype(p.checked_type.dtype)
        if p.checked_type.dtype in ("bool", "int64")
        else rng.standard_normal(p.checked_type.shape).astype(p.checked_type.dtype)
        for p in function.params
    ]
    np.testing.assert_allclose(
        interpret(done, *arrays), interpret(function, *arrays), rtol=0, atol=3e-6
    )
    return calls(done)


def low(value):
    return relay.const(np.float32(value))


BIAS = var("bias", B, 1, 1, T)
WRITTEN = {
    "no scale": {},
    "scores times": {"change": lambda s: s * SCALE},
    "number first": {"change": lambda s: SCALE * s},
    "scores divided": {"change": lambda s: s / relay.const(3.0)},
    "query scaled": {"before": lambda q, k: (q * SCALE, k)},
    "key scaled": {"before": lambda q, k: (q, SCALE * k)},
    "root on both": {"before": lambda q, k: (q / ROOT, k / ROOT)},
    "scaled twice": {"before": lambda q, k: (q / ROOT, k), "change": lambda s: s / ROOT},
    "mask": {"change": lambda s: s * SCALE + BIAS},
    "mask first": {"change": lambda s: BIAS + s * SCALE},
    "mask taken off": {"change": lambda s: s * SCALE - BIAS},
    "mask inside the scale": {"change": lambda s: (s + BIAS) * SCALE},
    "two masks": {"change": lambda s: s + var("m", 1, N, S, T) + var("n", 1, 1, S, 1)},
    "mask of low rank": {"change": lambda s: s + var("m", S, T)},
    "mask of keys": {"change": lambda s: s + var("m", T)},
    "one number": {"change": lambda s: s + var("m")},
    "where kept": {
        "change": lambda s: relay.where(var("c", B, 1, S, T, dtype="bool"), s, low(-3.4e38))
    },
    "where masked": {
        "change": lambda s: relay.where(var("c", 1, 1, 1, T, dtype="bool"), low(-1e30), s) + BIAS
    },
    "reshaped between": {
        "change": lambda s: relay.reshape(s, (B * N, S, T)),
        "after": lambda p: relay.reshape(p, (B, N, S, T)),
    },
}


@pytest.mark.parametrize("name", WRITTEN)
def test_ways_to_write_it(name):
    found = fused(attention(**WRITTEN[name]))
    assert len([n for n in found if n in ATTENTIONS]) == 1
    assert "nn.softmax" not in found
    assert "nn.batch_matmul" not in found
    wide = name in ("two masks", "mask of low rank", "where kept")
    assert found.count("transpose") <= wide, "a transpose of q, k, v or the result is left"


def test_key_given_transposed_and_products_of_three_axes():
    q, k, v = var("q", 6, S, H), var("k", 6, T, H), var("v", 6, T, H)
    scores = relay.nn.batch_matmul(q, k, transpose_b=True) * SCALE + var("m", 6, 1, T)
    body = relay.nn.batch_matmul(relay.nn.softmax(scores), v, transpose_b=False)
    assert "nn.attention_bias" in fused(body)
    values = var("v", 6, H, T)
    body = relay.nn.batch_matmul(relay.nn.softmax(scores), values, transpose_b=True)
    assert "nn.attention_bias" in fused(body)


def test_one_key_for_all_heads():
    q, k, v = var("q", 6, S, H), var("k", 1, H, T), var("v", 1, T, H)
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, k, transpose_b=False))
    assert "nn.attention" in fused(relay.nn.batch_matmul(scores, v, transpose_b=False))


def causal(low):
    keep = np.tri(S, T, dtype=bool)
    return relay.const(np.where(keep, 0, low).astype("float32"))


@pytest.mark.parametrize("low", [-np.inf, np.finfo("float32").min])
def test_a_constant_triangle_is_an_attribute(low):
    low = np.float32(low)
    later = relay.const(np.tri(S, T, T - S, dtype=bool))
    for change in (
        lambda s: s * SCALE + causal(low),
        lambda s: relay.where(later, s, relay.const(low)),
    ):
        found = fused(attention(change))
        assert "nn.attention" in found
        assert not set(found) & {"nn.attention_bias", "where", "add"}


def test_rows_of_powers_set_to_zero():
    """As ONNX defines Attention: a row without any key is zero, not NaN."""
    mask = np.where(np.random.default_rng(0).random((B, 1, S, T)) < 0.5, -np.inf, 0)
    mask[:, :, 3] = -np.inf
    mask = relay.const(mask.astype("float32"))
    empty = relay.equal(relay.max(mask, [3], True), relay.const(np.float32(-np.inf)))
    found = fused(
        attention(lambda s: s + mask, after=lambda p: relay.where(empty, relay.const(0.0), p))
    )
    assert "nn.attention_bias" in found
    assert "where" in found


@pytest.mark.parametrize("way", ["repeat", "broadcast"])
@pytest.mark.parametrize("groups", [1, 2])
def test_heads_of_key_and_value_that_were_repeated(way, groups):
    def wide(x):
        if way == "repeat":
            return relay.repeat(x, 4 // groups, axis=1)
        five = relay.broadcast_to(relay.expand_dims(x, 2), (B, groups, 4 // groups, T, H))
        return relay.reshape(five, (B, 4, T, H))

    q = var("q", B, 4, S, H)
    k, v = (wide(var(name, B, groups, T, H)) for name in "kv")
    flat = [relay.reshape(x, (B * 4, -1, H)) for x in (q, k, v)]
    scores = relay.nn.softmax(relay.nn.batch_matmul(flat[0], flat[1]))
    found = fused(relay.nn.batch_matmul(scores, flat[2], transpose_b=False))
    assert "nn.attention" in found
    assert not set(found) & {"repeat", "broadcast_to"}


def test_axes_of_three():
    """As PyTorch's MultiheadAttention has them: (length, B * N, H) and back."""
    q, k, v = (
        relay.transpose(relay.reshape(var(n, S, B, N * H), (S, B * N, H)), (1, 0, 2)) for n in "qkv"
    )
    four = [relay.reshape(x, (B, N, S, H)) for x in (q, k, v)]
    result = product(relay.nn.softmax(product(four[0], turned(four[1]))), four[2])
    body = relay.transpose(relay.reshape(result, (B * N, S, H)), (1, 0, 2))
    found = fused(relay.reshape(body, (S, B, N * H)))
    assert "nn.attention" in found
    assert "transpose" not in found


KEPT = {
    "softmax over rows": {"change": lambda s: turned(relay.nn.softmax(turned(s)))},
    "a mask that replaces by a small number": {
        "change": lambda s: relay.where(var("c", B, 1, S, T, dtype="bool"), s, low(-1e4))
    },
    "a mask that replaces another mask": {
        "change": lambda s: relay.where(
            var("c", B, 1, S, T, dtype="bool"), s + var("m", 1, 1, S, T), low(-1e30)
        )
    },
    "scores bent": {"change": lambda s: relay.tanh(s)},
    "exponentials changed": {"after": lambda p: p * var("keep", B, N, S, T)},
    "scores added": {"change": lambda s: s + s},
}


@pytest.mark.parametrize("name", KEPT)
def test_what_stays_in_its_parts(name):
    found = fused(attention(**KEPT[name]))
    assert "nn.softmax" in found
    assert not set(found) & set(ATTENTIONS)


def test_scores_or_powers_that_are_an_output_stay():
    q, k, v = operands()
    scores = product(q, turned(k)) * SCALE
    exponentials = relay.nn.softmax(scores)
    result = merged(product(exponentials, v))
    for extra in (scores, exponentials):
        body = relay.concatenate(
            [relay.reshape(result, (-1,)), relay.reshape(extra, (-1,))], axis=0
        )
        assert "nn.softmax" in fused(body)


def test_no_keys_stay():
    q, k, v = var("q", 4, S, H), var("k", 4, 0, H), var("v", 4, 0, H)
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, k))
    function = IRModule.from_expr(relay.nn.batch_matmul(scores, v, transpose_b=False))["main"]
    assert fuse_attention(function, lambda rows, size: True) is function


def test_few_rows_stay():
    assert "nn.softmax" in fused(attention(rows=3))


def test_result_that_two_read_keeps_its_layout():
    q, k, v = operands()
    result = product(relay.nn.softmax(product(q, turned(k))), v)
    body = relay.concatenate([merged(result), relay.reshape(result, (B, S, N * H))], axis=1)
    found = fused(body)
    assert "nn.attention" in found
    assert found.count("transpose") == 1


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats_stay(dtype):
    q, k, v = (var(n, 4, S, H, dtype=dtype) for n in "qkv")
    scores = relay.nn.softmax(relay.nn.batch_matmul(q, k))
    function = IRModule.from_expr(relay.nn.batch_matmul(scores, v, transpose_b=False))["main"]
    assert fuse_attention(function, lambda rows, size: True) is function


def test_switches():
    module = IRModule.from_expr(attention(**WRITTEN["mask"]))
    assert "nn.attention_bias" in calls(relay.transform.FuseAttention()(module)["main"])
    assert "nn.softmax" in calls(relay.transform.FuseAttention(min_rows=99)(module)["main"])

    def found(target="llvm", opt_level=3, **options):
        with PassContext(opt_level=opt_level, **options):
            done = optimize(module, target=Target(target))["main"]
        return bool(set(calls(done)) & set(ATTENTIONS))

    assert found()
    assert found(opt_level=2)
    assert found("c")
    assert not found(opt_level=1)
    assert not found(disabled_pass=["FuseAttention"])
    assert not found("c -mcpu=cortex-m4 -mtriple=thumbv7em-none-eabi")
    assert attention_lanes(None) == 0
