"""Attention after its projections, and rotary embeddings, against onnxruntime."""

import numpy as np
import pytest
from graphs import helper
from microsoft import check_both, contrib, run_both, run_here

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


# Queries are (2, 3, 8), of two heads; keys (2, 5, 8).
HEADS = {
    "plain": {},
    "bias": {"bias": normal(24)},
    "scaled": {"scale": 0.3},
    "causal": {"unidirectional": 1, "key": normal(2, 3, 8), "value": normal(2, 3, 8)},
    "lengths": {"mask": np.array([4, 2], np.int32)},
    "keys": {"mask": np.array([[1, 1, 0, 1, 1], [1, 0, 0, 0, 1]], np.int32)},
    "extra": {"extra": normal(2, 2, 3, 5)},
    "extra_for_all": {"extra": normal(1, 1, 3, 5)},
    "past": {"past_key": normal(2, 2, 4, 4), "past_value": normal(2, 2, 4, 4)},
    "encoder": {"key": normal(2, 2, 5, 4), "value": normal(2, 2, 5, 4)},
    "wide_values": {"value": normal(2, 5, 12)},
}  # fmt: skip
PLACES = ["query", "key", "value", "bias", "mask", "extra", "past_key", "past_value"]


@pytest.mark.parametrize("case", HEADS)
def test_multi_head_attention(case):
    given = {
        "query": normal(2, 3, 8), "key": normal(2, 5, 8), "value": normal(2, 5, 8), **HEADS[case]
    }  # fmt: skip
    more = {k: v for k, v in given.items() if k not in PLACES}
    inputs = {k: v for k, v in given.items() if k in PLACES and v is not None}
    names = [name if name in inputs else "" for name in PLACES]
    outputs = ["y", "keys", "values"] if "past_key" in inputs else ["y"]
    node = helper.make_node(
        "MultiHeadAttention", names, outputs, domain="com.microsoft", num_heads=2, **more
    )
    check_both([node], inputs, outputs)


def test_packed_queries_keys_and_values():
    """onnxruntime has these for GPUs only."""
    whole = normal(2, 3, 2, 3, 4)
    query, key, value = (whole[:, :, :, i].reshape(2, 3, 8) for i in range(3))
    node = contrib("MultiHeadAttention", ["q", "k", "v"], "y", num_heads=2)
    (want,) = run_both([node], {"q": query, "k": key, "v": value}, ["y"])[1]
    node = contrib("MultiHeadAttention", ["q"], "y", num_heads=2)
    np.testing.assert_allclose(run_here([node], {"q": whole}, ["y"]), want, 1e-5, 1e-5)
    node = contrib("MultiHeadAttention", ["q", "k"], "y", num_heads=2)
    inputs = {"q": query, "k": np.ascontiguousarray(whole[:, :, :, 1:])}
    np.testing.assert_allclose(run_here([node], inputs, ["y"]), want, 1e-5, 1e-5)


ANGLES = np.outer(np.arange(16), 1 / 10.0 ** np.arange(4))
TABLES = {"cos": np.cos(ANGLES).astype(np.float32), "sin": np.sin(ANGLES).astype(np.float32)}


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    ("shape", "positions", "more"),
    [
        ((2, 3, 16), [4], {}),
        ((2, 3, 16), [[0, 1, 2], [5, 4, 9]], {}),
        ((2, 2, 3, 8), [[0, 1, 2], [5, 4, 9]], {}),
        ((2, 3, 24), [[0, 1, 2], [5, 4, 9]], {"num_heads": 2, "rotary_embedding_dim": 8}),
        ((2, 3, 16), [[0, 1, 2], [5, 4, 9]], {"num_heads": 0}),
    ],
    ids=str,
)
def test_rotary_embedding(interleaved, shape, positions, more):
    inputs = {"x": normal(*shape), "at": np.array(positions, np.int64)}
    node = contrib(
        "RotaryEmbedding", ["x", "at", "cos", "sin"], "y", interleaved=interleaved, **more
    )
    check_both([node], inputs, ["y"], TABLES)


WIDE = np.outer(np.arange(16), 1 / 10.0 ** np.arange(8))
WIDE_TABLES = {"cos": np.cos(WIDE).astype(np.float32), "sin": np.sin(WIDE).astype(np.float32)}
# Four heads of queries, two of keys, 16 columns each.
GROUPS = {
    "prompt": {},
    "rotary": {"do_rotary": 1},
    "interleaved": {"do_rotary": 1, "rotary_interleaved": 1},
    "shorter_prompt": {"held": [4, 2]},
    "one_more": {"rows": 1, "past": 6, "held": [6, 6], "do_rotary": 1},
    "one_more_of_shorter": {"rows": 1, "past": 6, "held": [6, 3], "do_rotary": 1},
    "window": {"rows": 5, "local_window_size": 3},
    "window_of_before": {"rows": 1, "past": 6, "held": [6, 4], "local_window_size": 3},
    "capped": {"softcap": 2.0},
    "scaled": {"scale": 0.2},
    "packed": {"packed": True, "do_rotary": 1},
}  # fmt: skip


@pytest.mark.parametrize("case", GROUPS)
def test_attention_of_grouped_heads(case):
    given = dict(GROUPS[case])
    rows, before = given.pop("rows", 5), given.pop("past", 0)
    held = given.pop("held", [rows - 1] * 2)
    inputs = {"query": normal(2, rows, 64)}
    if given.pop("packed", False):
        inputs["query"], names = normal(2, rows, 128), ["query", "", ""]
    else:
        inputs |= {"key": normal(2, rows, 32), "value": normal(2, rows, 32)}
        names = ["query", "key", "value"]
    inputs |= {"pk": normal(2, 2, before, 16), "pv": normal(2, 2, before, 16)}
    names += ["pk", "pv", "held", "total"]
    weights = {"total": np.array([before + rows], np.int32), "held": np.array(held, np.int32)}
    if given.get("do_rotary"):
        weights |= WIDE_TABLES
        names += ["cos", "sin"]
    outputs = ["y", "keys", "values"]
    node = helper.make_node(
        "GroupQueryAttention", names, outputs, domain="com.microsoft", num_heads=4,
        kv_num_heads=2, **given,
    )  # fmt: skip
    check_both([node], inputs, outputs, weights)
