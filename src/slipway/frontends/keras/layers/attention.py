"""Attention: of several heads, of heads in groups, and of products or sums without weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import number
from slipway.relay.op_registry import const

LEAST = -1e9  # the score of what is hidden, beside which others vanish


@converter("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention")
def _multi_head(view: LayerView) -> Any:
    """Query, value and, where it is given, key, each (batch, steps, width)."""
    masks = _masks(view)
    query, value, *rest = _data(view, masks)
    if len(query.tensor_type.shape) != 3 or view.option("use_gate", False):
        raise view.unsupported("attention along several axes, or with a gate")
    key = rest[0] if rest else value
    inside = f"{view.name}."
    parts = [
        view.convert(view.option(f"{'_' + name}_dense"), [x], inside)
        for name, x in (("query", query), ("key", key), ("value", value))
    ]
    count, own = (int(parts[n].tensor_type.shape[2]) for n in (0, 1))
    parts[1:] = [relay.repeat(x, count // own, 2) if count != own else x for x in parts[1:]]
    heads = [_heads(x) for x in parts]
    width = int(parts[0].tensor_type.shape[-1])
    batch, steps = parts[0].tensor_type.shape[:2]
    others = parts[1].tensor_type.shape[1]
    scores = relay.nn.batch_matmul(heads[0], heads[1])
    scores = relay.multiply(scores, number(1 / math.sqrt(width), scores))
    seen = _seen(view, masks, steps, others)
    whole = (batch, count, steps, others)
    if seen is not None:
        if len(seen.tensor_type.shape) == 3:
            seen = relay.expand_dims(seen, 1)
        scores = _hidden(relay.reshape(scores, whole), seen)
        scores = relay.reshape(scores, (batch * count, steps, others))
    weights = relay.nn.softmax(scores, axis=-1)
    made = relay.nn.batch_matmul(weights, heads[2], transpose_b=False)
    depth = made.tensor_type.shape[2]
    joined = relay.transpose(relay.reshape(made, (batch, count, steps, depth)), [0, 2, 1, 3])
    result = view.convert(view.option("_output_dense"), [joined], inside)
    if view.given.get("return_attention_scores"):
        return [result, relay.reshape(weights, whole)]
    return result


def _heads(x: Any) -> Any:
    """(batch, steps, heads, width) as (batch * heads, steps, width)."""
    batch, steps, heads, width = x.tensor_type.shape
    return relay.reshape(relay.transpose(x, [0, 2, 1, 3]), (batch * heads, steps, width))


@converter("Attention", "AdditiveAttention")
def _plain(view: LayerView) -> Any:
    """Scores are products of query and key, or sums of the hyperbolic tangents of their sum."""
    masks = _masks(view)
    query, value, *rest = _data(view, masks)
    key = rest[0] if rest else value
    scale = view.array("scale")
    additive = type(view.layer).__name__ == "AdditiveAttention"
    joined = additive or view.option("score_mode") == "concat"
    if joined:
        both = relay.add(relay.expand_dims(query, 2), relay.expand_dims(key, 1))
        if scale is not None and not additive:
            both = relay.multiply(both, view.weight("scale", scale))
        both = relay.tanh(both)
        if scale is not None and additive:
            both = relay.multiply(both, view.weight("scale", scale))
        scores = relay.sum(both, [-1])
        outer = view.array("concat_score_weight")
        if outer is not None:
            scores = relay.multiply(scores, view.weight("concat_score_weight", outer))
    else:
        scores = relay.nn.batch_matmul(query, key)
        if scale is not None:
            scores = relay.multiply(scores, view.weight("scale", scale))
    seen = _seen(view, masks, *scores.tensor_type.shape[1:])
    if seen is not None:
        scores = _hidden(scores, seen)
    weights = relay.nn.softmax(scores, axis=-1)
    made = relay.nn.batch_matmul(weights, value, transpose_b=False)
    return [made, weights] if view.given.get("return_attention_scores") else made


def _masks(view: LayerView) -> dict[str, Any]:
    """Return the masks that a call is given, by name; those of a list are of query and value."""
    found = {
        name: view.given[name]
        for name in ("attention_mask", "query_mask", "value_mask", "key_mask")
        if view.given.get(name) is not None
    }
    listed = view.given.get("mask")
    if isinstance(listed, list | tuple):
        names = ("query_mask", "value_mask")
        found |= {n: m for n, m in zip(names, listed, strict=False) if m is not None}
    elif listed is not None:
        raise view.unsupported("it is given one mask, where it takes one for each input")
    return found


def _data(view: LayerView, masks: dict[str, Any]) -> list[Any]:
    return [x for x in view.inputs if not any(x is mask for mask in masks.values())]


def _seen(view: LayerView, masks: dict[str, Any], steps: Any, others: Any) -> Any:
    """Return which steps see which others, (batch or 1, steps, others); None for all."""
    parts = []
    if "attention_mask" in masks:
        parts.append(masks["attention_mask"])
    for name in ("value_mask", "key_mask"):
        if name in masks:
            parts.append(relay.expand_dims(masks[name], 1))
    if "query_mask" in masks and type(view.layer).__name__.endswith("HeadAttention"):
        parts.append(relay.expand_dims(masks["query_mask"], 2))
    if view.given.get("use_causal_mask"):
        parts.append(const(np.tril(np.ones((1, int(steps), int(others)), bool))))
    seen = None
    for part in parts:
        flag = part if part.tensor_type.dtype == "bool" else relay.cast(part, "bool")
        seen = flag if seen is None else relay.logical_and(seen, flag)
    return seen


def _hidden(scores: Any, seen: Any) -> Any:
    return relay.where(seen, scores, number(LEAST, scores))
